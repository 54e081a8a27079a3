import errno
import json
import logging
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_agent import messages
from core.tests.fake_cgroups import FakeCgroups
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fallow_core.agent.throttling.cgroup_plan import GroupTarget
from fallow_core.agent.throttling.cgroup_writer import CgroupWriter
from fallow_core.errors import StateError
from fallow_core.model.control_file import ControlFile
from fallow_core.state.original_values import OriginalValuesFile

ETL = frozenset({"yarn/etl"})


def writer(fake: FakeCgroups, folder: Path, boot_id: str = "boot") -> CgroupWriter:
    return CgroupWriter(fake.hierarchy, OriginalValuesFile(folder, boot_id=boot_id))


def wanted(cores: float | Fraction | None = None, weight: str | None = None, **more: Any) -> GroupTarget:
    texts = {} if weight is None else {ControlFile.WEIGHT: weight}
    return GroupTarget(clusters=ETL, limit=None if cores is None else Fraction(cores), texts=texts, **more)


def take_in(acting: CgroupWriter, group: str, home: str, *pids: int) -> None:
    """Put processes into a child of a group that is made below the one where they are."""
    acting.make(group, home, ETL)
    acting.move_into_child(group, "t", {ControlFile.WEIGHT: "9"}, pids)


def quota(fake: FakeCgroups, path: str = "yarn") -> int | None:
    return fake.groups[path].quota


@pytest.fixture(params=[1, 2])
def fake(request: pytest.FixtureRequest) -> FakeCgroups:
    fake = FakeCgroups(request.param)
    fake.add("yarn/c1", 11)
    fake.add("yarn/c2", 12)
    return fake


def test_a_limit_and_a_weight_come_into_force_and_go_again(fake: FakeCgroups, tmp_path: Path) -> None:
    before = fake.values()
    least = {1: "2", 2: "1"}[fake.version]
    acting = writer(fake, tmp_path)
    acting.apply("yarn", wanted(1.5, least))
    assert (fake.groups["yarn"].quota, fake.groups["yarn"].weight) == (150_000, int(least))
    assert {path: found for path, found in fake.values().items() if path != "yarn"} == {
        path: found for path, found in before.items() if path != "yarn"
    }
    acting.release("yarn")
    assert fake.values() == before
    assert (acting.changed_groups, acting.problems) == ({}, {})


def test_what_is_as_it_should_be_is_not_written(fake: FakeCgroups, tmp_path: Path) -> None:
    acting = writer(fake, tmp_path)
    for _ in range(3):
        acting.apply("yarn", wanted(1.5))
    assert len(fake.writes) == acting.writes == 1


def test_another_process_puts_back_what_a_killed_one_changed(fake: FakeCgroups, tmp_path: Path) -> None:
    before = fake.values()
    writer(fake, tmp_path).apply("yarn", wanted(0.5, "7"))
    later = writer(fake, tmp_path)
    later.apply("yarn", wanted(0.25, "7"))
    writer(fake, tmp_path).release("yarn")
    assert fake.values() == before


def test_a_value_is_on_the_disk_before_it_is_changed(fake: FakeCgroups, tmp_path: Path) -> None:
    before = fake.values()
    acting = writer(fake, tmp_path / "missing")
    acting.apply("yarn", wanted(0.5))
    assert fake.values() == before
    assert "no control group is changed" in acting.problems["yarn"]


@pytest.mark.parametrize("moment", range(8))
def test_whenever_it_is_killed_everything_can_be_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    class Killed(BaseException):
        pass

    fake = FakeCgroups(1)
    fake.add("nm", 11)
    before = fake.values()
    acting = writer(fake, tmp_path)
    count = 0
    write, make = fake.write, fake.make

    def killed_write(path: str, text: str) -> None:
        nonlocal count
        if count == moment:
            raise Killed
        count += 1
        write(path, text)

    def killed_make(path: str) -> None:
        nonlocal count
        if count == moment:
            raise Killed
        count += 1
        make(path)

    monkeypatch.setattr(fake, "write", killed_write)
    monkeypatch.setattr(fake, "make", killed_make)
    with suppress(Killed):
        take_in(acting, "nm/own", "nm", 11)
        acting.apply("nm/own", wanted(0.5, "7"))
    monkeypatch.undo()
    later = writer(fake, tmp_path)
    for group in list(later.changed_groups):
        later.release(group)
    assert fake.values() == before


def test_what_others_changed_back_is_noticed_and_set_again(
    fake: FakeCgroups, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    acting = writer(fake, tmp_path)
    acting.apply("yarn", wanted(0.5))
    fake.groups["yarn"].quota = None  # as a NodeManager does when it starts
    with caplog.at_level(logging.WARNING):
        acting.apply("yarn", wanted(0.5))
    assert (quota(fake), acting.resets) == (50_000, 1)
    assert len(messages(caplog.records, "group_changed_by_others")) == 1


def test_no_limit_is_above_the_one_that_was_found(fake: FakeCgroups, tmp_path: Path) -> None:
    fake.groups["yarn"].quota = 80_000
    acting = writer(fake, tmp_path)
    acting.apply("yarn", wanted(0.5))
    acting.apply("yarn", wanted(3))
    assert fake.groups["yarn"].quota == 80_000


def test_no_limit_is_above_that_of_a_group_above(tmp_path: Path) -> None:
    fake = FakeCgroups(1)
    fake.add("pod/yarn")
    fake.groups["pod"].quota = 70_000
    acting = writer(fake, tmp_path)
    acting.apply("pod/yarn", wanted(3))
    assert (fake.groups["pod/yarn"].quota, acting.problems) == (70_000, {})


def test_groups_below_with_limits_of_their_own_follow_and_get_them_back(tmp_path: Path) -> None:
    fake = FakeCgroups(1)
    fake.add("yarn/c1/deep/deeper", quota=100_000)
    fake.add("yarn/c2", quota=40_000, period=50_000)
    for path in ("yarn/c1", "yarn/c1/deep"):
        fake.groups[path].quota = 200_000
    before = fake.values()
    acting = writer(fake, tmp_path)
    acting.apply("yarn", wanted(0.5))
    quotas = {path: group.quota for path, group in fake.groups.items() if path}
    assert quotas == {
        "yarn": 50_000,
        "yarn/c1": 50_000,
        "yarn/c1/deep": 50_000,
        "yarn/c1/deep/deeper": 50_000,
        "yarn/c2": 25_000,
    }
    acting.apply("yarn", wanted(1.5))
    assert (fake.groups["yarn/c1"].quota, fake.groups["yarn/c1/deep/deeper"].quota) == (150_000, 100_000)
    assert fake.groups["yarn/c2"].quota == 40_000
    writer(fake, tmp_path).release("yarn")
    assert (fake.values(), acting.problems) == (before, {})


def test_v2_leaves_limits_below_alone_since_the_kernel_takes_the_smaller_one(tmp_path: Path) -> None:
    fake = FakeCgroups(2)
    fake.add("yarn/c1", quota=200_000)
    writer(fake, tmp_path).apply("yarn", wanted(0.5))
    assert [path for path, _ in fake.writes] == ["yarn/cpu.max"]


def test_a_group_that_has_gone_is_no_problem_and_is_forgotten(fake: FakeCgroups, tmp_path: Path) -> None:
    acting = writer(fake, tmp_path)
    acting.apply("yarn", wanted(0.5))
    fake.vanish("yarn")
    acting.apply("yarn", wanted(0.7))
    assert (acting.changed_groups, acting.problems) == ({}, {})
    fake.add("yarn", quota=60_000)
    acting.release("yarn")
    assert fake.groups["yarn"].quota == 60_000


def test_a_group_that_was_made_anew_is_another_one(fake: FakeCgroups, tmp_path: Path) -> None:
    acting = writer(fake, tmp_path)
    acting.apply("yarn", wanted(0.5))
    fake.vanish("yarn")
    fake.add("yarn", quota=60_000)
    acting.apply("yarn", wanted(0.2))
    acting.release("yarn")
    assert fake.groups["yarn"].quota == 60_000


def test_a_group_that_is_gone_is_forgotten_without_a_write_to_the_disk(
    fake: FakeCgroups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acting = writer(fake, tmp_path)
    acting.apply("yarn", wanted(0.5))
    saved: list[object] = []
    monkeypatch.setattr(OriginalValuesFile, "save", lambda _, groups: saved.append(groups))
    fake.vanish("yarn")
    acting.apply("yarn", wanted(0.2))
    assert (acting.changed_groups, saved) == ({}, [])
    assert writer(fake, tmp_path).changed_groups.keys() == {"yarn"}
    later = writer(fake, tmp_path)
    later.release("yarn")
    assert (later.changed_groups, later.problems) == ({}, {})


def test_values_of_before_a_restart_of_the_host_are_not_put_back(fake: FakeCgroups, tmp_path: Path) -> None:
    writer(fake, tmp_path).apply("yarn", wanted(0.5))
    later = writer(fake, tmp_path, boot_id="another")
    assert (later.changed_groups, later.originals_file.lost) == ({}, None)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"\0" * 90, "contains NUL bytes, as after a power cut"),
        (b'{"boot_id": "boot", "groups": {"yarn"', "is not JSON"),
        (b'{"version": 3, "boot_id": "boot", "groups": {}}', "newer Fallow: version 3, this one knows up to 1"),
        (b'{"version": 0, "boot_id": "boot", "groups": {}}', "has no version that there ever was: 0"),
        (b'{"boot_id": 5, "groups": {}}', "boot_id 5 is no text"),
        (b'{"boot_id": "boot", "groups": {"yarn": 5}}', "makes no sense (TypeError"),
        (
            b'{"boot_id":"boot","groups":{"y": {"identity":1, "clusters": [], "home":null, "originals": {"high":5}}}}',
            "5 is no text",
        ),
    ],
)
def test_without_known_original_values_nothing_is_written_before_a_person_decides(
    fake: FakeCgroups, tmp_path: Path, content: bytes, why: str
) -> None:
    file = tmp_path / "original-values.json"
    file.write_bytes(content)
    for _ in range(2):  # two starts
        acting = writer(fake, tmp_path)
        lost = acting.originals_file.lost
        assert lost is not None
        assert why in lost.why
        before = fake.groups["yarn"].quota, fake.groups["yarn"].weight
        acting.apply("yarn", wanted(0.5, "7"))
        acting.make("yarn/fallow.n1", "yarn", frozenset({"alpha/a"}))
        assert not acting.save_original("yarn", ControlFile.MEMORY, frozenset({"alpha/a"}))
        acting.release("yarn")
        assert (fake.groups["yarn"].quota, fake.groups["yarn"].weight) == before
        assert "yarn/fallow.n1" not in fake.groups
        assert "no control group is changed" in acting.problems["yarn/fallow.n1"]
        assert file.read_bytes() == content
    file.rename(tmp_path / "given-up")
    acting.originals_file.given_up()
    acting.apply("yarn", wanted(0.5))
    assert fake.groups["yarn"].quota == 50_000
    acting.release("yarn")
    assert fake.groups["yarn"].quota == before[0]


def test_a_directory_in_place_of_the_original_values_is_unknown(fake: FakeCgroups, tmp_path: Path) -> None:
    (tmp_path / "original-values.json").mkdir()
    lost = writer(fake, tmp_path).originals_file.lost
    assert lost is not None
    assert lost.why == "cannot be read: Is a directory"


def test_original_values_of_a_fallow_without_versions_are_put_back_and_get_one(
    fake: FakeCgroups, tmp_path: Path
) -> None:
    before = fake.groups["yarn"].quota
    writer(fake, tmp_path).apply("yarn", wanted(0.5))
    file = tmp_path / "original-values.json"
    values = json.loads(file.read_text())
    assert values.pop("version") == 1
    file.write_text(json.dumps(values))
    later = writer(fake, tmp_path)
    later.release("yarn")
    assert fake.groups["yarn"].quota == before
    assert json.loads(file.read_text())["version"] == 1


def test_original_values_that_cannot_be_saved_change_no_group(tmp_path: Path) -> None:
    file = OriginalValuesFile(tmp_path / "missing", boot_id="boot")
    with pytest.raises(StateError, match="no control group is changed"):
        file.save({})


@pytest.mark.parametrize("number", [errno.EPERM, errno.EBUSY, errno.EINVAL, errno.ENODEV])
def test_a_refused_write_is_said_and_tried_again(fake: FakeCgroups, tmp_path: Path, number: int) -> None:
    name = {1: "cpu.cfs_quota_us", 2: "cpu.max"}[fake.version]
    fake.fails[f"{fake.mount}/yarn/{name}"] = number
    acting = writer(fake, tmp_path)
    acting.apply("yarn", wanted(0.5, "7"))
    assert name in acting.problems["yarn"]
    acting.apply("yarn/c1", wanted(0.2))  # others go on
    assert fake.groups["yarn/c1"].quota == 20_000
    fake.fails.clear()
    acting.apply("yarn", wanted(0.5, "7"))
    assert (fake.groups["yarn"].quota, fake.groups["yarn"].weight, acting.problems) == (50_000, 7, {})


def test_a_file_that_is_refused_keeps_no_other_one_of_the_group_from_being_written(
    fake: FakeCgroups, tmp_path: Path
) -> None:
    name = {1: "cpu.shares", 2: "cpu.weight"}[fake.version]
    fake.fails[f"{fake.mount}/yarn/{name}"] = errno.EPERM
    acting = writer(fake, tmp_path)
    acting.apply("yarn", wanted(0.5, "7"))
    assert (quota(fake), name in acting.problems["yarn"]) == (50_000, True)
    fake.fails.clear()
    acting.apply("yarn", wanted(0.5, "7"))
    assert (quota(fake), fake.groups["yarn"].weight, acting.problems) == (50_000, 7, {})


def test_garbage_in_a_file_is_said_with_the_file(tmp_path: Path) -> None:
    fake = FakeCgroups(1)
    fake.add("yarn")
    fake.garbage[f"{fake.mount}/yarn/cpu.cfs_quota_us"] = "\x00lots"
    acting = writer(fake, tmp_path)
    acting.apply("yarn", wanted(0.5))
    assert "cpu.cfs_quota_us: expected a number of microseconds" in acting.problems["yarn"]
    assert fake.writes == []


def test_a_value_that_the_kernel_takes_for_another_is_said(
    fake: FakeCgroups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acting = writer(fake, tmp_path)
    monkeypatch.setattr(fake, "_set_limit", lambda *args: None)
    acting.apply("yarn", wanted(0.5))
    assert "was written, and it says" in acting.problems["yarn"]


def test_what_is_unknown_leaves_the_limit_as_it_is(fake: FakeCgroups, tmp_path: Path) -> None:
    acting = writer(fake, tmp_path)
    acting.apply("yarn", wanted(0.5, "7"))
    acting.apply("yarn", wanted(None, "7", keep_limit=True))
    assert quota(fake) == 50_000
    acting.apply("yarn", wanted(None, "7"))
    assert (quota(fake), fake.groups["yarn"].weight) == (None, 7)


@pytest.fixture
def home(fake: FakeCgroups) -> str:
    """The group of three processes. v2 knows no groups below one with processes, but below the root."""
    home = {1: "nm", 2: ""}[fake.version]
    fake.add(home, 20, 21, 22)
    return home


def test_processes_are_moved_and_go_back_with_all_that_they_started(
    fake: FakeCgroups, home: str, tmp_path: Path
) -> None:
    before = fake.values()
    own = f"{home}/own".lstrip("/")
    acting = writer(fake, tmp_path)
    take_in(acting, own, home, 21, -5)
    child = fake.groups[f"{own}/t"]
    child.pids.append(99)  # a child of 21
    acting.apply(own, wanted(0.5, "7"))
    assert (fake.groups[home].pids, child.pids, child.weight) == ([20, 22], [21, 99], 9)
    writer(fake, tmp_path).release(own)
    fake.groups[home].pids.remove(99)
    assert fake.values() == before


def test_only_children_without_processes_are_cleared(fake: FakeCgroups, home: str, tmp_path: Path) -> None:
    own = f"{home}/own".lstrip("/")
    acting = writer(fake, tmp_path)
    take_in(acting, own, home, 21)
    for name in ("gone", "kept"):
        acting.move_into_child(own, name, {ControlFile.WEIGHT: "9"}, [])
    acting.remove_children(own, keep={"kept"})
    assert sorted(fake.hierarchy.children(own)) == ["kept", "t"]


def test_a_process_that_may_not_be_moved_keeps_no_other_one_from_it(
    fake: FakeCgroups, home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"{home}/own".lstrip("/")
    acting = writer(fake, tmp_path)
    move = fake._move

    def but_21(pid: int, group: str) -> None:
        if pid == 21:
            raise OSError(errno.EINVAL, "Invalid argument")
        move(pid, group)

    monkeypatch.setattr(fake, "_move", but_21)
    take_in(acting, own, home, 20, 21, 22)
    assert fake.groups[f"{own}/t"].pids == [20, 22]
    assert acting.problems == {f"{own}/t": f"process 21 cannot be moved to /{own}/t: Invalid argument"}
    acting.forget_problems_except({own, f"{own}/t"})
    assert acting.problems
    acting.forget_problems_except({own})
    assert acting.problems == {}


def test_a_group_below_that_was_made_anew_keeps_its_limit(tmp_path: Path) -> None:
    fake = FakeCgroups(1)
    fake.add("yarn/c1", quota=200_000)
    acting = writer(fake, tmp_path)
    acting.apply("yarn", wanted(0.5))
    fake.vanish("yarn/c1")
    fake.add("yarn/c1", quota=30_000)
    acting.release("yarn")
    assert (quota(fake, "yarn"), quota(fake, "yarn/c1"), acting.changed_groups) == (None, 30_000, {})


def test_a_group_of_its_own_below_one_that_is_put_back_goes_too(tmp_path: Path) -> None:
    fake = FakeCgroups(1)
    fake.add("yarn/c1", 11)
    before = fake.values()
    acting = writer(fake, tmp_path)
    take_in(acting, "yarn/c1/own", "yarn/c1", 11)
    acting.apply("yarn/c1/own", wanted(0.5, "7"))
    acting.apply("yarn", wanted(0.2, "7"))
    acting.release("yarn")
    assert (fake.values(), acting.changed_groups, acting.problems) == (before, {}, {})


def test_a_group_whose_processes_do_not_go_stays_known(
    fake: FakeCgroups, home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"{home}/own".lstrip("/")
    acting = writer(fake, tmp_path)
    take_in(acting, own, home, 20)
    with monkeypatch.context() as patched:
        patched.setattr(fake, "_move", lambda *args: None)
        acting.release(own)
    assert list(acting.changed_groups) == [own]
    assert "busy" in acting.problems[own].lower()
    acting.release(own)
    assert (acting.changed_groups, sorted(fake.groups[home].pids), own in fake.groups) == ({}, [20, 21, 22], False)


PATHS = ["b", "b/x", "b/y", "b/x/1", "b/x/2", "b/x/1/deep"]
QUOTAS = st.one_of(st.none(), st.integers(1000, 400_000))


class AnyHistory(RuleBasedStateMachine):
    """Whatever limits are wanted and set below one after the other on v1, no write is refused, and all goes back."""

    def __init__(self) -> None:
        super().__init__()
        self.fake = FakeCgroups(1)
        self.folder = Path(self.folders.mktemp("state"))
        self.acting = writer(self.fake, self.folder)
        for path in PATHS:
            self.fake.add(path)
        self.before = self.fake.values()
        self.started = False

    folders: pytest.TempPathFactory

    @precondition(lambda self: not self.started)
    @rule(quotas=st.lists(QUOTAS, min_size=len(PATHS), max_size=len(PATHS)), period=st.sampled_from([50_000, 100_000]))
    def find(self, quotas: list[int | None], period: int) -> None:
        """What was there at first, as far as a kernel would take it."""
        for path, quota in zip(PATHS, quotas, strict=True):
            if self.fake._fits(path, quota, period):
                self.fake.groups[path].quota, self.fake.groups[path].period = quota, period
        self.before = self.fake.values()

    @rule(milli=st.integers(10, 4000))
    def limit(self, milli: int) -> None:
        self.started = True
        self.acting.apply("b", wanted(Fraction(milli, 1000), "2"))
        own = self.before["b"]
        most = min([Fraction(milli, 1000), *([Fraction(own[0], own[1])] if own[0] is not None else [])])
        quota, period = self.fake.groups["b"].quota, self.fake.groups["b"].period
        assert quota == max(1000, int(most * period))

    @rule()
    def lift(self) -> None:
        self.acting.apply("b", wanted(None))
        assert {path: found[:2] for path, found in self.fake.values().items()} == {
            path: found[:2] for path, found in self.before.items()
        }

    @rule()
    def die(self) -> None:
        self.acting = writer(self.fake, self.folder)

    @rule()
    def reset_by_others(self) -> None:
        if self.before["b"][0] is None:
            self.fake.groups["b"].quota = None

    @rule()
    def release(self) -> None:
        self.acting.release("b")
        assert self.fake.values() == self.before
        self.started = False

    @invariant()
    def nothing_was_refused(self) -> None:
        assert self.acting.problems == {}


def test_in_any_history_no_step_is_refused_and_everything_goes_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    AnyHistory.folders = tmp_path_factory
    case = AnyHistory.TestCase
    case.settings = settings(
        max_examples=40, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    case().runTest()
