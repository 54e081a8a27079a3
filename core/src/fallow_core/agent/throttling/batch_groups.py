"""In which groups batch is: found from where each task's processes are, and from what its plugin says of moving them.

A framework that gives its tasks groups has them below one of its own: that one is the batch group, if nothing else is
in it. For tasks without groups one is made below the group where they are, so that all limits above them stay in force,
and so that it is known where they came from. In it each task gets one, so that none has more for having more processes.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fallow_core.agent.throttling.memberships import Memberships, due_at
from fallow_core.errors import CgroupError
from fallow_core.model.task import ObservedTask, TaskKey
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.task_usage import BatchPass
from fallow_hookspecs import Process, TaskPlacement


@dataclass(slots=True, kw_only=True)
class BatchGroup:
    """One group of batch with its tasks. `home`: it is Fallow's own, made there.

    `to_move`: the processes of each task that are not in the task's own group yet. `given`: the groups that the
    framework gave to single tasks.
    """

    path: str
    home: str | None = None
    tasks: list[ObservedTask] = field(default_factory=list)
    to_move: dict[TaskKey, list[Process]] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)

    @property
    def clusters(self) -> frozenset[str]:
        """Whose tasks are in it."""
        return frozenset(task.cluster for task in self.tasks)


class _Placed(NamedTuple):
    """The group of batch that one task is in, in the words of `BatchGroup`."""

    path: str
    home: str | None = None
    given: str = ""


class BatchGroups:
    """Finds the groups; `without` says of each task without one why. `own_name` is the name of Fallow's own groups."""

    def __init__(self, hierarchy: Hierarchy, own_name: str, memberships: Memberships) -> None:
        self.without: dict[TaskKey, str] = {}
        self.foreign: dict[str, str] = {}
        self._hierarchy = hierarchy
        self._own_name = own_name
        self._memberships = memberships
        self._places: dict[Process, tuple[str, str]] = {}
        self._checks: dict[str, tuple[float, float]] = {}

    def find(
        self,
        tasks: Iterable[ObservedTask],
        members: Mapping[TaskKey, Iterable[Process]],
        placements: Mapping[TaskKey, TaskPlacement],
        batch: BatchPass,
        now: float,
    ) -> dict[str, BatchGroup]:
        """The groups of batch by path, without those in which something else is as well. All `tasks` have members."""
        self.without = {}
        groups: dict[str, BatchGroup] = {}
        for task in tasks:
            key = task.key
            placed = self._placed(key, members[key], placements.get(key), now)
            if placed is None:
                continue
            group = groups.get(placed.path)
            if group is None:
                group = groups[placed.path] = BatchGroup(path=placed.path, home=placed.home)
            group.tasks.append(task)
            if placed.given:
                group.given.add(placed.given)
        groups = _outermost(groups)
        self._check(groups, batch, now)
        for path in self.foreign.keys() & groups.keys():
            self.without |= {task.key: self.foreign[path] for task in groups.pop(path).tasks}
        for group in groups.values():
            if group.home is not None:
                self._find_to_move(group, members, now)
        self._memberships.forget_but(batch.batch)
        if len(self._places) > len(batch.batch):
            self._places = {process: place for process, place in self._places.items() if process in batch.batch}
        return groups

    def look_again(self, processes: Iterable[Process]) -> None:
        """These were moved: where they are is read anew."""
        self._memberships.look_again(processes)

    def _placed(
        self, key: TaskKey, processes: Iterable[Process], placement: TaskPlacement | None, now: float
    ) -> _Placed | None:
        try:
            place = self._found_in(min(processes, key=lambda process: process.start_ticks), now)
        except OSError:
            return None  # it has ended
        except CgroupError as error:
            self.without[key] = str(error)
            return None
        above, made, _ = f"/{place}/".partition(f"/{self._own_name}/")
        if made:
            return self._own(above.strip("/"))
        if placement is None:
            self.without[key] = "its plugin has not said yet whether it may be moved"
            return None
        said = (own.strip("/") for own in placement.cgroups)
        own = next((own for own in said if own and f"{place}/".startswith(f"{own}/")), None)
        if own is not None:
            return _Placed(own.rpartition("/")[0] or own, given=own if "/" in own else "")
        if placement.movable:
            return self._own(place)
        setting = f": set {placement.setting}" if placement.setting else ""
        self.without[key] = f"its group /{place} is not its own, and it may not be moved{setting}"
        return None

    def _check(self, groups: Mapping[str, BatchGroup], batch: BatchPass, now: float) -> None:
        """Look now and then whether anything else is in a group that Fallow did not make."""
        self._checks = {path: check for path, check in self._checks.items() if path in groups}
        self.foreign = {path: why for path, why in self.foreign.items() if path in groups}
        for path, group in groups.items():
            due, since = self._checks.get(path, (now, now))
            if group.home is not None or now < due:
                continue
            was_foreign = self.foreign.pop(path, None) is not None
            if strangers := self._strangers(path, batch):
                self.foreign[path] = f"/{path} is not of batch alone: process {strangers[0]} is in it too"
            since = now if bool(strangers) != was_foreign else since
            self._checks[path] = (due_at(now, since), since)

    def _strangers(self, group: str, batch: BatchPass) -> list[int]:
        found: list[int] = []
        for one in (group, *self._hierarchy.below(group)):
            try:
                pids = self._hierarchy.processes(one)
            except (OSError, CgroupError):
                continue  # it is gone
            # One that is younger than the pass is judged with the next look.
            stats = (batch.processes[pid] for pid in pids if pid in batch.processes)
            found += [stat.pid for stat in stats if stat.process not in batch.batch]
        return found

    def _own(self, home: str) -> _Placed:
        return _Placed(f"{home}/{self._own_name}".lstrip("/"), home=home)

    def _find_to_move(self, group: BatchGroup, members: Mapping[TaskKey, Iterable[Process]], now: float) -> None:
        """Processes of a task that are where it was found, or beside its group. Others could not be put back."""
        for task in group.tasks:
            if to_move := [each for each in members[task.key] if self._is_in(each, (group.home, group.path), now)]:
                group.to_move[task.key] = to_move

    def _is_in(self, process: Process, groups: Collection[str | None], now: float) -> bool:
        try:
            return self._found_in(process, now) in groups
        except (OSError, CgroupError):
            return False

    def _found_in(self, process: Process, now: float) -> str:
        """The group of a process, as it was read lately."""
        text = self._memberships.text(process, now)
        known, place = self._places.get(process, ("", ""))
        if known is not text:
            place = self._hierarchy.group_in(text, process.pid)
            self._places[process] = (text, place)
        return place


def name_of(key: TaskKey) -> str:
    """The name of a task's own group: its id, as far as that can be a directory's name."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_:-]{0,200}", key.task_id):
        return key.task_id
    return "task_" + hashlib.sha256("/".join(key).encode(errors="surrogateescape")).hexdigest()[:20]


def _outermost(groups: Mapping[str, BatchGroup]) -> dict[str, BatchGroup]:
    """A group below another one is part of that."""
    found: dict[str, BatchGroup] = {}
    for path in sorted(groups, key=lambda path: path.count("/")):
        above = next((group for other, group in found.items() if path.startswith(f"{other}/")), None)
        if above is None:
            found[path] = groups[path]
        else:
            above.tasks += groups[path].tasks
            above.given |= groups[path].given
    return found
