"""Taking back on a real ResourceManager: what is above the offer ends, no more than that, and only where it may.

Memory gets into overdraft by a real allocation outside of YARN, or lies there from the start by what is reserved, which
does not change with other programs of this host. CPU is in overdraft all the time, and ends nothing.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.yarn.application import Application, containers_ended, containers_running, events
from tests.e2e.yarn.cluster import Cluster, StartCluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.fallow_process import MIB, Fallow, spec_of
from tests.e2e.yarn.host_memory import QUIET_PERCENT, HostMemory, used_bytes
from tests.e2e.yarn.rest import wait_for
from tests.e2e.yarn.sizes import CPUS, FAR_MS, resize, sizes

CONTAINERS, CONTAINER_MB = 4, 256
SETUP = Setup(memory_mb=4096, vcores=10 * CPUS, heartbeat_ms=300)
NOTICE_SECONDS = 60  # the least that the configuration takes
PREEMPTED = -102
DEADLINE_SECONDS = 15  # of somebody else: in this time Fallow starts

SPARE_MB = 192  # lent above what is allocated while there is no load
OVER_MB = 1024  # the overdraft under load: all but one container, as others may use less at times
SLACK_MB = 1536  # by so much other programs of this host may grow before they are load
MASTER_USES_MB = 150  # about: it counts as batch
MOST_MB = 3072  # of the load

SECONDS = 60
pytestmark = pytest.mark.timeout(4 * SECONDS)

StartFallow = Callable[..., Fallow]


@pytest.fixture(scope="module")
def cluster(yarn_cluster: StartCluster) -> Cluster:
    return yarn_cluster(SETUP)


@pytest.fixture(scope="module")
def app(cluster: Cluster) -> Application:
    app = cluster.submit(CONTAINERS, CONTAINER_MB, 1, "exec sleep 3600")
    wait_for(lambda: len(containers_running(app)) == CONTAINERS, 60, "the containers")
    return app


class Host(HostMemory):
    """Without load Fallow lends `SPARE_MB` more than `allocated_mb`, under load `OVER_MB` less."""

    def __init__(self, allocated_mb: int) -> None:
        self.allocated_mb = allocated_mb
        super().__init__(allocated_mb + SPARE_MB, SLACK_MB)

    def keep(self, *, always_over: bool) -> dict[str, object]:
        """`capacity.memory`. `always_over`: lend as little as under load, whatever is used."""
        if always_over:
            return {"watermark": f"{QUIET_PERCENT}%", "reserved": self.reserved_for(self.allocated_mb - OVER_MB)}
        return self.capacity()

    @contextmanager
    def load(self) -> Iterator[None]:
        """Real memory that is used until the end: as much as is needed, and more when others use less."""
        wanted = self.reserved + (SPARE_MB + OVER_MB + MASTER_USES_MB) * MIB
        over, step = threading.Event(), 16 * MIB
        held: list[bytes] = []

        def hold() -> None:
            while not over.wait(0.1):
                lacking = -(-(wanted - used_bytes()) // step)
                held.extend(b"\1" * step for _ in range(min(lacking, MOST_MB * MIB // step - len(held))))

        thread = threading.Thread(target=hold, daemon=True)
        thread.start()
        try:
            wait_for(lambda: used_bytes() >= wanted or len(held) * step >= MOST_MB * MIB, SECONDS, "the load")
            yield
        finally:
            over.set()
            thread.join()
            held.clear()


@pytest.fixture
def roomy(cluster: Cluster, app: Application) -> None:
    """The node has its configured size, whatever Fallow left."""
    node_id = node(cluster)
    resize(cluster, node_id, SETUP.memory_mb, SETUP.vcores, FAR_MS)
    wait_for(lambda: sizes(cluster)[node_id] == (SETUP.memory_mb, SETUP.vcores), 20, "the configured size")


@pytest.fixture
def host(cluster: Cluster, roomy: None) -> Host:
    return Host(used_mb(cluster))


@pytest.fixture
def start_fallow(cluster: Cluster, host: Host, tmp_path: Path) -> Iterator[StartFallow]:
    """Starts `fallow run` that takes back after 2 s; further keys of `takeBack` and of the cluster file are given."""
    with ExitStack() as stack:

        def start(take_back: dict[str, Any] | None = None, *, always_over: bool = False, **of_cluster: Any) -> Fallow:
            folder = tmp_path / "fallow"
            specs = {"real": spec_of(cluster.rm)}
            fallow = Fallow(folder, specs, cpu_reserved_milli=1000 * CPUS, memory_limit_mb=SETUP.memory_mb)
            settings = {"mode": "enforce", "after": "2s", "notice": f"{NOTICE_SECONDS}s"}
            fallow.add(
                "fallow.yaml",
                takeBack=settings if take_back is None else {"after": "2s", **take_back},
                capacity={
                    "cpu": {"watermark": "95%", "reserved": f"{1000 * CPUS}m"},
                    "memory": host.keep(always_over=always_over),
                },
            )
            fallow.add("clusters.d/real.yaml", **of_cluster)
            stack.enter_context(fallow).start()
            return fallow

        yield start


def node(cluster: Cluster) -> str:
    return cluster.nms["nm1"].node_id


def size_mb(cluster: Cluster) -> int:
    return sizes(cluster)[node(cluster)][0]


def used_mb(cluster: Cluster) -> int:
    return cluster.nodes()[node(cluster)].used_mb


def wait_told(fallow: Fallow, event: str, seconds: float = SECONDS) -> None:
    wait_for(lambda: bool(fallow.told(event)), seconds, f"{event} in {fallow.log}")


def take_backs(fallow: Fallow) -> list[dict[str, Any]]:
    """What `fallow explain` says of memory above the offer."""
    return list(json.loads(fallow.succeed("explain", "--json"))["take_backs"])


def wait_fits(cluster: Cluster, fallow: Fallow) -> None:
    """Wait until all of the running containers lie within their offer, by the ResourceManager and by Fallow."""

    def fits() -> bool:
        return bool(fallow.told("offer_sent")) and size_mb(cluster) >= used_mb(cluster) and not take_backs(fallow)

    wait_for(fits, SECONDS, "an offer that fits: does something else take the memory of this host?")


def wait_drains(cluster: Cluster) -> None:
    wait_for(lambda: size_mb(cluster) < used_mb(cluster), SECONDS, "a size below what is allocated")


def some_heartbeats() -> None:
    """As long as an armed node with an overdraft needs to end containers: their absence cannot be waited for."""
    time.sleep(10 * SETUP.heartbeat_ms / 1000)


def test_a_take_back_is_cancelled_in_time_and_later_shrinking_ends_nothing(
    cluster: Cluster, app: Application, host: Host, start_fallow: StartFallow
) -> None:
    before = containers_running(app), containers_ended(app)
    fallow = start_fallow()
    wait_fits(cluster, fallow)
    with host.load():
        wait_told(fallow, "take_back_starts")
        began = time.monotonic()
        wait_drains(cluster)
        wait_for(lambda: any(t["active"] for t in take_backs(fallow)), 20, "the take-back in fallow explain")
        assert "is taken back down to" in fallow.succeed("explain")
    wait_told(fallow, "take_back_cancelled")
    assert fallow.told("take_back_terminates") == []
    wait_for(lambda: size_mb(cluster) >= used_mb(cluster), SECONDS, "a size that fits")
    fallow.succeed("switch", "drain", "real")
    wait_drains(cluster)
    while time.monotonic() < began + NOTICE_SECONDS:
        time.sleep(0.5)
    some_heartbeats()
    assert (containers_running(app), containers_ended(app)) == before


@pytest.mark.parametrize(
    ("take_back", "of_cluster"),
    [
        pytest.param({}, {}, id="observe"),
        pytest.param({"mode": "enforce"}, {"takeBack": "never"}, id="never"),
    ],
)
def test_without_leave_nothing_is_taken_back(
    cluster: Cluster,
    app: Application,
    host: Host,
    start_fallow: StartFallow,
    take_back: dict[str, Any],
    of_cluster: dict[str, Any],
) -> None:
    before = containers_running(app), containers_ended(app)
    fallow = start_fallow(take_back, **of_cluster)
    wait_fits(cluster, fallow)
    with host.load():
        if of_cluster:
            wait_for(
                lambda: any("the operator forbids it" in t["why"] for t in take_backs(fallow)), SECONDS, "the reason"
            )
        else:
            wait_told(fallow, "take_back_would_start")
        wait_drains(cluster)
        some_heartbeats()
        assert fallow.told("take_back_starts") == []
    assert (containers_running(app), containers_ended(app)) == before


@pytest.fixture
def late(cluster: Cluster, roomy: None) -> Application:
    """A later application with one container: containers of one heartbeat are equally new to the ResourceManager."""
    late = cluster.submit(1, CONTAINER_MB, 1, "exec sleep 3600")
    wait_for(lambda: len(containers_running(late)) == 1, 60, "the newest container")
    return late


def test_a_deadline_of_somebody_else_that_is_found_is_moved_away_and_grants_nothing(
    cluster: Cluster, app: Application, host: Host, start_fallow: StartFallow
) -> None:
    before, found_mb = (containers_running(app), containers_ended(app)), used_mb(cluster) - 2 * CONTAINER_MB
    resize(cluster, node(cluster), found_mb, SETUP.vcores, 1000 * DEADLINE_SECONDS)
    armed = time.monotonic()
    fallow = start_fallow()
    wait_told(fallow, "offer_sent", DEADLINE_SECONDS)
    first = fallow.told("offer_sent")[0]
    assert "a deadline of somebody else may be running" in first
    assert f"memory_bytes={(found_mb - 1) * MIB} " in first
    assert time.monotonic() < armed + DEADLINE_SECONDS, "too slow to tell"
    while time.monotonic() < armed + DEADLINE_SECONDS:
        time.sleep(0.5)
    some_heartbeats()
    assert (containers_running(app), containers_ended(app)) == before


def test_what_was_there_first_only_drains_until_it_is_adopted_and_then_the_newest_container_ends(
    cluster: Cluster, app: Application, late: Application, start_fallow: StartFallow
) -> None:
    running, newest = containers_running(app), containers_running(late)
    fallow = start_fallow(always_over=True)
    wait_for(lambda: any("adopted" in t["why"] for t in take_backs(fallow)), SECONDS, "the overdraft")
    wait_drains(cluster)
    some_heartbeats()
    assert fallow.told("take_back_starts") == []
    assert (containers_running(app), containers_running(late)) == (running, newest)

    assert node(cluster) in fallow.succeed("adopt", "real", "--take-back")
    wait_told(fallow, "take_back_starts")
    began = time.monotonic()
    assert "is taken back down to" in fallow.succeed("explain")
    time.sleep(NOTICE_SECONDS / 3)
    cluster.restart("rm")  # which forgets all sizes and deadlines
    wait_for(lambda: containers_ended(late) != [], NOTICE_SECONDS + SECONDS, "the newest container to be terminated")
    assert time.monotonic() - began > NOTICE_SECONDS - 5
    assert [(ended.container, ended.exit_code) for ended in containers_ended(late)] == [(newest.pop(), PREEMPTED)]
    wait_for(lambda: events(late)[-1].kind == "finished", SECONDS, "its master, which lived to be told of it")

    wait_for(lambda: any("blast radius" in t["why"] for t in take_backs(fallow)), SECONDS, "what still is over")
    wait_drains(cluster)
    some_heartbeats()
    before = size_mb(cluster)
    fallow.succeed("switch", "drain", "real")
    wait_for(lambda: size_mb(cluster) < before, SECONDS, "a smaller size")
    some_heartbeats()
    assert [len(fallow.told(f"take_back_{what}")) for what in ("starts", "terminates", "ends")] == [1, 1, 1]
    assert (containers_running(app), containers_ended(app)) == (running, [])
    assert events(app)[-1].kind != "finished"
