"""`fallow run` beside a real ResourceManager, two NodeManagers and an application whose containers no test may end."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.e2e.yarn import rest
from tests.e2e.yarn.application import Application, containers_ended, containers_running, events
from tests.e2e.yarn.cluster import Cluster, StartCluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.fallow_process import (
    Fallow,
    Sizes,
    all_cpus_busy,
    no_resource_manager,
    resource_manager_spec,
    spec_of,
)
from tests.e2e.yarn.rest import wait_for

SETUP = Setup(node_managers=2, memory_mb=2048, vcores=8, heartbeat_ms=300)
CONTAINERS = 4  # of 512 MB: with their master they do not fit on one node
FAR_MS = 2147483647
CPUS = os.cpu_count() or 1
HALF_CPU_MILLI = 500 * CPUS

# Half of the CPU is reserved and memory is limited, so that what is lent does not follow every other process here.
LENT_MB, LENT_VCORES = 3072, CPUS * 45 // 10
SECONDS = 90  # until load from elsewhere has passed

StartFallow = Callable[..., Fallow]


@pytest.fixture(scope="module")
def cluster(yarn_cluster: StartCluster) -> Cluster:
    return yarn_cluster(SETUP)


@pytest.fixture(scope="module")
def app(cluster: Cluster) -> Application:
    app = cluster.submit(CONTAINERS, 512, 1, "exec sleep 3600")
    wait_for(lambda: len(containers_running(app)) == CONTAINERS, 60, "the containers")
    return app


@pytest.fixture
def start_fallow(cluster: Cluster, app: Application, tmp_path: Path) -> Iterator[StartFallow]:
    """Starts `fallow run` on nodes with their configured sizes. In the end every container must still run."""
    running = containers_running(app)
    for node_id in cluster.nodes():
        resize(cluster, node_id, SETUP.memory_mb, SETUP.vcores, FAR_MS)
    wait_for(lambda: sizes(cluster) == configured(cluster), 20, "the configured sizes")
    with ExitStack() as stack:

        def start(specs: Mapping[str, Mapping[str, object]] | None = None, reserved: int = HALF_CPU_MILLI) -> Fallow:
            specs = {"real": spec_of(cluster.rm)} if specs is None else specs
            fallow = Fallow(tmp_path / "fallow", specs, cpu_reserved_milli=reserved, memory_limit_mb=LENT_MB)
            stack.enter_context(fallow).start()
            return fallow

        yield start
    assert containers_ended(app) == []
    assert containers_running(app) == running
    wait_for(lambda: sum(node.containers for node in cluster.nodes().values()) == 1 + CONTAINERS, 20, "all containers")


def resize(cluster: Cluster, node_id: str, memory_mb: int, vcores: int, over_commit_timeout_ms: int) -> None:
    """Change a node's size in the ResourceManager, without Fallow."""
    body = {"resource": {"memory": memory_mb, "vCores": vcores}, "overCommitTimeout": over_commit_timeout_ms}
    rest.call(cluster.rm.web, f"/ws/v1/cluster/nodes/{node_id}/resource", body)


def sizes(cluster: Cluster) -> Sizes:
    return {node.node_id: (node.total_mb, node.total_vcores) for node in cluster.nodes().values()}


def vcores(cluster: Cluster) -> int:
    return sum(node.total_vcores for node in cluster.nodes().values())


def configured(cluster: Cluster) -> Sizes:
    return {nm.node_id: (SETUP.memory_mb, SETUP.vcores) for nm in cluster.nms.values()}


def are_floors(found: Sizes) -> bool:
    """Whether all are the minimum allocation; a size may be sent with 1 MB more, to tell it from another one."""
    return all(SETUP.min_mb <= mb <= SETUP.min_mb + 1 and cores == 1 for mb, cores in found.values())


def near(value: int, wanted: int) -> bool:
    """Whether a size would not be sent again: the band is 10 %, and a unit more for rounding."""
    return abs(value - wanted) <= max(1, wanted * 12 // 100)


def are_lent(found: Sizes) -> bool:
    """Whether these are the sizes of a host without much other load."""
    memory_mb, cores = (sum(size[i] for size in found.values()) for i in (0, 1))
    return near(memory_mb, LENT_MB) and near(cores, LENT_VCORES)


def wait_for_sizes(cluster: Cluster, fallow: Fallow, wanted: Callable[[Sizes], bool], what: str) -> Sizes:
    """Wait until the ResourceManager has the wanted sizes and Fallow shows the same ones in force."""
    wait_for(lambda: wanted(found := sizes(cluster)) and fallow.in_force() == found, SECONDS, what)
    return sizes(cluster)


def test_node_sizes_follow_a_real_load_down_and_up(cluster: Cluster, start_fallow: StartFallow) -> None:
    start_fallow(reserved=0)
    wait_for(lambda: vcores(cluster) >= 5 * CPUS, SECONDS, "half of the host to be lent")
    at_rest = vcores(cluster)
    with all_cpus_busy():
        wait_for(lambda: 0 < vcores(cluster) <= at_rest // 2, SECONDS, "sizes to fall with the load")
    wait_for(lambda: vcores(cluster) >= 5 * CPUS, SECONDS, "sizes to grow again")


def test_no_container_ends_on_nodes_that_somebody_armed_before(
    cluster: Cluster, app: Application, start_fallow: StartFallow
) -> None:
    for node_id in cluster.nodes():
        resize(cluster, node_id, SETUP.memory_mb - 1, SETUP.vcores, 1)
    wait_for(lambda: {mb for mb, _ in sizes(cluster).values()} == {SETUP.memory_mb - 1}, 20, "the armed sizes")
    victim = cluster.submit(1, 512, 1, "exec sleep 3600")
    wait_for(lambda: len(containers_running(victim)) == 1, 60, "a container to be ended")
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
    assert min(used.values()) > SETUP.min_mb
    time.sleep(10 * SETUP.heartbeat_ms / 1000)  # an armed node ends containers with a heartbeat; they cannot be seen
    assert {node.node_id: node.used_mb for node in cluster.nodes().values()} == used
    assert containers_ended(app) == []


def test_an_orderly_stop_leaves_the_floors_and_ends_nothing(cluster: Cluster, start_fallow: StartFallow) -> None:
    fallow = start_fallow()
    wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    assert fallow.end(signal.SIGTERM) == 0
    assert are_floors(sizes(cluster))
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
    assert wait_for_sizes(cluster, fallow, lambda found: found == before, "the same sizes") == before
    first = {row["framework_node"]: row["original"]["memory_bytes"] >> 20 for row in fallow.cluster()["rows"]}
    assert first == {node_id: memory_mb for node_id, (memory_mb, _) in configured(cluster).items()}


def test_sizes_are_right_again_after_the_resource_manager_was_killed(
    cluster: Cluster, start_fallow: StartFallow
) -> None:
    fallow = start_fallow()
    before = wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    cluster.kill("rm")
    wait_for(lambda: "resourceManager" in fallow.cluster()["problem"], 30, "the failure to be shown")
    assert fallow.in_force() == before
    fallow.succeed("switch", "drain", "real")
    cluster.launch("rm")
    cluster.wait_ready()
    wait_for_sizes(cluster, fallow, are_floors, "what was decided while the ResourceManager was gone")
    fallow.succeed("switch", "lend", "real")
    wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    assert fallow.cluster()["problem"] == ""


def test_a_node_manager_that_was_killed_and_started_again_gets_its_size(
    cluster: Cluster, start_fallow: StartFallow
) -> None:
    fallow = start_fallow()
    before = wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    node_id = cluster.nms["nm1"].node_id
    assert before[node_id] != configured(cluster)[node_id]
    cluster.restart("nm1")

    def is_back(found: Sizes) -> bool:
        return all(near(found[name][i], before[name][i]) for name in before for i in (0, 1))

    wait_for_sizes(cluster, fallow, is_back, "the sizes of before")


def test_an_unknown_node_in_the_config_spoils_nothing(cluster: Cluster, start_fallow: StartFallow) -> None:
    known, other = (nm.node_id for nm in cluster.nms.values())
    spec = spec_of(cluster.rm, nodeManagers=["nowhere.example.com:45454", known])
    fallow = start_fallow({"real": spec})
    wait_for(lambda: are_lent({known: sizes(cluster)[known]}), SECONDS, "the known node to be served")
    assert sizes(cluster)[other] == configured(cluster)[other]
    doctor = fallow.call("doctor")
    assert doctor.returncode == 1
    assert "not known: nowhere.example.com:45454" in doctor.stdout


@pytest.mark.parametrize("answer", [b"\x00\x05\xff garbage \xfe" * 99, b""], ids=["garbage", "silence"])
def test_what_is_no_resource_manager_is_reported_and_the_other_cluster_goes_on(
    answer: bytes, cluster: Cluster, start_fallow: StartFallow
) -> None:
    with no_resource_manager(answer) as address:
        wrong = resource_manager_spec(address, address, address)
        fallow = start_fallow({"real": spec_of(cluster.rm), "wrong": wrong})
        wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
        wait_for(lambda: address in fallow.cluster("yarn/wrong")["problem"], 40, "the failure to be shown")
        assert address in fallow.succeed("status")
        assert fallow.cluster("yarn/wrong")["rows"] == []
        fallow.succeed("switch", "drain", "real")
        wait_for_sizes(cluster, fallow, are_floors, "the floors")


def test_restore_puts_the_sizes_of_the_beginning_back(cluster: Cluster, start_fallow: StartFallow) -> None:
    fallow = start_fallow()
    wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    assert fallow.succeed("restore").count("restored") == len(cluster.nms)
    assert sizes(cluster) == configured(cluster)
    fallow.end(signal.SIGKILL)
    fallow.start()
    wait_for(lambda: fallow.in_force() == configured(cluster), 30, "a report")
    assert fallow.cluster()["switch"]["state"] == "restored"

    fallow.succeed("switch", "lend", "real")
    wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    fallow.end(signal.SIGKILL)
    assert fallow.succeed("restore").count("restored") == len(cluster.nms)
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


def test_status_explain_and_doctor_show_the_real_cluster(cluster: Cluster, start_fallow: StartFallow) -> None:
    fallow = start_fallow()
    lent = wait_for_sizes(cluster, fallow, are_lent, "what can be lent")
    status = json.loads(fallow.succeed("status", "--json"))
    assert status["mode"] == "enforce"
    assert status["nodes"][0]["memory"]["allocated"] == (256 + CONTAINERS * 512) << 20
    assert status["nodes"][0]["cpu"]["allocated"] == (1 + CONTAINERS) * 100
    assert {row["framework_node"] for row in status["clusters"][0]["rows"]} == lent.keys()

    explanation = json.loads(fallow.succeed("explain", "--json"))
    cpu = explanation["resources"]["cpu"]
    capacity = cpu["capacity"]
    assert capacity["batch"] == capacity["capacity"] - capacity["margin"] - capacity["system"]
    assert sum(row["size"] for row in cpu["rows"]) <= capacity["batch"]

    doctor = {found["subject"]: found for found in json.loads(fallow.succeed("doctor", "--json"))}
    assert doctor["admin rights"]["ok"] is True
    assert doctor["minimum allocation"]["detail"].startswith(f"{SETUP.min_mb} MB")
    assert all(doctor[f"process of {node_id}"]["ok"] is True for node_id in lent)
