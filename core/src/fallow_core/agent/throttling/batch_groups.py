"""Finds the groups that contain batch, from the groups of the tasks' processes and from the plugins' placements.

A framework that gives each task a group creates these below a group of its own: that one is the batch group, provided
that nothing else is in it when Fallow changes it first. What is in a task's own group is the task's. What appears
beside these groups later is shown, and lifts no limit: a task could put it there.

For tasks without groups Fallow creates a batch group below the group where they are: all limits above stay in force,
and the processes can be moved back. Each task gets a child of it, so a task with many processes gets no more CPU than
others.
"""

import re
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from fallow_core.agent.throttling.memberships import Memberships, due_at
from fallow_core.errors import CgroupError
from fallow_core.model.task import ObservedTask, TaskKey
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.task_usage import BatchPass
from fallow_hookspecs import Process, TaskPlacement

EXEMPT = " is exempt, by qos.exempt: /"
NAMES = 1024
"""The names of so many tasks are kept: each is needed several times at each round."""


@dataclass(slots=True, kw_only=True)
class BatchGroup:
    """One group of batch with its tasks. `home`: the group above, if this group is one that Fallow creates.

    `to_move`: the processes of each task that are not in the task's own group yet. `task_groups`: the groups that the
    framework created for single tasks.
    """

    path: str
    home: str | None = None
    tasks: list[ObservedTask] = field(default_factory=list)
    to_move: dict[TaskKey, list[Process]] = field(default_factory=dict)
    task_groups: set[str] = field(default_factory=set)

    @property
    def clusters(self) -> frozenset[str]:
        """The clusters whose tasks are in it."""
        return frozenset(task.cluster for task in self.tasks)


class _Place(NamedTuple):
    """The batch group of one task, with the fields of `BatchGroup`."""

    path: str
    home: str | None = None
    task_group: str = ""


class BatchGroups:
    """Finds the groups. `own_name`: the name of the groups that Fallow creates.

    `ungrouped`: why a task is in no batch group. `strangers`: what else is in a batch group, by its path.
    """

    def __init__(self, hierarchy: Hierarchy, own_name: str, memberships: Memberships) -> None:
        self.ungrouped: dict[TaskKey, str] = {}
        self.strangers: dict[str, str] = {}
        self._not_batch: dict[str, str] = {}
        self._left_alone: dict[str, str] = {}
        self._exempt: Collection[str] = ()
        self._hierarchy = hierarchy
        self._own_name = own_name
        self._memberships = memberships
        self._parsed: dict[Process, tuple[str, str]] = {}
        self._checks: dict[str, tuple[float, float]] = {}

    def find(
        self,
        tasks: Iterable[ObservedTask],
        members: Mapping[TaskKey, Iterable[Process]],
        placements: Mapping[TaskKey, TaskPlacement],
        batch: BatchPass,
        now: float,
        left_alone: Collection[Process] = (),
        changed: Container[str] = (),
        exempt: Collection[str] = (),
    ) -> dict[str, BatchGroup]:
        """The groups of batch by path, without groups that contain other processes too. All `tasks` have members.

        :param left_alone: the batch processes that may not be throttled.
        :param changed: the groups that do not have their original values.
        :param exempt: groups in which nothing may be changed. A limit of a group above would hold there too.
        """
        self.ungrouped = {}
        groups: dict[str, BatchGroup] = {}
        for task in tasks:
            place = self._place(task.key, members[task.key], placements.get(task.key), now)
            if place is None:
                continue
            group = groups.get(place.path)
            if group is None:
                group = groups[place.path] = BatchGroup(path=place.path, home=place.home)
            group.tasks.append(task)
            if place.task_group:
                group.task_groups.add(place.task_group)
        groups = _outermost(groups)
        self._check(groups, batch, now, changed)
        self._find_left_alone(groups, members, left_alone, now)
        self._exempt = exempt
        for path in list(groups):
            if why := self.foreign(path):
                self.ungrouped |= {task.key: why for task in groups.pop(path).tasks}
        for group in groups.values():
            if group.home is not None:
                self._find_to_move(group, members, now)
        self._memberships.forget_except(batch.batch)
        if len(self._parsed) > len(batch.batch):
            self._parsed = {process: parsed for process, parsed in self._parsed.items() if process in batch.batch}
        return groups

    def foreign(self, path: str) -> str:
        """Why a group may not be throttled: it contains more than batch that may be, or is exempt; empty if it may."""
        exempt = (one for one in self._exempt if f"{path}/".startswith(f"{one}/") or f"{one}/".startswith(f"{path}/"))
        exempt_by = next((f"/{path}{EXEMPT}{one}" for one in exempt), "")
        return exempt_by or self._left_alone.get(path) or self._not_batch.get(path, "")

    def reread(self, processes: Iterable[Process]) -> None:
        """Read the groups of these processes again: they were moved."""
        self._memberships.reread(processes)

    def _place(
        self, key: TaskKey, processes: Iterable[Process], placement: TaskPlacement | None, now: float
    ) -> _Place | None:
        try:
            found = self._group_of(min(processes, key=lambda process: process.start_ticks), now)
        except OSError:
            return None  # it has ended
        except CgroupError as error:
            self.ungrouped[key] = str(error)
            return None
        above, created, _ = f"/{found}/".partition(f"/{self._own_name}/")
        if created:
            return self._own_place(above.strip("/"))
        if placement is None:
            self.ungrouped[key] = "its plugin has not said yet whether it may be moved"
            return None
        task_groups = (group.strip("/") for group in placement.cgroups)
        own = next((group for group in task_groups if group and f"{found}/".startswith(f"{group}/")), None)
        if own is not None:
            return _Place(own.rpartition("/")[0] or own, task_group=own if "/" in own else "")
        if placement.movable:
            return self._own_place(found)
        setting = f": set {placement.setting}" if placement.setting else ""
        self.ungrouped[key] = f"its group /{found} is not its own, and it may not be moved{setting}"
        return None

    def _check(self, groups: Mapping[str, BatchGroup], batch: BatchPass, now: float, changed: Container[str]) -> None:
        """Check from time to time whether the groups that Fallow did not create contain other processes."""
        self._checks = {path: check for path, check in self._checks.items() if path in groups}
        self._not_batch = {path: why for path, why in self._not_batch.items() if path in groups}
        self.strangers = {path: why for path, why in self.strangers.items() if path in groups}
        for path, group in groups.items():
            due, since = self._checks.get(path, (now, now))
            if group.home is not None or now < due:
                continue
            was_pure = self._not_batch.pop(path, None) is None and self.strangers.pop(path, None) is None
            if others := self._other_processes(group, batch):
                found = self.strangers if path in changed else self._not_batch
                found[path] = f"/{path} does not contain batch alone: process {others[0]} is in it too"
            since = now if bool(others) == was_pure else since
            self._checks[path] = (due_at(now, since), since)

    def _find_left_alone(
        self,
        groups: Mapping[str, BatchGroup],
        members: Mapping[TaskKey, Iterable[Process]],
        left_alone: Collection[Process],
        now: float,
    ) -> None:
        """Find the groups that contain a process that may not be throttled, in each round and at once.

        Such a group is released. If Fallow created it, all processes in it are moved back, so where they are is read
        again.
        """
        self._left_alone = {}
        for process in left_alone:
            try:
                found = self._group_of(process, now)
            except (OSError, CgroupError):
                continue
            for path in [path for path in groups if f"{found}/".startswith(f"{path}/")]:
                self._left_alone[path] = f"/{path} contains tasks of a restored or removed cluster too"
                if groups[path].home is not None:
                    self.reread([process, *(each for task in groups[path].tasks for each in members[task.key])])

    def _other_processes(self, group: BatchGroup, batch: BatchPass) -> list[int]:
        """Those that are not batch, outside of the tasks' own groups."""
        found: list[int] = []
        own = tuple(f"{path}/" for path in group.task_groups)
        for one in (group.path, *self._hierarchy.below(group.path)):
            if own and f"{one}/".startswith(own):
                continue
            try:
                pids = self._hierarchy.processes(one)
            except (OSError, CgroupError):
                continue  # it is gone
            # A process that is younger than the pass is judged with the next check.
            stats = (batch.processes[pid] for pid in pids if pid in batch.processes)
            found += [stat.pid for stat in stats if stat.process not in batch.batch]
        return found

    def _own_place(self, home: str) -> _Place:
        return _Place(f"{home}/{self._own_name}".lstrip("/"), home=home)

    def _find_to_move(self, group: BatchGroup, members: Mapping[TaskKey, Iterable[Process]], now: float) -> None:
        """The processes of a task in the group above or in the batch group itself. Others could not be moved back."""
        for task in group.tasks:
            if to_move := [each for each in members[task.key] if self._is_in(each, (group.home, group.path), now)]:
                group.to_move[task.key] = to_move

    def _is_in(self, process: Process, groups: Collection[str | None], now: float) -> bool:
        try:
            return self._group_of(process, now) in groups
        except (OSError, CgroupError):
            return False

    def _group_of(self, process: Process, now: float) -> str:
        """The group of a process; the file is parsed only when it has changed."""
        text = self._memberships.text(process, now)
        known, group = self._parsed.get(process, ("", ""))
        if known is not text:
            group = self._hierarchy.group_in(text, process.pid)
            self._parsed[process] = (text, group)
        return group


@lru_cache(maxsize=NAMES)
def name_of(key: TaskKey) -> str:
    """The name of a task's own group: its id, or a digest where the id is no safe directory name."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_:-]{0,200}", key.task_id):
        return key.task_id
    import hashlib  # it loads OpenSSL: 3.7 MiB, which an agent of tasks with ordinary ids saves

    return "task_" + hashlib.sha256("/".join(key).encode(errors="surrogateescape")).hexdigest()[:20]


def _outermost(groups: Mapping[str, BatchGroup]) -> dict[str, BatchGroup]:
    """Join each group that lies below another one with that one."""
    found: dict[str, BatchGroup] = {}
    for path in sorted(groups, key=lambda path: path.count("/")):
        above = next((group for other, group in found.items() if path.startswith(f"{other}/")), None)
        if above is None:
            found[path] = groups[path]
        else:
            above.tasks += groups[path].tasks
            above.task_groups |= groups[path].task_groups
    return found
