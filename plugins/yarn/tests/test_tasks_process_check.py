from pathlib import Path

import pytest
from plugins.yarn.tests.proc_fakes import YOUNG_TICKS, FakeProc, container, environment_of

from fallow_yarn.nm.procfs import Stat, read_stat
from fallow_yarn.tasks.process_check import ProcessCheck

ONE, TWO = container(1), container(2)
ALICE = 1001


class Case:
    """A container's root, launched as pid 601, and whom the proof shows."""

    def __init__(self, root: Path) -> None:
        self.proc = FakeProc(root)
        self.proc.launch(601, ONE)
        self.check = ProcessCheck(root, ONE)

    def stat(self, pid: int) -> Stat:
        stat = read_stat(self.proc.root, pid)
        assert stat is not None
        return stat

    def belongs(self, pid: int, *, is_root: bool = False) -> bool:
        return self.check.belongs(self.stat(pid), is_root=is_root)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    case = Case(tmp_path)
    assert case.belongs(601, is_root=True)
    return case


def test_its_session_shows_a_process_and_a_parent_that_was_shown_does(case: Case) -> None:
    case.proc.add(602, parent=1, session=601)
    case.proc.add(603, parent=602)
    case.proc.add(604, parent=603)
    assert [case.belongs(pid) for pid in (602, 603, 604)] == [True, True, True]


def test_a_parent_that_was_not_shown_shows_nobody(case: Case) -> None:
    case.proc.add(602, parent=400, session=400)
    case.proc.add(603, parent=602)
    assert not case.belongs(603)


def test_a_leader_or_parent_whose_pid_is_anothers_by_now_shows_nobody(case: Case) -> None:
    case.proc.add(602, parent=601, session=601)
    case.proc.add(601, parent=400, start=YOUNG_TICKS + 1)
    assert not case.belongs(602)
    case.proc.end(601)
    assert not case.belongs(602)


def test_an_environment_or_a_command_line_has_to_name_this_container(case: Case) -> None:
    case.proc.add(602, parent=1, environment=environment_of(TWO), command=["java", f"-Dlog=/logs/{TWO}"])
    case.proc.add(603, parent=1, environment=environment_of(ONE))
    case.proc.add(604, parent=1, command=["java", f"-Dlog=/logs/{ONE}"])
    assert [case.belongs(pid) for pid in (602, 603, 604)] == [False, True, True]


def test_a_root_may_be_named_by_its_launcher_alone_and_nobody_else_may(case: Case) -> None:
    case.proc.add(700, parent=500, session=500, command=["bash", f"/{ONE}/default_container_executor.sh"])
    case.proc.add(701, parent=700)
    assert not case.belongs(701)
    assert case.belongs(701, is_root=True)
    case.proc.add(1, parent=0, start=1, command=["init", ONE])
    case.proc.add(702, parent=1)
    assert not case.belongs(702, is_root=True)


def test_another_user_needs_the_containers_cgroup(case: Case) -> None:
    case.proc.add(602, parent=601, session=601, user=ALICE, environment=environment_of(ONE))
    assert not case.belongs(602)
    case.proc.add(602, parent=601, session=601, user=ALICE, cgroups=[f"0::/yarn/{TWO}"])
    assert not case.belongs(602)
    case.proc.add(602, parent=601, session=601, user=ALICE, cgroups=[f"0::/yarn/{ONE}/sub"])
    assert case.belongs(602)


def test_a_process_that_is_not_who_was_found_is_not_shown(case: Case) -> None:
    stat = case.stat(601)
    case.proc.add(601, parent=600, start=YOUNG_TICKS + 1, environment=environment_of(ONE))
    assert not case.check.belongs(stat, is_root=True)
    assert not case.check.is_still_there(stat)
    case.proc.add(601, parent=600, session=400, environment=environment_of(ONE))
    assert not case.check.belongs(stat, is_root=True)
    assert case.check.is_still_there(stat)
    case.proc.end(601)
    assert not case.check.belongs(stat, is_root=True)
    assert not case.check.is_still_there(stat)


def test_a_process_that_has_ended_is_there_no_more(case: Case) -> None:
    stat = case.stat(601)
    case.proc.add(601, parent=600, state="Z")
    assert not case.check.is_still_there(stat)
