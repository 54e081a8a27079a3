"""In which groups batch is: found from where each task's processes are, and from what its plugin says of moving them.

A framework that gives its tasks groups has them below one of its own: that one is the batch group, if nothing else is
in it. Tasks without groups get one: below the group where they are, so that all limits above them stay in force, and so
that it is known where they came from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fallow_core.errors import CgroupError
from fallow_core.model.task import SeenTask, TaskKey
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.task_usage import BatchPass
from fallow_hookspecs import Process, TaskPlacement

LOOK_AGAIN_SECONDS = 10.0


@dataclass(slots=True, kw_only=True)
class BatchGroup:
    """One group of batch with its tasks. `home`: it is Fallow's own, made there; `to_move`: what is not in it yet."""

    path: str
    home: str | None = None
    tasks: list[SeenTask] = field(default_factory=list)
    to_move: list[Process] = field(default_factory=list)

    @property
    def clusters(self) -> frozenset[str]:
        """Whose tasks are in it."""
        return frozenset(task.cluster for task in self.tasks)


class BatchGroups:
    """Finds the groups; `without` says of each task without one why. What was read of a task counts for a while.

    `own_name` is the name of Fallow's own groups.
    """

    def __init__(self, hierarchy: Hierarchy, own_name: str) -> None:
        self.without: dict[TaskKey, str] = {}
        self.foreign: dict[str, str] = {}
        self._hierarchy = hierarchy
        self._own_name = own_name
        self._places: dict[TaskKey, tuple[float, str]] = {}
        self._checked: dict[str, float] = {}

    def find(
        self,
        tasks: Iterable[SeenTask],
        members: Mapping[TaskKey, Iterable[Process]],
        placements: Mapping[TaskKey, TaskPlacement],
        batch: BatchPass,
        now: float,
    ) -> dict[str, BatchGroup]:
        """The groups of batch by path, without those in which something else is as well. All `tasks` have members."""
        self.without = {}
        groups: dict[str, BatchGroup] = {}
        self._places = {key: place for key, place in self._places.items() if key in members}
        for task in tasks:
            group = self._group(task.key, members[task.key], placements.get(task.key), now)
            if group is not None:
                groups.setdefault(group.path, group).tasks.append(task)
        groups = _outermost(groups)
        self._check(groups, batch, now)
        for path in self.foreign.keys() & groups.keys():
            self.without |= {task.key: self.foreign[path] for task in groups.pop(path).tasks}
        for group in groups.values():
            if group.home is not None:
                self._find_to_move(group, members)
        return groups

    def _group(
        self, key: TaskKey, processes: Iterable[Process], placement: TaskPlacement | None, now: float
    ) -> BatchGroup | None:
        try:
            place = self._place(key, processes, now)
        except (OSError, CgroupError) as error:
            if isinstance(error, CgroupError):
                self.without[key] = str(error)
            return None  # it has ended
        above, _, name = place.rpartition("/")
        if name == self._own_name:
            return BatchGroup(path=place, home=above)
        if placement is None:
            self.without[key] = "its plugin has not said yet whether it may be moved"
            return None
        said = (own.strip("/") for own in placement.cgroups)
        own = next((own for own in said if own and f"{place}/".startswith(f"{own}/")), None)
        if own is not None:
            return BatchGroup(path=own.rpartition("/")[0] or own)
        if placement.movable:
            return BatchGroup(path=f"{place}/{self._own_name}".lstrip("/"), home=place)
        setting = f": set {placement.setting}" if placement.setting else ""
        self.without[key] = f"its group /{place} is not its own, and it may not be moved{setting}"
        return None

    def _place(self, key: TaskKey, processes: Iterable[Process], now: float) -> str:
        """The group of a task's first process."""
        at, place = self._places.get(key, (now - LOOK_AGAIN_SECONDS, ""))
        if now - at >= LOOK_AGAIN_SECONDS:
            place = self._hierarchy.group_of(min(processes, key=lambda process: process.start_ticks).pid)
            self._places[key] = (now, place)
        return place

    def _check(self, groups: Mapping[str, BatchGroup], batch: BatchPass, now: float) -> None:
        """Look now and then whether anything else is in a group that Fallow did not make."""
        self._checked = {path: at for path, at in self._checked.items() if path in groups}
        self.foreign = {path: why for path, why in self.foreign.items() if path in groups}
        for path, group in groups.items():
            if group.home is not None or now - self._checked.get(path, now - LOOK_AGAIN_SECONDS) < LOOK_AGAIN_SECONDS:
                continue
            self._checked[path] = now
            self.foreign.pop(path, None)
            if strangers := self._strangers(path, batch):
                self.foreign[path] = f"/{path} is not of batch alone: process {strangers[0]} is in it too"

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

    def _find_to_move(self, group: BatchGroup, members: Mapping[TaskKey, Iterable[Process]]) -> None:
        """One that is elsewhere stays there: it could not be put back."""
        try:
            inside = set(self._hierarchy.processes(group.path))
        except (OSError, CgroupError):
            inside = set()  # it is not made yet
        processes = (process for task in group.tasks for process in members[task.key])
        outside = [process for process in processes if process.pid not in inside]
        group.to_move = [process for process in outside if self._is_in(process, group.home)]

    def _is_in(self, process: Process, group: str | None) -> bool:
        try:
            return self._hierarchy.group_of(process.pid) == group
        except (OSError, CgroupError):
            return False


def _outermost(groups: Mapping[str, BatchGroup]) -> dict[str, BatchGroup]:
    """A group below another one is part of that."""
    found: dict[str, BatchGroup] = {}
    for path in sorted(groups, key=lambda path: path.count("/")):
        above = next((group for other, group in found.items() if path.startswith(f"{other}/")), None)
        if above is None:
            found[path] = groups[path]
        else:
            above.tasks += groups[path].tasks
    return found
