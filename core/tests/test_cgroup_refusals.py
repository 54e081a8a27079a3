"""What kernels refuse, what others change, and what vanishes, while batch is limited."""

import errno
import logging
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_agent import messages
from core.tests.fake_cgroups import FakeCgroups

from fallow_core.agent.throttling.cgroup_plan import GroupTarget
from fallow_core.agent.throttling.cgroup_writer import REPEAT_SECONDS, CgroupWriter
from fallow_core.agent.throttling.refusals import RETRY_SECONDS
from fallow_core.model.control_file import ControlFile, file_name
from fallow_core.node.cgroups import memory
from fallow_core.state.original_values import OriginalValuesFile

GIB = 1 << 30
ETL = frozenset({"yarn/etl"})
ALL = ("cpu", "memory", "cpuset")


class Acting:
    """A writer, and its clock, which each tick moves on."""

    def __init__(self, fake: FakeCgroups, folder: Path) -> None:
        self.fake, self.folder, self.now = fake, folder, 0.0
        self.start()

    def start(self) -> None:
        file = OriginalValuesFile(self.folder, boot_id="boot")
        self.writer = CgroupWriter(self.fake.hierarchy, file, lambda: self.now)

    def tick(self, group: str = "yarn", cores: float | Fraction = 0.5, **more: Any) -> None:
        self.writer.apply(group, GroupTarget(clusters=ETL, limit=Fraction(cores), **more))
        self.now += 1


@pytest.fixture(params=[1, 2])
def acting(request: pytest.FixtureRequest, tmp_path: Path) -> Acting:
    fake = FakeCgroups(request.param, controllers=ALL)
    fake.add("yarn/c1", 11, cpus=fake.online_cpus)
    fake.groups["yarn"].cpus = fake.online_cpus
    return Acting(fake, tmp_path)


@pytest.fixture
def tried(acting: Acting, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were written, also in vain."""
    found: list[str] = []
    write = acting.fake.write

    def noted(path: str, text: str) -> None:
        found.append(path)
        write(path, text)

    monkeypatch.setattr(acting.fake, "write", noted)
    return found


@pytest.mark.parametrize("file", [ControlFile.LIMIT, ControlFile.WEIGHT, ControlFile.MEMORY, ControlFile.CPUS])
@pytest.mark.parametrize("number", [errno.EINVAL, errno.EOPNOTSUPP])
def test_what_the_kernel_does_not_support_is_said_once_and_tried_again_after_a_long_while(
    acting: Acting, tried: list[str], file: ControlFile, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = f"{acting.fake.mount}/yarn/{file_name(file, acting.fake.version)}"
    acting.fake.fails[path] = number
    texts = {ControlFile.WEIGHT: "7", ControlFile.MEMORY: f"{GIB}"}

    def tick(cores: Fraction) -> None:
        acting.tick(cores=cores, texts=texts, cpus=frozenset({0, 1}))

    with caplog.at_level(logging.WARNING):
        for second in range(100):
            tick(Fraction(50 + second, 100))  # another limit each time
    group = acting.fake.groups["yarn"]
    assert tried.count(path) <= 4  # v1 tries a CPU limit twice, with the groups below
    assert len(messages(caplog.records, "group_not_changed")) == 1
    assert "does not support it" in acting.writer.problems["yarn"]
    assert path in acting.writer.problems["yarn"]
    others = {
        ControlFile.LIMIT: group.quota == 149_000,
        ControlFile.WEIGHT: group.weight == 7,
        ControlFile.MEMORY: group.memory_limit == GIB,
        ControlFile.CPUS: group.cpus == {0, 1},
    }
    assert [name for name, is_set in others.items() if not is_set] == [file]
    acting.fake.fails.clear()
    acting.now += RETRY_SECONDS
    tick(Fraction(149, 100))
    assert acting.writer.problems == {}
    assert (group.quota, group.weight, group.memory_limit, set(group.cpus)) == (149_000, 7, GIB, {0, 1})


def test_a_refusal_of_one_moment_is_tried_again_at_once(acting: Acting) -> None:
    acting.fake.fails[f"{acting.fake.mount}/yarn/{file_name(ControlFile.LIMIT, acting.fake.version)}"] = errno.EINVAL
    acting.tick()
    acting.fake.fails.clear()
    acting.tick()
    assert (acting.fake.groups["yarn"].quota, acting.writer.problems) == (50_000, {})


def test_a_child_of_a_task_does_not_get_what_is_refused_at_each_round(acting: Acting, tried: list[str]) -> None:
    acting.writer.make("own", "", ETL)
    acting.fake.make(f"{acting.fake.mount}/own/t")
    path = f"{acting.fake.mount}/own/t/{file_name(ControlFile.WEIGHT, acting.fake.version)}"
    acting.fake.fails[path] = errno.EINVAL
    taken = [acting.writer.set_child("own", "t", {ControlFile.WEIGHT: "9"}) for _ in range(20)]
    assert (tried.count(path), any(taken)) == (2, False)
    assert "does not support it" in acting.writer.problems["own/t"]


def test_the_same_problem_with_another_number_is_not_logged_again(
    acting: Acting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(acting.fake, "_set_limit", lambda *args: None)  # the kernel takes it for something else
    with caplog.at_level(logging.WARNING):
        for second in range(50):
            acting.tick(cores=0.5 + second / 100)
        assert len(messages(caplog.records, "group_not_changed")) == 1
        acting.now += REPEAT_SECONDS
        acting.tick()
    assert len(messages(caplog.records, "group_not_changed")) == 2


def test_a_lower_limit_that_others_set_later_wins_and_goes_with_them(acting: Acting) -> None:
    group = acting.fake.groups["yarn"]
    acting.tick(cores=2)
    group.quota = 30_000
    for _ in range(3):
        acting.tick(cores=2)
    assert (group.quota, acting.writer.resets) == (30_000, 1)
    acting.tick(cores=0.1)
    assert group.quota == 10_000
    acting.tick(cores=2)
    assert group.quota == 30_000
    acting.writer.release("yarn")
    assert group.quota == 30_000


def test_a_limit_that_others_raise_later_is_theirs_and_ours_stays_in_force(acting: Acting) -> None:
    group = acting.fake.groups["yarn"]
    group.quota = 30_000
    acting.tick(cores=2)
    acting.tick(cores=0.1)
    group.quota = 90_000
    acting.tick(cores=0.5)
    assert group.quota == 50_000
    acting.tick(cores=2)
    assert group.quota == 90_000


def test_a_lower_limit_of_others_is_known_to_the_next_process_too(acting: Acting) -> None:
    acting.tick(cores=2)
    acting.fake.groups["yarn"].quota = 30_000
    acting.tick(cores=2)
    acting.start()
    for _ in range(2):
        acting.tick(cores=2)
    assert acting.fake.groups["yarn"].quota == 30_000
    acting.fake.groups["yarn"].quota = 20_000
    acting.tick(cores=2)
    assert acting.fake.groups["yarn"].quota == 20_000


def test_a_lower_memory_limit_that_others_set_later_wins(acting: Acting) -> None:
    group, texts = acting.fake.groups["yarn"], {ControlFile.MEMORY: f"{4 * GIB}"}
    acting.tick(texts=texts)
    group.memory_limit = 2 * GIB
    for _ in range(3):
        acting.tick(texts=texts)
    assert group.memory_limit == 2 * GIB
    acting.writer.release("yarn")
    assert group.memory_limit == 2 * GIB


def test_garbage_that_appears_later_is_nobodys_limit(acting: Acting) -> None:
    acting.tick()
    path = f"{acting.fake.mount}/yarn/{file_name(ControlFile.LIMIT, acting.fake.version)}"
    acting.fake.garbage[path] = "lots"
    acting.tick()
    del acting.fake.garbage[path]
    acting.writer.release("yarn")
    assert acting.fake.groups["yarn"].quota is None


@pytest.mark.parametrize("kib", [4, 16, 64])
def test_a_memory_limit_is_written_once_whatever_the_size_of_a_page(
    acting: Acting, kib: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "PAGE_BYTES", kib << 10)
    for _ in range(5):
        acting.tick(texts={ControlFile.MEMORY: memory.limit_text(3 * GIB + 12_345)})
    written = [path for path, _ in acting.fake.writes if "memory" in path]
    assert (len(written), acting.writer.problems, acting.writer.resets) == (1, {}, 0)


def test_a_group_below_that_vanishes_before_its_write_keeps_no_other_one_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeCgroups(1)
    for name in ("a", "b", "c"):
        fake.add(f"yarn/{name}", quota=300_000)
    acting, write = Acting(fake, tmp_path), fake.write

    def vanishing(path: str, text: str) -> None:
        if path.endswith("/yarn/b/cpu.cfs_quota_us"):
            fake.vanish("yarn/b")
        write(path, text)

    monkeypatch.setattr(fake, "write", vanishing)
    acting.tick(cores=1)
    quotas = {path: group.quota for path, group in fake.groups.items() if path}
    assert quotas == {"yarn": 100_000, "yarn/a": 100_000, "yarn/c": 100_000}
    assert acting.writer.problems == {}


def test_a_group_that_vanishes_while_others_are_restored_keeps_none_of_them_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeCgroups(1)
    for name in ("a", "b", "c"):
        fake.add(f"yarn/{name}", quota=300_000)
    acting, write = Acting(fake, tmp_path), fake.write
    acting.tick(cores=1)

    def vanishing(path: str, text: str) -> None:
        if path.endswith("/yarn/b/cpu.cfs_quota_us"):
            fake.vanish("yarn/b")
        write(path, text)

    monkeypatch.setattr(fake, "write", vanishing)
    acting.writer.release("yarn")
    quotas = {path: group.quota for path, group in fake.groups.items() if path}
    assert quotas == {"yarn": None, "yarn/a": 300_000, "yarn/c": 300_000}
    assert (acting.writer.changed_groups, acting.writer.problems) == ({}, {})
