"""One mounted hierarchy of control groups: the batch groups that are in it, and what Fallow changes there."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from fallow_core.agent.throttling.batch_groups import BatchGroup, BatchGroups, name_of
from fallow_core.agent.throttling.cgroup_plan import Wanted
from fallow_core.agent.throttling.cgroup_writer import Knobs
from fallow_core.agent.throttling.memberships import LOOK_AGAIN_SECONDS, Memberships
from fallow_core.errors import CgroupError, SampleError
from fallow_core.log import event
from fallow_core.model.task import ObservedTask
from fallow_core.node.cgroups.control_file import Knob
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.procfs import read_process
from fallow_core.state.original_values import KnobsFile
from fallow_hookspecs import Process

log = logging.getLogger("fallow.agent")

Texts = Mapping[Knob, str]

DEAD_SECONDS = 60.0
"""So long after its last task a framework had the time to remove a group itself."""


class Tree:
    """v2 has one for all controllers, v1 mostly one for each. `groups` are those found with the newest tick.

    `memberships` may be those of all trees of a host.
    """

    def __init__(
        self, hierarchy: Hierarchy, file: KnobsFile, own_name: str, memberships: Memberships | None = None
    ) -> None:
        self.hierarchy = hierarchy
        self.knobs = Knobs(hierarchy, file)
        memberships = memberships or Memberships(hierarchy.files, hierarchy.proc_root)
        self.found = BatchGroups(hierarchy, own_name, memberships)
        self.groups: dict[str, BatchGroup] = {}
        self._failed_at: dict[str, float] = {}
        self._used_at: dict[str, float] = {}
        self._children: dict[tuple[str, str], Texts] = {}

    @property
    def controllers(self) -> tuple[str, ...]:
        """What can be controlled in it."""
        return (self.hierarchy.controller, *self.hierarchy.also)

    def act(
        self, wanted: Mapping[str, Wanted], of_task: Callable[[ObservedTask], Texts], now: float, *, makes: bool
    ) -> None:
        """Bring the groups to what is wanted. `makes`: tasks without a group get one, with the texts `of_task`."""
        if makes:
            self._take_in(of_task, now)
            self._remove_dead(now)
        for path, group in self.groups.items():
            if path in wanted and (group.home is None or path in self.knobs.kept):
                self.knobs.apply(path, wanted[path])
        if self.knobs.problems or self.knobs.lacking:
            children = {f"{path}/{name_of(task.key)}" for path, group in self.groups.items() for task in group.tasks}
            self.knobs.forget_problems_but(children | self.groups.keys())

    def put_back(self, clusters: Collection[str], *, changes: bool, makes: bool) -> None:
        """Put back what is not to be changed any more: all of it unless there are `changes`."""
        for root in self._roots():
            kept = self.knobs.kept[root]
            unmade = kept.home is not None and (not makes or self._is_deserted(root))
            if not changes or unmade or root in self.found.foreign or kept.clusters.isdisjoint(clusters):
                self._release((root,))

    def release_all(self) -> None:
        """Put every group back as it was found; what could not be is in the problems of `knobs`."""
        self.groups = {}
        self._release(self._roots())

    def _release(self, groups: Iterable[str]) -> None:
        for group in sorted(groups, key=lambda group: group.count("/")):
            self.knobs.release(group)
            if group not in self.knobs.kept:
                event(log, logging.INFO, "group_released", group=f"/{group}")

    def _roots(self) -> list[str]:
        """The groups that were changed for their own sake, not for that of one above."""
        kept = self.knobs.kept
        return [one for one in kept if not any(one.startswith(f"{other}/") for other in kept)]

    def _is_deserted(self, group: str) -> bool:
        """Whether nothing is in a group any more: one of Fallow's own would keep the group above from being removed."""
        if group in self.groups:
            return False
        try:
            return not any(map(self.hierarchy.processes, (group, *self.hierarchy.below(group))))
        except (OSError, CgroupError):
            return False

    def _take_in(self, of_task: Callable[[ObservedTask], Texts], now: float) -> None:
        self._failed_at = {path: at for path, at in self._failed_at.items() if path in self.groups}
        if self._children:
            names = {(path, name_of(task.key)) for path, group in self.groups.items() for task in group.tasks}
            self._children = {key: texts for key, texts in self._children.items() if key in names}
        for path, group in self.groups.items():
            if group.home is None or now - self._failed_at.get(path, now - LOOK_AGAIN_SECONDS) < LOOK_AGAIN_SECONDS:
                continue
            if path not in self.knobs.kept or self.hierarchy.identity(path) is None:
                self.knobs.make(path, group.home, group.clusters)
            if path not in self.knobs.kept:
                self._failed_at[path] = now
                continue
            for task in group.tasks:
                alive = [process for process in group.to_move.get(task.key, ()) if self._is_alive(process)]
                if alive:
                    self.knobs.take_in(path, name_of(task.key), of_task(task), [process.pid for process in alive])
                    self.found.look_again(alive)
                self._keep_child(path, task, of_task(task))
            self.knobs.clear(path, {name_of(task.key) for task in group.tasks})

    def _remove_dead(self, now: float) -> None:
        """Remove what a framework left of groups in which tasks once were; the kernel removes none that is in use."""
        self._used_at |= {path: now for group in self.groups.values() for path in group.given}
        for path in [path for path, at in self._used_at.items() if now - at >= DEAD_SECONDS]:
            del self._used_at[path]
            with suppress(OSError):
                self.hierarchy.remove(path)
                event(log, logging.INFO, "dead_group_removed", group=f"/{path}")

    def _keep_child(self, path: str, task: ObservedTask, texts: Texts) -> None:
        """A task whose request changed gets what it is to have now."""
        key = (path, name_of(task.key))
        if self._children.get(key) != texts and self.knobs.set_child(*key, texts):
            self._children[key] = texts

    def _is_alive(self, process: Process) -> bool:
        """Whether a pid is still that of the process: it could be another's by now."""
        try:
            stat = read_process(Path(self.hierarchy.proc_root), process.pid)
        except SampleError:
            return False
        return stat is not None and stat.process == process
