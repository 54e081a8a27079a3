from pathlib import Path

import pytest
from core.tests.fake_cgroups import FakeCgroups

from fallow_core.diagnostics import throttling
from fallow_core.model.qos_policy import OnlinePressurePolicy, StrategyMode

ALL = ("cpu", "memory", "cpuset")
HOST = Path("/")


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the test may write everywhere."""
    monkeypatch.setattr("os.access", lambda path, mode: True)


def found(fake: FakeCgroups) -> dict[str, tuple[bool | None, str]]:
    return {finding.subject: (finding.ok, finding.detail) for finding in throttling.findings(HOST, files=fake)}


def test_each_way_to_slow_batch_down_is_told_with_what_this_kernel_has_for_it() -> None:
    fake = FakeCgroups(1, controllers=ALL, extras=frozenset({"cpu.idle"}))
    fake.swap_free = 512 << 20
    where = "can be limited: cgroup v1 at /sys/fs/cgroup/cpu,cpuacct"
    assert found(fake) == {
        "CPU of batch": (True, where),
        "memory of batch": (True, where),
        "CPUs of batch": (True, where),
        "memoryReclaim": (True, "by memory.limit_in_bytes, lowered for a moment; 512 MiB of free swap"),
        "identity": (True, "by cpu.idle"),
        "cpuSuppress.cpuset": (True, "8 CPUs, 8 cores, 1 NUMA zones"),
    }


def test_on_v2_what_a_group_has_counts_since_the_root_has_hardly_anything() -> None:
    fake = FakeCgroups(2, controllers=ALL, extras=frozenset({"memory.reclaim", "cpu.bvt_warp_ns"}))
    assert found(fake)["memoryReclaim"] == (None, "not known: no group has the memory controller yet")
    fake.add("system.slice")
    told = found(fake)
    assert told["memoryReclaim"] == (True, "by memory.reclaim; no free swap: file pages alone")
    assert told["identity"] == (True, "by cpu.bvt_warp_ns")


def test_what_a_host_lacks_is_said_with_its_reason_and_keeps_nothing_else_from_it() -> None:
    fake = FakeCgroups(1)
    told = found(fake)
    assert told["CPU of batch"][0] is True
    assert told["memory of batch"] == (
        None,
        "cannot be limited: no cgroup hierarchy with the controller memory is mounted",
    )
    assert told["identity"][0] is None
    assert "this kernel has neither cpu.idle" in told["identity"][1]
    fake.mountinfo = ""
    assert {ok for ok, _ in found(fake).values()} == {None}


def test_who_may_not_write_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert found(FakeCgroups(1))["CPU of batch"] == (
        None,
        "cannot be limited by this user: cgroup v1 at /sys/fs/cgroup/cpu,cpuacct",
    )


def test_files_that_hold_garbage_are_named_and_not_an_error() -> None:
    fake = FakeCgroups(1, controllers=ALL)
    fake.garbage["/sys/devices/system/cpu/online"] = "all of them"
    assert "cpu/online: expected a list of CPUs" in found(fake)["cpuSuppress.cpuset"][1]


def test_a_group_of_online_services_whose_pressure_cannot_be_read_is_told() -> None:
    fake = FakeCgroups(2, controllers=ALL)
    policy = OnlinePressurePolicy(mode=StrategyMode.OBSERVE, groups=("onlin",))
    told = [finding for finding in throttling.findings(HOST, policy, fake) if finding.subject == "onlinePressure"]
    assert [(finding.ok, finding.detail.partition(", so")[0]) for finding in told] == [
        (False, "/onlin: its memory pressure cannot be read")
    ]
