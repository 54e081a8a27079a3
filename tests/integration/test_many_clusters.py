"""Twenty YARN clusters in one `fallow run`, half of which are dead in different ways: they delay none of the others."""

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median

import pytest
from tests.e2e.yarn.fallow_process import Fallow, resource_manager_spec
from tests.e2e.yarn.rest import wait_for

from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.listener import Listener, free_ports
from fallow_yarn.embedded.settings import Settings

GOOD = 10
TICK_SECONDS = 1.0  # the publishing interval of that `fallow run`
WATCH_SECONDS = 5.0
ACTIVE = {"id": 1, "startedOn": 1, "state": "STARTED", "haState": "ACTIVE", "resourceManagerVersion": "3.5.0"}

Behave = Callable[[socket.socket], None]


def silent(connected: socket.socket) -> None:
    while connected.recv(4096):
        pass


def garbage(connected: socket.socket) -> None:
    connected.recv(4096)
    connected.sendall(b"\x00\x05\xff garbage \xfe" * 99)


def closing(connected: socket.socket) -> None:
    connected.recv(1)


def dripping(connected: socket.socket) -> None:
    connected.recv(4096)
    connected.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connected.sendall(b" ")
        time.sleep(0.2)


def endless(connected: socket.socket) -> None:
    connected.recv(4096)
    connected.sendall(b"HTTP/1.1 200 OK\r\n\r\n[")
    while True:
        connected.sendall(b"1," * 8192)
        time.sleep(0.005)


def failing(connected: socket.socket) -> None:
    connected.recv(4096)
    connected.sendall(b"HTTP/1.1 500 Server Error\r\nContent-Length: 2\r\n\r\nno")


def lying(connected: socket.socket) -> None:
    connected.recv(4096)
    body = json.dumps({"clusterInfo": ACTIVE, "clusterMetrics": {"totalMB": -1}, "scheduler": [], "apps": 7}).encode()
    connected.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


BEHAVIOURS: Mapping[str, Behave] = {
    behave.__name__: behave for behave in (silent, garbage, closing, dripping, endless, failing, lying)
}


@pytest.fixture(scope="module")
def dead() -> Iterator[dict[str, dict[str, object]]]:
    """The specs of ten clusters that cannot work."""
    with ExitStack() as stack:
        addresses: dict[str, str] = {}
        *ports, refused, full = free_ports(len(BEHAVIOURS) + 2)
        for (name, behave), port in zip(BEHAVIOURS.items(), ports, strict=True):
            listener = Listener(port, behave)
            listener.start()
            stack.callback(listener.stop)
            addresses[name] = f"127.0.0.1:{port}"
        addresses["refused"] = f"127.0.0.1:{refused}"
        # With its queue of connections full the kernel drops what comes, as a host does that is down.
        down = stack.enter_context(socket.create_server(("127.0.0.1", full), backlog=0))
        for _ in range(2):
            caller = stack.enter_context(socket.socket())
            caller.setblocking(False)
            with suppress(BlockingIOError):
                caller.connect(down.getsockname())
        addresses["down"] = f"127.0.0.1:{full}"
        specs = {name: resource_manager_spec(address, address, address) for name, address in addresses.items()}
        pair = {name: {"host": "127.0.0.1", "admin": addresses["silent"]} for name in ("rm1", "rm2")}
        specs["pair"] = {"resourceManagers": {name: {**rm, "web": addresses["silent"]} for name, rm in pair.items()}}
        yield specs


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, object]]]:
    """The specs of ten embedded clusters."""
    with ExitStack() as stack:
        specs: dict[str, dict[str, object]] = {}
        for number in range(GOOD):
            yarn = EmbeddedYarn(tmp_path_factory.mktemp("yarn"), Settings(starting_seconds=0.0))
            rm = stack.enter_context(yarn).rm
            specs[f"good{number}"] = resource_manager_spec(rm.client_address, rm.admin_address, rm.web_address)
        yield specs


def report_ages(fallow: Fallow, names: Mapping[str, object]) -> list[float | None]:
    """How old the newest report of each cluster is; None where there was none yet."""
    found = {cluster["cluster"]: cluster["report_age_seconds"] for cluster in fallow.status()["clusters"]}
    return [found.get(f"yarn/{name}") for name in names]


def usual_age(fallow: Fallow, names: Mapping[str, object]) -> float:
    """The median over a while of the age of the oldest of their newest reports: other load here makes single peaks."""
    wait_for(lambda: None not in report_ages(fallow, names), 30, "a report of each")
    oldest, end = list[float](), time.monotonic() + WATCH_SECONDS
    while time.monotonic() < end:
        oldest.append(max(age for age in report_ages(fallow, names) if age is not None))
        time.sleep(0.1)
    return median(oldest)


@pytest.mark.timeout(120)
def test_ten_dead_clusters_delay_ten_others_by_no_more_than_a_tick(
    good: dict[str, dict[str, object]], dead: dict[str, dict[str, object]], tmp_path: Path
) -> None:
    ages: dict[str, float] = {}
    for name, specs in (("alone", good), ("beside", good | dead)):
        with Fallow(tmp_path / name, specs, cpu_reserved_milli=0, memory_limit_mb=1024) as fallow:
            fallow.start()
            ages[name] = usual_age(fallow, good)
            if name == "beside":
                assert report_ages(fallow, dead) == [None] * len(dead)
    assert ages["beside"] <= ages["alone"] + TICK_SECONDS
