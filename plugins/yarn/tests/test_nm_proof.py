"""Which processes with a NodeManager's command line are believed to be one."""

import os
from collections.abc import Collection
from pathlib import Path

import pytest
from plugins.yarn.tests.proc_fakes import NM, NM_PID, FakeProc, container, environment_of

from fallow_hookspecs import PluginError, Process
from fallow_yarn.nm.daemons import MAIN_CLASS, RunningNodeManagers
from fallow_yarn.nm.procfs import read_all
from fallow_yarn.nm.proof import FIRST_TASK_UID, uid_of

COMMAND = ["java", MAIN_CLASS.decode()]
TASK_USER, OTHER_TASK_USER, SYSTEM_USER = FIRST_TASK_UID, FIRST_TASK_UID + 1, FIRST_TASK_UID - 1


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeProc:
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    return FakeProc(tmp_path)


class Search:
    """Searches a host again and again. `uid`: the configured user."""

    def __init__(self, proc: FakeProc, uid: int | None = None) -> None:
        self.proc = proc
        self.managers = RunningNodeManagers(proc.root, uid=uid)

    def find(self, of_containers: Collection[Process] = ()) -> set[Process]:
        return set(self.managers.find(read_all(self.proc.root), of_containers))


def test_a_process_below_a_node_manager_is_none(proc: FakeProc) -> None:
    proc.launch(700, container(1))
    proc.add(701, parent=700, command=COMMAND)
    proc.add(702, parent=701, session=701, command=COMMAND)
    assert Search(proc).find() == {NM}


def test_a_process_that_was_found_to_belong_to_a_container_is_none_after_its_parents_have_ended(proc: FakeProc) -> None:
    orphan = proc.add(700, command=COMMAND)
    assert Search(proc).find({orphan}) == {NM}


@pytest.mark.parametrize(
    "left_over", [{"environment": environment_of(container(1))}, {"cgroups": [f"4:cpu:/hadoop-yarn/{container(1)}"]}]
)
def test_a_process_with_a_containers_cgroup_or_environment_is_none(
    proc: FakeProc, left_over: dict[str, object]
) -> None:
    proc.add(700, command=COMMAND, **left_over)  # type: ignore[arg-type]
    assert Search(proc).find() == {NM}


def test_only_processes_of_the_configured_user_are_believed(proc: FakeProc) -> None:
    proc.add(700, command=COMMAND, user=SYSTEM_USER)
    own = proc.add(701, command=COMMAND, user=TASK_USER)
    assert Search(proc, TASK_USER).find() == {own}


def test_no_user_of_tasks_is_believed_beside_a_system_user(proc: FakeProc) -> None:
    proc.add(700, command=COMMAND, user=TASK_USER)
    search = Search(proc)
    assert (search.find(), search.managers.unsure) == ({NM}, "")


def test_two_system_users_may_both_run_node_managers_of_different_clusters(proc: FakeProc) -> None:
    other = proc.add(700, command=COMMAND, user=SYSTEM_USER)
    assert Search(proc).find() == {NM, other}


def test_the_one_user_is_believed_where_no_system_user_runs_any(proc: FakeProc) -> None:
    proc.end(NM_PID)
    own = proc.add(700, command=COMMAND, user=TASK_USER)
    assert Search(proc).find() == {own}


def test_another_user_does_not_replace_the_one_whose_node_manager_has_ended(proc: FakeProc) -> None:
    proc.end(NM_PID)
    proc.add(700, command=COMMAND, user=TASK_USER)
    search = Search(proc)
    search.find()
    proc.end(700)
    proc.add(701, command=COMMAND, user=OTHER_TASK_USER)
    assert search.find() == set()
    again = proc.add(702, command=COMMAND, user=TASK_USER)
    assert search.find() == {again}


def test_of_several_users_none_is_believed_and_the_list_says_what_to_set(proc: FakeProc) -> None:
    proc.end(NM_PID)
    proc.add(700, command=COMMAND, user=TASK_USER)
    proc.add(701, command=COMMAND, user=OTHER_TASK_USER)
    search = Search(proc)
    assert search.find() == set()
    assert search.managers.unsure == (
        "processes of several users look like NodeManagers (uids 1000, 1001): set nodeManagerUser"
    )


def test_a_wrapper_around_a_node_manager_is_none_and_does_not_hide_it(proc: FakeProc) -> None:
    proc.end(NM_PID)
    proc.add(700, command=["sudo", "-u", "yarn", "/usr/bin/java", MAIN_CLASS.decode()])
    manager = proc.add(701, parent=700, session=700, command=COMMAND)
    assert Search(proc).find() == {manager}


def test_a_configured_user_may_be_a_name_or_a_number() -> None:
    assert (uid_of("root"), uid_of("1234"), uid_of(None)) == (0, 1234, None)
    with pytest.raises(PluginError, match=r"spec\.nodeManagerUser: this host has no user no-such-user"):
        uid_of("no-such-user")


def test_fallows_own_user_is_believed_as_it_is_what_a_test_and_a_small_installation_use(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: TASK_USER)
    own = proc.add(700, command=COMMAND, user=TASK_USER)
    assert Search(proc).find() == {NM, own}
