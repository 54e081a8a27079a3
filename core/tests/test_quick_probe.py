import os
from pathlib import Path

import pytest

from fallow_core.node.memory_info import PAGE_BYTES
from fallow_core.node.quick_probe import CpuReading, KeptFile, QuickProbe

MEMINFO = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n"
PAGES = 100 * 1024 // PAGE_BYTES
ZONEINFO = f"Node 0, zone   Normal\n  pages free     {PAGES}\n        managed  {10 * PAGES}\n"
ZONEINFO += f"    cpu: 0\n              count:    {PAGES}\n"


class Fake:
    """A root with a procfs and a v1 tree that accounts CPU; `now` is the time."""

    def __init__(self, root: Path) -> None:
        self.proc, self.tree, self.now = root / "proc", root / "cpuacct", 100.0
        self.own = 7.0
        (self.proc / "self").mkdir(parents=True)
        (self.tree / "yarn").mkdir(parents=True)
        mount = f"30 20 0:1 / {self.tree} rw - cgroup cgroup rw,cpuacct\n"
        (self.proc / "self" / "mountinfo").write_text(mount)
        self.put("meminfo", MEMINFO)
        self.put("zoneinfo", ZONEINFO)
        self.put("stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 100 0 100 800 0 0 0 0 0 0\n")
        self.use(0, 0)

    def put(self, name: str, text: str) -> None:
        (self.proc / name).write_text(text)

    def use(self, total_milliseconds: int, batch_milliseconds: int) -> None:
        (self.tree / "cpuacct.usage").write_text(f"{total_milliseconds * 1_000_000}\n")
        (self.tree / "yarn" / "cpuacct.usage").write_text(f"{batch_milliseconds * 1_000_000}\n")

    def look(self) -> QuickProbe:
        return QuickProbe(lambda: self.now, self.proc, own_seconds=lambda: self.own)


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path)


def others(look: QuickProbe, groups: list[str]) -> int | None:
    found = look.cpu(groups)
    return None if found is None else found.others_milli


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as the kernel lists it


def test_memory_in_use_is_without_what_can_be_had(fake: Fake) -> None:
    look = fake.look()
    assert look.memory_used(near=1 << 30) == 600 * 1024
    fake.put("meminfo", MEMINFO.replace("400", "300"))
    assert look.memory_used(near=1 << 30) == 700 * 1024
    look.close()


def test_free_memory_behind_watermarks_is_not_in_use(fake: Fake) -> None:
    look = fake.look()
    fake.put("meminfo", MEMINFO.replace("400", "0"))
    assert look.memory_used(near=1 << 30) == 900 * 1024
    look.close()


def test_the_lists_of_cpus_of_another_host_free_nothing(fake: Fake) -> None:
    look = fake.look()
    fake.put("zoneinfo", ZONEINFO.replace(f"managed  {10 * PAGES}", f"managed  {90 * PAGES}"))
    assert look.memory_used(near=0) == 600 * 1024
    look.close()


def test_all_zones_of_a_large_host_are_read(fake: Fake) -> None:
    look = fake.look()
    empty = "Node 0, zone  Empty\n" + "              start_pfn: 0\n" * 10_000
    fake.put("zoneinfo", empty + ZONEINFO)
    assert look.memory_used(near=0) == 500 * 1024
    look.close()


def test_near_the_threshold_what_lists_of_cpus_hold_is_not_in_use_either(fake: Fake) -> None:
    look = fake.look()
    assert look.memory_used(near=600 * 1024) == 500 * 1024
    look.close()


@pytest.mark.parametrize("text", ["", "MemTotal: 1000 kB\n", "garbage\x00", MEMINFO.replace(" kB", ""), MEMINFO[:30]])
def test_garbage_in_meminfo_is_not_known(fake: Fake, text: str) -> None:
    look = fake.look()
    fake.put("meminfo", text)
    assert look.memory_used(near=0) is None
    look.close()


def test_cpu_besides_batch_is_all_less_the_groups(fake: Fake) -> None:
    look = fake.look()
    assert others(look, ["yarn"]) is None
    fake.now += 0.1
    fake.use(150, 100)
    assert look.cpu(["yarn"]) == CpuReading(batch_milli=1000, others_milli=500)
    fake.now += look.window_seconds / 2
    fake.use(200, 100)
    assert others(look, ["yarn"]) == 500  # too short to say anything
    fake.now += 0.1
    assert others(look, ["yarn"]) == pytest.approx(50 / 0.12, abs=1)
    look.close()


def test_the_cpu_of_this_process_itself_is_no_load(fake: Fake) -> None:
    look = fake.look()
    others(look, ["yarn"])
    fake.now += 0.1
    fake.own += 0.1
    fake.use(110, 0)
    assert others(look, ["yarn"]) == 100
    look.close()


def test_after_other_groups_came_it_is_not_known_for_once(fake: Fake) -> None:
    look = fake.look()
    others(look, ["yarn"])
    fake.now += 0.1
    assert others(look, []) is None
    fake.now += 0.1
    assert others(look, []) == 0
    look.close()


def test_a_group_that_is_gone_leaves_it_unknown_and_no_descriptor_open(fake: Fake) -> None:
    before = descriptors()
    look = fake.look()
    others(look, ["yarn", "gone"])
    fake.now += 0.1
    assert others(look, ["yarn", "gone"]) is None
    look.close()
    assert descriptors() == before


def test_counters_that_went_backwards_are_no_negative_use(fake: Fake) -> None:
    look = fake.look()
    fake.use(1000, 0)
    others(look, ["yarn"])
    fake.now += 0.1
    fake.use(0, 0)
    assert others(look, ["yarn"]) == 0
    look.close()


def test_without_accounting_of_groups_it_is_not_known_and_says_so(fake: Fake) -> None:
    fake.put("self/mountinfo", "")
    look = fake.look()
    assert look.missing == "no control group accounts CPU"
    assert others(look, ["yarn"]) is None
    look.close()


def test_a_group_that_is_not_accounted_is_named(fake: Fake) -> None:
    look = fake.look()
    assert others(look, ["elsewhere"]) is None
    assert "cpuacct/elsewhere/cpuacct.usage cannot be read" in look.missing
    look.close()


def test_on_v2_the_groups_are_in_cpu_stat_and_the_total_in_ticks(fake: Fake) -> None:
    fake.put("self/mountinfo", f"30 20 0:1 / {fake.tree} rw - cgroup2 cgroup2 rw\n")
    (fake.tree / "cgroup.controllers").write_text("cpu memory\n")
    (fake.tree / "yarn" / "cpu.stat").write_text("usage_usec 0\nuser_usec 0\n")
    look = fake.look()
    assert others(look, ["yarn"]) is None
    fake.now += 1.0
    fake.put("stat", "cpu  150 0 100 850 0 0 0 0 0 0\n")
    (fake.tree / "yarn" / "cpu.stat").write_text("usage_usec 200000\nuser_usec 0\n")
    assert others(look, ["yarn"]) == 300
    assert look.window_seconds == 0.2
    look.close()


def test_a_kept_file_that_was_replaced_by_none_is_empty_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "file"
    file = KeptFile(str(path))
    assert file.read() == b""
    path.write_text("a")
    assert file.read() == b"a"
    path.write_text("bc")
    assert file.read() == b"bc"
    file.close()


def test_the_real_host_can_be_probed() -> None:
    look = QuickProbe()
    used = look.memory_used(near=0)
    assert used is not None
    assert used > 0
    look.close()
