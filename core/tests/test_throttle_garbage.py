"""Whatever a file of a control group says or refuses, the throttle goes on with the rest and names the file."""

import errno
from pathlib import Path

import pytest
from core.tests.fake_cgroups import FakeCgroups
from core.tests.qos_values import GIB
from core.tests.test_throttle import ENFORCE, Batch, made

from fallow_core.model.qos_policy import (
    CgroupReconcilePolicy,
    CpuSuppressPolicy,
    IdentityPolicy,
    MemoryReclaimPolicy,
    Placing,
)

ALL = ("cpu", "memory", "cpuset")
EXTRAS = frozenset({"cpu.idle", "memory.reclaim"})
FILES = {
    1: [
        "cgroup.procs",
        "cpu.cfs_period_us",
        "cpu.cfs_quota_us",
        "cpu.idle",
        "cpu.shares",
        "cpu.stat",
        "cpuset.cpus",
        "memory.limit_in_bytes",
        "memory.stat",
        "memory.swappiness",
        "memory.usage_in_bytes",
        "memory.use_hierarchy",
    ],
    2: [
        "cgroup.procs",
        "cpu.idle",
        "cpu.max",
        "cpu.stat",
        "cpu.weight",
        "cpuset.cpus",
        "cpuset.cpus.effective",
        "memory.current",
        "memory.max",
        "memory.stat",
        "memory.swap.max",
    ],
}
LIMITS = ("cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.max")
CASES = [(version, name) for version, names in FILES.items() for name in names]


def throttled(version: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Batch:
    """A node on which every strategy of throttling enforces, and has something to do."""
    batch = Batch(FakeCgroups(version, controllers=ALL, extras=EXTRAS), folder, monkeypatch)
    made(batch, "c1")
    cpus = frozenset(range(8)) if version == 1 else frozenset()
    batch.fake.add("hadoop-yarn/c1", cpus=cpus)
    batch.fake.add("hadoop-yarn", inactive_file=4 * GIB, inactive_anon=GIB, cpus=cpus)
    batch.fake.swap_free = GIB
    batch.memory_percent = 90
    batch.modes(
        ENFORCE,
        ENFORCE,
        cpu_suppress=CpuSuppressPolicy(mode=ENFORCE, cpuset=Placing.PACKED),
        cgroup_reconcile=CgroupReconcilePolicy(mode=ENFORCE, memory_limit_percent=500),
        identity=IdentityPolicy(mode=ENFORCE),
        memory_reclaim=MemoryReclaimPolicy(mode=ENFORCE),
    )
    return batch


@pytest.mark.parametrize("garbage", ["", "\x00\xff max", "99999999999999999999999"])
@pytest.mark.parametrize(("version", "name"), CASES)
def test_garbage_in_one_file_leaves_the_rest_to_go_on(
    version: int, name: str, garbage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = throttled(version, tmp_path, monkeypatch)
    path = f"{batch.fake.mount}/hadoop-yarn/{name}"
    batch.fake.garbage[path] = garbage
    batch.run(4)
    group = batch.fake.groups["hadoop-yarn"]
    if name not in LIMITS:
        assert group.quota is not None
    if not name.startswith("memory"):
        assert group.inactive_file < 4 * GIB
    if not name.startswith("cpuset"):
        assert group.cpus == frozenset(range(2, 8))
    del batch.fake.garbage[path]
    batch.run(11)
    assert (group.quota, group.idle, batch.limiter.cpu.writer.problems) == (600_000, 1, {})


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENODEV])
@pytest.mark.parametrize(("version", "name"), CASES)
def test_a_file_that_may_not_be_written_leaves_the_rest_to_go_on(
    version: int, name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = throttled(version, tmp_path, monkeypatch)
    batch.fake.fails[f"{batch.fake.mount}/hadoop-yarn/{name}"] = number
    batch.run(4)
    group = batch.fake.groups["hadoop-yarn"]
    assert (group.quota is not None) == (name not in LIMITS or name == "cpu.cfs_period_us")
    assert (group.idle == 1) == (name != "cpu.idle")
    batch.fake.fails.clear()
    batch.run(12)
    assert (group.quota, group.idle, batch.limiter.cpu.writer.problems) == (600_000, 1, {})
