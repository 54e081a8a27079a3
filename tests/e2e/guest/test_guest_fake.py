"""This kernel takes and refuses what the fake of core's own tests takes and refuses."""

from core.tests.fake_cgroups import FakeCgroups
from tests.e2e.guest.conftest import Start
from tests.e2e.told import differences, told

from fallow_core.node.cgroups.hierarchy import Hierarchy

NAMES = [
    "cpu.weight",
    "cpu.max",
    "cpu.idle",
    "memory.max",
    "memory.high",
    "memory.low",
    "memory.swap.max",
    "cpuset.cpus",
]
WRITES = [
    ("", "cpu.max", "150000"),
    ("/c1", "cpu.max", "400000 50000"),
    ("/c1", "cpu.max", "max"),
    ("/c1", "cpu.max", "50000 100000"),
    ("/c1/deep", "cpu.max", "999"),
    ("/c1/deep", "cpu.max", "0"),
    ("/c1/deep", "cpu.max", "1000"),
    ("/c1/deep", "cpu.max", "1000 999"),
    ("/c1/deep", "cpu.max", "1000 1000001"),
    ("/c1/deep", "cpu.max", "2000000 1000000"),
    ("/c1", "cpu.weight", "0"),
    ("/c1", "cpu.weight", "10001"),
    ("/c1", "cpu.weight", "10000"),
    ("/c1", "cpu.weight", "1"),
    ("/c1", "cpu.idle", "2"),
    ("/c1", "cpu.idle", "1"),
    ("/c1", "cpu.weight", "7"),
    ("/c1", "cpu.idle", "0"),
    ("/c2", "cpu.weight", "9"),
    ("/c2", "cpu.idle", "1"),
    ("/c1", "memory.max", "67108864"),
    ("/c1", "memory.max", "67108865"),
    ("/c1", "memory.max", "-1"),
    ("/c1/deep", "memory.max", "134217728"),
    ("/c1", "memory.max", "max"),
    ("/c1", "memory.high", "33554432"),
    ("/c1", "memory.high", "max"),
    ("/c1", "memory.low", "33554433"),
    ("/c1", "memory.low", "0"),
    ("/c1", "memory.reclaim", "4096"),
    ("/c1", "memory.limit_in_bytes", "4096"),
    ("/c1", "cpuset.cpus", "1"),
    ("/c1/deep", "cpuset.cpus", "0-1"),
    ("/c1/deep", "cpuset.cpus", "0,1"),
    ("/c1/deep", "cpuset.cpus", ""),
    ("/c1", "cpuset.cpus", "7"),
    ("/c1", "cpu.stat", "1"),
    ("/c1", "cpu.shares", "1"),
    ("/none", "cpu.weight", "2"),
]
POPULATED = [
    ("/c1", "cpuset.cpus", ""),
    ("/c1/deep", "cpuset.cpus", ""),
    ("/c1/deep", "cpuset.cpus", "0"),
    ("/c1/deep", "cpuset.cpus", ""),
    ("/c2", "cpuset.cpus", "1"),
    ("/c2", "cpuset.cpus", ""),
]


def test_the_fake_of_the_unit_tests_answers_as_this_kernel(hierarchy: Hierarchy, top: str, start: Start) -> None:
    process = start("", "sleep", "60")
    fake = FakeCgroups(2, controllers=("cpu", "memory", "cpuset"), extras=frozenset({"cpu.idle", "memory.reclaim"}))
    fake.online_cpus = frozenset({0, 1})
    fake.add(top)
    fake.add("", process)
    by_fake = told(fake.hierarchy, top, process, WRITES, NAMES, POPULATED)
    assert differences(by_fake, told(hierarchy, top, process, WRITES, NAMES, POPULATED)) == {}
