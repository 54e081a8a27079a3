"""Processes on this machine: free ports, and the end of containers."""

import os
import random
import signal
import socket
import time
from pathlib import Path


def free_ports(count: int) -> list[int]:
    """Ports that are free on loopback and outside the range the kernel takes the ports of outgoing connections from.

    A port of that range could be taken by anybody's connection in the second before the daemon binds it.
    """
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports: list[int] = []
    for port in random.sample(range(max(low - 20000, 1025), low), 2000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError(f"fewer than {count} free ports below {low}")


def containers_below(folder: Path) -> list[int]:
    """The pids of all processes in containers of NodeManagers whose local folders lie below `folder`."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for pid in pids if _is_in_container(pid, folder)]


def end_containers(folder: Path, seconds: float = 10) -> None:
    """Kill those processes until none is left: containers outlive a killed NodeManager."""
    end = time.monotonic() + seconds
    while pids := containers_below(folder):
        if time.monotonic() > end:
            raise TimeoutError(f"these processes of containers do not end: {pids}")
        for pid in pids:
            _kill(pid, folder)
        time.sleep(0.02)


def _is_in_container(pid: int, folder: Path) -> bool:
    """A NodeManager gives each container a new environment in which LOCAL_USER_DIRS lies in its local folder."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # gone, or another user's
        return False
    return any(entry.startswith(f"LOCAL_USER_DIRS={folder}/".encode()) for entry in environment)


def _kill(pid: int, folder: Path) -> None:
    """Kill the process if it is in a container. The descriptor still means the same process if its pid was reused."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if _is_in_container(pid, folder):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.close(descriptor)
