"""What is tried of `set_cgroup_parent`."""

from fallow_hookspecs.placement import Placement
from fallow_hookspecs.testing.base import Suite, tries
from fallow_hookspecs.testing.calling import Called
from fallow_hookspecs.testing.framework import Framework

PARENT = "fallow-conformance/batch"


class PlacementSuite(Suite):
    """The clauses `placement.*`, and of `call.*` the one that is about its answer."""

    @tries("call.shape")
    def test_a_placement_has_the_types_of_the_contract(self, ready: Framework, called: Called) -> None:
        ready.start_tasks(1)
        _placed(called, ready)  # the answer is compared with the contract

    @tries("placement.each")
    def test_each_task_has_its_place(self, ready: Framework, called: Called) -> None:
        tasks = ready.start_tasks(2)
        placement = _placed(called, ready)
        placed = [task.task_id for task in placement.tasks]
        assert len(set(placed)) == len(placed), f"one is there twice: {placed}"
        assert set(tasks) <= set(placed), f"{set(tasks) - set(placed)} are missing"
        for task in placement.tasks:
            assert task.cgroups or task.movable or task.setting or task.task_id not in tasks, f"it is nowhere: {task}"

    @tries("placement.relative")
    def test_directories_are_relative(self, ready: Framework, called: Called) -> None:
        ready.start_tasks(1)
        wrong = [
            cgroup
            for task in _placed(called, ready).tasks
            for cgroup in task.cgroups
            if cgroup.startswith("/") or ".." in cgroup.split("/") or not cgroup
        ]
        assert not wrong, wrong

    @tries("placement.why")
    def test_it_says_why_new_tasks_do_not_follow(self, ready: Framework, called: Called) -> None:
        ready.start_tasks(1)
        placement = _placed(called, ready)
        assert placement.new_tasks_follow or placement.reason or any(task.setting for task in placement.tasks)

    @tries("placement.repeat")
    def test_asking_again_is_harmless(self, ready: Framework, called: Called) -> None:
        tasks = ready.start_tasks(2)
        first = _outline(_placed(called, ready))
        for _ in range(3):
            assert _outline(_placed(called, ready)) == first
        assert set(tasks) <= ready.tasks(), "a task has ended"


def _placed(called: Called, framework: Framework) -> Placement:
    called.list_tasks(framework.nodes[0])  # core asks for places of what it has listed
    return called.place(framework.nodes[0], PARENT)


def _outline(placement: Placement) -> tuple[object, ...]:
    """Without the processes, which come and go within a task."""
    tasks = {task.task_id: (task.cgroups, bool(task.movable), task.setting) for task in placement.tasks}
    return placement.new_tasks_follow, placement.reason, tasks
