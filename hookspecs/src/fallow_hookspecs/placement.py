"""Where a framework's tasks are in the cgroup tree, and which processes core may move."""

from dataclasses import dataclass

from fallow_hookspecs.tasks import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlacement:
    """Where one task is: in `cgroups` (relative to the cgroup root), or in `movable` processes that core may move.

    If it has neither, `setting` names the framework's setting that would change that.
    """

    task_id: str
    cgroups: tuple[str, ...] = ()
    movable: tuple[Process, ...] = ()
    setting: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The answer of `set_cgroup_parent`. `new_tasks_follow`: the framework places new tasks under this directory."""

    new_tasks_follow: bool
    tasks: tuple[TaskPlacement, ...] = ()
    reason: str = ""
