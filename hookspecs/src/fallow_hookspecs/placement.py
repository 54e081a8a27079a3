"""Where a framework's tasks are in the cgroup tree, and who may move them."""

from dataclasses import dataclass

from fallow_hookspecs.tasks import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlacement:
    """Where one task is: in `cgroups` (relative to the cgroup root), as `movable` processes that core may move, or, if
    it can be neither measured by cgroup nor moved, `setting` names the framework's setting that would change that.
    """

    task_id: str
    cgroups: tuple[str, ...] = ()
    movable: tuple[Process, ...] = ()
    setting: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The answer of `set_cgroup_parent`. `new_tasks_follow`: new tasks are placed under the directory asked for."""

    new_tasks_follow: bool
    tasks: tuple[TaskPlacement, ...] = ()
    reason: str = ""
