from pathlib import Path

import pytest
from plugins.yarn.tests.proc_fakes import NM, NM_PID, NOW_TICKS, FakeProc, container

from fallow_hookspecs import Placement, TaskPlacement
from fallow_yarn.tasks.container_processes import ContainerProcesses
from fallow_yarn.tasks.placement import HIERARCHY, placement

ONE, TWO = container(1), container(2)
PARENT = "/kubepods/besteffort/yarn/"


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


def launch_in(proc: FakeProc, pid: int, container_id: str, *directories: str, told: str = "tasks") -> None:
    """A container that container-executor put into these directories, with a process below its root."""
    files = "%".join(f"/sys/fs/cgroup/x{directory}/{told}" for directory in directories)
    command = ["container-executor", "al", "yarn", "1", container_id, f"cgroups={files or 'none'}"]
    cgroups = [f"{number}:x:{directory}" for number, directory in enumerate(directories or ("/",))]
    proc.add(pid - 1, parent=NM_PID, session=NM_PID, command=command)
    proc.add(pid, parent=pid - 1, cgroups=cgroups)
    proc.add(pid + 1, parent=pid, session=pid, cgroups=cgroups)


def place(proc: FakeProc, *container_ids: str) -> Placement:
    found = ContainerProcesses(proc.root, lambda: NOW_TICKS).find((NM,))
    return placement(container_ids, found, {}, PARENT, proc.root)


def test_a_container_without_a_directory_of_its_own_can_be_moved_whole(proc: FakeProc) -> None:
    root = proc.launch(601, ONE)
    child = proc.add(602, parent=601, session=601)
    result = place(proc, ONE)
    assert result.tasks == (TaskPlacement(task_id=ONE, movable=(root, child)),)
    assert not result.new_tasks_follow
    assert "container-executor.class" in result.reason


def test_containers_below_the_parent_on_every_hierarchy_show_that_new_ones_follow(proc: FakeProc) -> None:
    launch_in(proc, 601, ONE, f"/kubepods/besteffort/yarn/{ONE}", f"/kubepods/besteffort/yarn/{ONE}")
    launch_in(proc, 701, TWO, f"/kubepods/besteffort/yarn/sub/{TWO}")
    assert place(proc, ONE, TWO) == Placement(
        new_tasks_follow=True,
        tasks=(
            TaskPlacement(task_id=ONE, cgroups=(f"kubepods/besteffort/yarn/{ONE}",)),
            TaskPlacement(task_id=TWO, cgroups=(f"kubepods/besteffort/yarn/sub/{TWO}",)),
        ),
    )


def test_a_container_that_its_node_manager_put_elsewhere_names_the_setting(proc: FakeProc) -> None:
    launch_in(proc, 601, ONE, f"/kubepods/besteffort/yarn/{ONE}", f"/kubepods/besteffort/yarn2/{ONE}")
    (task,) = place(proc, ONE).tasks
    assert task.cgroups == (f"kubepods/besteffort/yarn/{ONE}", f"kubepods/besteffort/yarn2/{ONE}")
    assert (task.setting, task.movable) == (HIERARCHY, ())
    result = place(proc, ONE)
    assert not result.new_tasks_follow
    assert f"set {HIERARCHY} to kubepods/besteffort/yarn" in result.reason


def test_a_directory_that_its_node_manager_did_not_make_shows_nothing_of_new_ones(proc: FakeProc) -> None:
    """As when core has moved it, by the container's name."""
    proc.launch(601, ONE)
    root = proc.add(601, parent=600, cgroups=[f"0::/kubepods/besteffort/yarn/{ONE}"])
    result = place(proc, ONE)
    assert result.tasks == (TaskPlacement(task_id=ONE, cgroups=(f"kubepods/besteffort/yarn/{ONE}",)),)
    assert not result.new_tasks_follow
    proc.add(601, parent=600, cgroups=[f"0::/elsewhere/{ONE}"])
    (task,) = place(proc, ONE).tasks
    assert (task.cgroups, task.movable, task.setting) == ((f"elsewhere/{ONE}",), (root,), "")


def test_one_container_without_a_directory_is_enough_to_doubt_new_ones(proc: FakeProc) -> None:
    launch_in(proc, 601, ONE, f"/kubepods/besteffort/yarn/{ONE}")
    launch_in(proc, 701, TWO)
    assert not place(proc, ONE, TWO).new_tasks_follow


def test_a_container_that_has_no_process_yet_is_nowhere_and_shows_nothing(proc: FakeProc) -> None:
    result = place(proc, ONE)
    assert result.tasks == (TaskPlacement(task_id=ONE),)
    assert (result.new_tasks_follow, result.reason) == (
        False,
        "no container runs, so it is unknown where new ones are placed",
    )
    assert not place(proc).new_tasks_follow


def test_a_directory_outside_this_cgroup_namespace_has_no_path_here(proc: FakeProc) -> None:
    proc.launch(601, ONE)
    root = proc.add(601, parent=600, cgroups=[f"0::/../../yarn/{ONE}", f"1:x:/a/{ONE}/sub (deleted)"])
    (task,) = place(proc, ONE).tasks
    assert (task.cgroups, task.movable) == ((f"a/{ONE}",), (root,))
