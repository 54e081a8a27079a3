"""Container engines: what they run for a task is no descendant of the task. Pure.

An engine's monitor is a child of init and runs as root; what it runs names the YARN container by its cgroup
(`--cgroup-parent`) or its environment. If it names none, nothing shows to whom it belongs.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from fallow_yarn.nm.procfs import Stat
from fallow_yarn.tasks.process_tree import MONITORS, Processes

CLIENTS: Final = frozenset({b"docker", b"nerdctl", b"podman", b"ctr", b"crictl"})


def unseen(found: Mapping[str, Processes], stats: Mapping[int, Stat]) -> Iterator[str]:
    """A reason for each container that runs an engine's client while none of its processes is run by an engine."""
    for container_id, of_container in found.items():
        client = next((stat for stat in of_container.members if stat.name in CLIENTS), None)
        if client is not None and not any(_is_run_by_engine(root, stats) for root in of_container.roots):
            name = client.name.decode()
            yield f"{container_id} runs {name}: what the engine runs for it cannot be told from other use of this host"


def _is_run_by_engine(root: Stat, stats: Mapping[int, Stat]) -> bool:
    parent = stats.get(root.parent_pid)
    return parent is not None and parent.name in MONITORS
