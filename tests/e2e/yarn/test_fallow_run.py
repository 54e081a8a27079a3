"""`fallow run` beside a real ResourceManager, two NodeManagers and an application whose containers no test may end."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.e2e.yarn.application import Application, containers_ended, containers_running, events
from tests.e2e.yarn.cluster import Cluster, StartCluster
from tests.e2e.yarn.fallow_process import (
    MIB,
    Fallow,
    all_cpus_busy,
    no_resource_manager,
    resource_manager_spec,
    spec_of,
)
from tests.e2e.yarn.rest import wait_for
from tests.e2e.yarn.sizes import (
    CONTAINER_MB,
    CONTAINERS,
    CPUS,
    FAR_MS,
    LENT_MB,
    MASTER_MB,
    RESERVED_CPU_MILLI,
    SECONDS,
    SETUP,
    are_floors,
    are_lent,
    configured,
    have_memory_of,
    near,
    resize,
    sizes,
    vcores,
    wait_for_sizes,
)

ALLOCATED_MB = MASTER_MB + CONTAINERS * CONTAINER_MB

StartFallow = Callable[..., Fallow]
pytestmark = pytest.mark.timeout(6 * SECONDS)


@pytest.fixture(scope="module")
def cluster(yarn_cluster: StartCluster) -> Cluster:
    return yarn_cluster(SETUP)


@pytest.fixture(scope="module")
def app(cluster: Cluster) -> Application:
    app = cluster.submit(CONTAINERS, CONTAINER_MB, 1, "exec sleep 3600")
    wait_for(lambda: len(containers_running(app)) == CONTAINERS, 60, "the containers")
    return app


@pytest.fixture
def start_fallow(cluster: Cluster, app: Application, tmp_path: Path) -> Iterator[StartFallow]:
    """Starts `fallow run` on nodes with their configured sizes. In the end every container must still run."""
    for name in [name for name, daemon in cluster.daemons.items() if daemon.process is None]:
        cluster.launch(name)  # the test before failed
    cluster.wait_ready()
    running = containers_running(app)
    for node_id in cluster.nodes():
        resize(cluster, node_id, SETUP.memory_mb, SETUP.vcores, FAR_MS)
    wait_for(lambda: sizes(cluster) == configured(cluster), 20, "the configured sizes")
    with ExitStack() as stack:

        def start(
            specs: Mapping[str, Mapping[str, object]] | None = None, reserved: int = RESERVED_CPU_MILLI
        ) -> Fallow:
            specs = {"real": spec_of(cluster.rm)} if specs is None else specs
            fallow = Fallow(tmp_path / "fallow", specs, cpu_reserved_milli=reserved, memory_limit_mb=LENT_MB)
            stack.enter_context(fallow).start()
            return fallow

        yield start
    assert containers_ended(app) == []
    assert containers_running(app) == running
    wait_for(lambda: sum(node.containers for node in cluster.nodes().values()) == 1 + CONTAINERS, 20, "all containers")


def test_node_sizes_follow_a_real_load_down_and_up(cluster: Cluster, start_fallow: StartFallow) -> None:
    start_fallow(reserved=0)
    floors = len(cluster.nms)
    most = CPUS * 95 // 10  # less than one node is configured with
    wait_for(lambda: 2 * floors < vcores(cluster) <= most, 3 * SECONDS, "sizes at rest: is this host busy otherwise?")
    at_rest = vcores(cluster)
    with all_cpus_busy():
        wait_for(lambda: floors <= vcores(cluster) <= at_rest // 2, SECONDS, "sizes to fall with the load")
    wait_for(lambda: vcores(cluster) > at_rest // 2 + floors, SECONDS, "sizes to grow again")


def test_no_container_ends_on_nodes_that_somebody_armed_before(
    cluster: Cluster, app: Application, start_fallow: StartFallow
) -> None:
    for node_id in cluster.nodes():
        resize(cluster, node_id, SETUP.memory_mb - 1, SETUP.vcores, 1)
    wait_for(lambda: {mb for mb, _ in sizes(cluster).values()} == {SETUP.memory_mb - 1}, 20, "the armed sizes")
    victim = cluster.submit(1, CONTAINER_MB, 1, "exec sleep 3600")
    wait_for(lambda: len(containers_running(victim)) == 1, 60, "a container to be terminated")
    node_id = next(event.details for event in events(victim) if event.kind == "started")
    resize(cluster, node_id, cluster.nodes()[node_id].used_mb - 1, SETUP.vcores, -1)
    wait_for(lambda: len(containers_ended(victim)) == 1, 30, "its end: the deadline of before still holds")
    assert containers_ended(victim)[0].exit_code == -102
    wait_for(lambda: events(victim)[-1].kind == "finished", 30, "the end of its application")
    for node_id in cluster.nodes():
        resize(cluster, node_id, SETUP.memory_mb, SETUP.vcores, -1)
    wait_for(lambda: sizes(cluster) == configured(cluster), 20, "the configured sizes")

    fallow = start_fallow()
    fallow.succeed("switch", "drain", "real")
    wait_for_sizes(cluster, fallow, are_floors, "the floors")
    used = {node.node_id: node.used_mb for node in cluster.nodes().values()}
    assert (sum(used.values()), min(used.values()) > SETUP.min_mb) == (ALLOCATED_MB, True)
    time.sleep(10 * SETUP.heartbeat_ms / 1000)  # an armed node ends containers with a heartbeat; they cannot be seen
    assert {node.node_id: node.used_mb for node in cluster.nodes().values()} == used
    assert containers_ended(app) == []


def test_an_orderly_stop_leaves_the_floors_and_ends_nothing(cluster: Cluster, start_fallow: StartFallow) -> None:
    fallow = start_fallow()
    wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    assert fallow.end(signal.SIGTERM) == 0
    wait_for(lambda: are_floors(sizes(cluster)), 20, "the floors")
    assert not fallow.socket.exists()


def test_after_a_kill_at_any_moment_a_new_start_ends_in_the_same_sizes(
    cluster: Cluster, start_fallow: StartFallow
) -> None:
    fallow = start_fallow()
    wait_for(lambda: "offer_sent" in fallow.log.read_text(), SECONDS, "the first size to be sent")
    fallow.end(signal.SIGKILL)
    fallow.start()
    before = wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    fallow.end(signal.SIGKILL)
    fallow.start()
    wait_for_sizes(cluster, fallow, have_memory_of(before), "the sizes of before")
    first = {row["framework_node"]: row["original"]["memory_bytes"] // MIB for row in fallow.cluster()["rows"]}
    assert first == {node_id: memory_mb for node_id, (memory_mb, _) in configured(cluster).items()}


def test_sizes_are_right_again_after_the_resource_manager_was_killed(
    cluster: Cluster, start_fallow: StartFallow
) -> None:
    fallow = start_fallow()
    wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    cluster.kill("rm")
    fallow.wait_for_problem("yarn/real", cluster.rm.web)
    assert fallow.status()["nodes"][0]["memory"]["allocated"] == ALLOCATED_MB * MIB
    fallow.succeed("switch", "drain", "real")
    cluster.launch("rm")
    cluster.wait_ready()
    wait_for_sizes(cluster, fallow, are_floors, "what was decided while the ResourceManager was gone")
    fallow.succeed("switch", "lend", "real")
    wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    assert fallow.problem() == ""


def test_a_node_manager_that_was_killed_and_started_again_gets_its_size(
    cluster: Cluster, start_fallow: StartFallow
) -> None:
    fallow = start_fallow()
    before = wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    smallest = min(cluster.nms, key=lambda name: before[cluster.nms[name].node_id])
    assert not near(before[cluster.nms[smallest].node_id][0], SETUP.memory_mb)
    cluster.restart(smallest)
    wait_for_sizes(cluster, fallow, have_memory_of(before), "the sizes of before")


def test_an_unknown_node_in_the_config_spoils_nothing(cluster: Cluster, start_fallow: StartFallow) -> None:
    known, other = (nm.node_id for nm in cluster.nms.values())
    spec = spec_of(cluster.rm, nodeManagers=["nowhere.example.com:45454", known])
    fallow = start_fallow({"real": spec})
    wait_for(lambda: are_lent({known: sizes(cluster)[known]}), SECONDS, "the known node to be served")
    assert sizes(cluster)[other] == configured(cluster)[other]
    doctor = fallow.call("doctor")
    assert doctor.returncode == 1
    assert "unknown: nowhere.example.com:45454" in doctor.stdout


def test_what_is_no_resource_manager_is_reported_and_the_other_cluster_goes_on(
    cluster: Cluster, start_fallow: StartFallow
) -> None:
    with no_resource_manager(b"\x00\x05\xff garbage \xfe" * 99) as garbage, no_resource_manager(b"") as silence:
        wrong = {"garbage": garbage, "silence": silence}
        specs = {name: resource_manager_spec(address, address, address) for name, address in wrong.items()}
        fallow = start_fallow({"real": spec_of(cluster.rm), **specs})
        wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
        for name, address in wrong.items():
            fallow.wait_for_problem(f"yarn/{name}", address)
            assert address in fallow.succeed("status")
        fallow.succeed("switch", "drain", "real")
        wait_for_sizes(cluster, fallow, are_floors, "the floors")


def test_restore_puts_the_sizes_of_the_beginning_back(cluster: Cluster, start_fallow: StartFallow) -> None:
    fallow = start_fallow()
    wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    assert fallow.succeed("restore").count(": restored") == len(cluster.nms)
    assert sizes(cluster) == configured(cluster)
    fallow.end(signal.SIGKILL)
    fallow.start()
    wait_for(lambda: fallow.in_force() == configured(cluster), 30, "a report")
    assert fallow.cluster()["switch"]["state"] == "restored"

    fallow.succeed("switch", "lend", "real")
    wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    fallow.end(signal.SIGKILL)
    assert fallow.succeed("restore").count(": restored") == len(cluster.nms)
    assert sizes(cluster) == configured(cluster)


def test_a_switch_is_kept_over_a_restart(cluster: Cluster, start_fallow: StartFallow) -> None:
    fallow = start_fallow()
    wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    fallow.succeed("switch", "hold", "real", "--why", "a look at it")
    assert fallow.end(signal.SIGTERM) == 0
    fallow.start()
    wait_for(lambda: are_floors(fallow.in_force()), 30, "a report")
    switch = fallow.cluster()["switch"]
    assert (switch["state"], switch["why"]) == ("hold", "a look at it")
    assert "no growth" in fallow.succeed("explain")
    fallow.succeed("switch", "lend", "real")
    wait_for_sizes(cluster, fallow, are_lent, "what can be lent")


def test_a_journal_that_is_damaged_lets_no_size_grow_before_somebody_gives_it_up(
    cluster: Cluster, start_fallow: StartFallow
) -> None:
    fallow = start_fallow()
    wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    fallow.succeed("switch", "hold", "real")
    assert fallow.end(signal.SIGTERM) == 0
    wait_for(lambda: are_floors(sizes(cluster)), 20, "the floors")
    journal = fallow.folder / "state" / "published.jsonl"
    os.truncate(journal, journal.stat().st_size // 2)
    for _ in range(2):
        fallow.start()
        wait_for(lambda: are_floors(fallow.in_force()), 30, "a report")
        time.sleep(12)  # after the growth delay and the time in flight the floors of before grew
        assert are_floors(sizes(cluster))
        assert "published.jsonl is not JSON in line 1" in " ".join(fallow.succeed("status").split())
        assert fallow.call("doctor").returncode == 1
        fallow.end(signal.SIGKILL)
    restored = fallow.call("restore")
    assert (restored.returncode, restored.stdout.count("the size found first is unknown")) == (1, len(cluster.nms))
    assert are_floors(sizes(cluster))
    fallow.start()
    fallow.succeed("accept-lost-state", "--why", "the disk broke")
    fallow.succeed("switch", "lend", "real")
    wait_for_sizes(cluster, fallow, are_lent, "what can be lent")


def test_status_explain_and_doctor_show_the_real_cluster(cluster: Cluster, start_fallow: StartFallow) -> None:
    fallow = start_fallow()
    lent = wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    status = json.loads(fallow.succeed("status", "--json"))
    assert status["mode"] == "enforce"
    assert status["nodes"][0]["memory"]["allocated"] == ALLOCATED_MB * MIB
    assert status["nodes"][0]["cpu"]["allocated"] == (1 + CONTAINERS) * 100
    assert {row["framework_node"] for row in status["clusters"][0]["rows"]} == lent.keys()

    explanation = json.loads(fallow.succeed("explain", "--json"))
    memory = explanation["resources"]["memory"]
    capacity = memory["capacity"]
    assert capacity["batch"] == capacity["capacity"] - capacity["margin"] - capacity["system"]
    assert sum(row["size"] for row in memory["rows"]) <= capacity["batch"]

    doctor = {found["subject"]: found for found in json.loads(fallow.call("doctor", "--json").stdout)}
    wrong = {subject for subject, found in doctor.items() if found["ok"] is False}
    assert wrong == {f"configured size of {node_id}" for node_id in lent}, "half of the CPU is reserved"
    assert doctor["admin rights"]["ok"] is True
    assert doctor["minimum allocation"]["detail"].startswith(f"{SETUP.min_mb} MB")
    assert all(doctor[f"process of {node_id}"]["ok"] is True for node_id in lent)
