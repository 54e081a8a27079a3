"""One mounted hierarchy of control groups: the batch groups in it, and the changes that Fallow makes there."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from fallow_core.agent.throttling.batch_groups import BatchGroup, BatchGroups, name_of
from fallow_core.agent.throttling.cgroup_plan import GroupTarget
from fallow_core.agent.throttling.cgroup_writer import CgroupWriter
from fallow_core.agent.throttling.memberships import REREAD_SECONDS, Memberships
from fallow_core.errors import CgroupError, SampleError
from fallow_core.log import event
from fallow_core.model.control_file import ControlFile
from fallow_core.model.task import ObservedTask
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.procfs import read_process
from fallow_core.state.original_values import OriginalValuesFile
from fallow_hookspecs import Process

log = logging.getLogger("fallow.agent")

Texts = Mapping[ControlFile, str]

DEAD_SECONDS = 60.0
"""How long after the end of its task a framework has time to remove a group itself."""


class Tree:
    """v2 has one tree for all controllers, v1 usually one for each. `groups`: the batch groups of the newest round.

    `memberships` may be shared by all trees of a host.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        file: OriginalValuesFile,
        own_name: str,
        memberships: Memberships | None = None,
    ) -> None:
        self.hierarchy = hierarchy
        self.writer = CgroupWriter(hierarchy, file)
        memberships = memberships or Memberships(hierarchy.files, hierarchy.proc_root)
        self.finder = BatchGroups(hierarchy, own_name, memberships)
        self.groups: dict[str, BatchGroup] = {}
        self._failed_at: dict[str, float] = {}
        self._used_at: dict[str, float] = {}
        self._child_texts: dict[tuple[str, str], Texts] = {}

    @property
    def controllers(self) -> tuple[str, ...]:
        """The controllers of this tree."""
        return (self.hierarchy.controller, *self.hierarchy.also)

    def apply(
        self,
        targets: Mapping[str, GroupTarget],
        of_task: Callable[[ObservedTask], Texts],
        now: float,
        *,
        creates: bool,
    ) -> None:
        """Bring the groups to their targets. `creates`: tasks without a group get one, with the texts of `of_task`."""
        if creates:
            self._move_tasks(of_task, now)
            self._remove_dead(now)
        for path, group in self.groups.items():
            if path in targets and (group.home is None or path in self.writer.changed_groups):
                self.writer.apply(path, targets[path])
        if self.writer.problems or self.writer.lacking:
            children = {f"{path}/{name_of(task.key)}" for path, group in self.groups.items() for task in group.tasks}
            self.writer.forget_problems_except(children | self.groups.keys())

    def release_unused(self, clusters: Collection[str], *, changes: bool, creates: bool) -> None:
        """Restore the groups that may no longer be changed: all of them without `changes`."""
        for root in self._roots():
            changed = self.writer.changed_groups[root]
            removed = changed.home is not None and (not creates or self._is_deserted(root))
            if not changes or removed or self.finder.foreign(root) or changed.clusters.isdisjoint(clusters):
                self._release((root,))

    def release_all(self) -> None:
        """Restore every group; the problems of `writer` say which ones could not be restored."""
        self.groups = {}
        self._release(self._roots())

    def _release(self, groups: Iterable[str]) -> None:
        for group in sorted(groups, key=lambda group: group.count("/")):
            self.writer.release(group)
            if group not in self.writer.changed_groups:
                event(log, logging.INFO, "group_released", group=f"/{group}")

    def _roots(self) -> list[str]:
        """The changed groups without those that were changed because of a group above."""
        changed = self.writer.changed_groups
        return [one for one in changed if not any(one.startswith(f"{other}/") for other in changed)]

    def _is_deserted(self, group: str) -> bool:
        """Whether a group has no processes: a group of Fallow prevents the framework from removing the group above."""
        if group in self.groups:
            return False
        try:
            return not any(map(self.hierarchy.processes, (group, *self.hierarchy.below(group))))
        except (OSError, CgroupError):
            return False

    def _move_tasks(self, of_task: Callable[[ObservedTask], Texts], now: float) -> None:
        """Create the groups of tasks that have none, and move their processes there."""
        self._failed_at = {path: at for path, at in self._failed_at.items() if path in self.groups}
        if self._child_texts:
            names = {(path, name_of(task.key)) for path, group in self.groups.items() for task in group.tasks}
            self._child_texts = {key: texts for key, texts in self._child_texts.items() if key in names}
        for path, group in self.groups.items():
            if group.home is None or now - self._failed_at.get(path, now - REREAD_SECONDS) < REREAD_SECONDS:
                continue
            if path not in self.writer.changed_groups or self.hierarchy.identity(path) is None:
                self.writer.make(path, group.home, group.clusters)
            if path not in self.writer.changed_groups:
                self._failed_at[path] = now
                continue
            for task in group.tasks:
                alive = [process for process in group.to_move.get(task.key, ()) if self._is_alive(process)]
                if alive:
                    pids = [process.pid for process in alive]
                    self.writer.move_into_child(path, name_of(task.key), of_task(task), pids)
                    self.finder.reread(alive)
                self._update_child(path, task, of_task(task))
            self.writer.remove_children(path, keep={name_of(task.key) for task in group.tasks})

    def _remove_dead(self, now: float) -> None:
        """Remove groups of ended tasks that a framework left behind; the kernel removes no group that is in use."""
        self._used_at |= {path: now for group in self.groups.values() for path in group.task_groups}
        for path in [path for path, at in self._used_at.items() if now - at >= DEAD_SECONDS]:
            del self._used_at[path]
            with suppress(OSError):
                self.hierarchy.remove(path)
                event(log, logging.INFO, "dead_group_removed", group=f"/{path}")

    def _update_child(self, path: str, task: ObservedTask, texts: Texts) -> None:
        """Write the texts of a task's group again if its request has changed."""
        key = (path, name_of(task.key))
        if self._child_texts.get(key) != texts and self.writer.set_child(*key, texts):
            self._child_texts[key] = texts

    def _is_alive(self, process: Process) -> bool:
        """Whether the pid still belongs to this process."""
        try:
            stat = read_process(Path(self.hierarchy.proc_root), process.pid)
        except SampleError:
            return False
        return stat is not None and stat.process == process
