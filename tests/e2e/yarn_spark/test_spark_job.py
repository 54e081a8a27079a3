"""A PySpark job on a real YARN whose nodes `fallow run` shrinks, grows and takes back."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.e2e.yarn import rest
from tests.e2e.yarn.cluster import StartCluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.fallow_process import MIB, Fallow, spec_of
from tests.e2e.yarn.host_memory import HostMemory
from tests.e2e.yarn.rest import wait_for
from tests.e2e.yarn.sizes import CPUS, sizes
from tests.e2e.yarn_spark.spark import EXECUTOR_MB, MASTER_MB, OVERHEAD_MB, Job, home

EXECUTORS = 4
CONTAINER_MB = EXECUTOR_MB + OVERHEAD_MB
ALLOCATED_MB = MASTER_MB + EXECUTORS * CONTAINER_MB
UNDER_LOAD_MB = MASTER_MB + 2 * CONTAINER_MB
LENT_MB = ALLOCATED_MB + CONTAINER_MB
VCORE_MILLI = 1  # the CPU of all executors is less than what this host has at any load
SETUP = Setup(node_managers=2, memory_mb=4096, vcores=1000 * CPUS, heartbeat_ms=300)
STEP_MB, MOST_MB = 48, 8192  # of the load
SECONDS = 90

pytestmark = pytest.mark.timeout(7 * SECONDS, func_only=True)


@pytest.fixture
def spark() -> Path:
    found = home()
    if found is None:
        reason = "needs PyPI's pyspark: tox -e yarn-spark installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@contextmanager
def load_until(enough: Callable[[], bool]) -> Iterator[None]:
    """Real memory that is used to the end: a little more at a time, whenever it is not enough."""
    over = threading.Event()
    held: list[bytes] = []

    def hold() -> None:
        while not over.wait(0.2) and len(held) * STEP_MB < MOST_MB:
            with suppress(*rest.NOT_YET):
                if not enough():
                    held.append(b"\1" * (STEP_MB * MIB))

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    try:
        wait_for(enough, SECONDS, "the load to be felt")
        yield
    finally:
        over.set()
        thread.join()
        held.clear()


def test_a_job_ends_well_and_executors_taken_back_are_no_failures(
    spark: Path, yarn_cluster: StartCluster, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    cluster = yarn_cluster(SETUP)
    host = HostMemory(LENT_MB, slack_mb=1024)
    fallow = Fallow(
        tmp_path / "fallow",
        {"real": {**spec_of(cluster.rm), "vcoreMilli": VCORE_MILLI}},
        cpu_reserved_milli=0,
        memory_limit_mb=LENT_MB,
    )
    fallow.add(
        "fallow.yaml",
        takeBack={"mode": "enforce", "after": "2s", "notice": "60s"},
        capacity={"cpu": {"watermark": "95%"}, "memory": host.capacity()},
    )

    def lent_mb() -> int:
        return sum(mb for mb, _ in sizes(cluster).values())

    with fallow:
        fallow.start()
        wait_for(lambda: lent_mb() <= LENT_MB, SECONDS, "sizes below those that were configured")
        with Job(spark, cluster, tmp_path / "spark", EXECUTORS) as job:
            wait_for(
                lambda: job.executors() == EXECUTORS and job.rounds() >= 1, 2 * SECONDS, "the executors, and a round"
            )
            with load_until(lambda: lent_mb() <= UNDER_LOAD_MB):
                wait_for(lambda: bool(fallow.told("take_back_starts")), SECONDS, "the take-back")
                wait_for(lambda: job.lost() != {}, 2 * SECONDS, "lost executors")
                wait_for(lambda: "was preempted" in "".join(job.lost().values()), SECONDS, "why they were lost")
            wait_for(lambda: lent_mb() >= ALLOCATED_MB, SECONDS, "sizes to grow again")
            wait_for(lambda: job.executors() == EXECUTORS, SECONDS, "executors in place of the lost ones")
            done = job.rounds()
            wait_for(lambda: job.rounds() > done, SECONDS, "a round of them")
            assert job.end(SECONDS) == 0, job.log.read_text()[-4000:]
    lost, forgiven = job.lines("Lost executor"), job.lines("Not counting this failure")
    print(f"{job.rounds()} rounds", *lost, *forgiven, *fallow.told("take_back_starts"), sep="\n")
    record_property("lost", lost)
    assert all("was preempted" in reason for reason in job.lost().values())
    (app,) = rest.call(cluster.rm.web, "/ws/v1/cluster/apps")["apps"]["app"]
    assert app["finalStatus"] == "SUCCEEDED"
