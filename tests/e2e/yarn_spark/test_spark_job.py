"""Two PySpark jobs on a real YARN whose nodes `fallow run` shrinks, grows and takes back, one of them with dynamic
allocation.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
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

EXECUTORS = 2  # of each of two jobs
CONTAINER_MB = EXECUTOR_MB + OVERHEAD_MB
ALLOCATED_MB = 2 * (MASTER_MB + EXECUTORS * CONTAINER_MB)
UNDER_LOAD_MB = 2 * MASTER_MB + 2 * CONTAINER_MB
LENT_MB = ALLOCATED_MB + CONTAINER_MB
VCORE_MILLI = 1  # the CPU of all executors is less than what this host has at any load
SETUP = Setup(memory_mb=8192, vcores=1000 * CPUS, heartbeat_ms=300)
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


def test_jobs_end_well_and_executors_taken_back_are_no_failures(
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
        with ExitStack() as stack:
            static = stack.enter_context(Job(spark, cluster, tmp_path / "static", EXECUTORS, dynamic=False))
            wait_for(lambda: static.executors() == EXECUTORS, SECONDS, "the executors of the first job")
            # The newest containers are its executors, so that it loses one.
            dynamic = stack.enter_context(Job(spark, cluster, tmp_path / "dynamic", EXECUTORS, dynamic=True))
            jobs = (static, dynamic)

            def have_all() -> bool:
                return all(job.executors() == EXECUTORS for job in jobs)

            wait_for(lambda: have_all() and all(job.rounds() for job in jobs), 2 * SECONDS, "executors, and a round")
            with load_until(lambda: lent_mb() <= UNDER_LOAD_MB):
                wait_for(lambda: bool(fallow.told("take_back_starts")), SECONDS, "the take-back")
                wait_for(lambda: "was preempted" in "".join(dynamic.lost().values()), 3 * SECONDS, "a lost executor")
            wait_for(lambda: lent_mb() >= ALLOCATED_MB, SECONDS, "sizes to grow again")
            wait_for(have_all, SECONDS, "executors in place of the lost ones")
            for job in jobs:
                done = job.rounds()
                wait_for(lambda job=job, done=done: job.rounds() > done, SECONDS, "a round of them")  # type: ignore[misc]
            for job in jobs:
                assert job.end(SECONDS) == 0, job.log.read_text()[-4000:]
    lines = [
        line for job in jobs for part in ("Lost executor", "Not counting this failure") for line in job.lines(part)
    ]
    print(*(f"{job.rounds()} rounds" for job in jobs), *lines, *fallow.told("take_back_starts"), sep="\n")
    record_property("lost", lines)
    assert all("was preempted" in reason for job in jobs for reason in job.lost().values())
    apps = rest.call(cluster.rm.web, "/ws/v1/cluster/apps")["apps"]["app"]
    assert [app["finalStatus"] for app in apps] == ["SUCCEEDED"] * 2
