"""The gangs of one node: how many members are here, and how many may be terminated before the others are useless."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from fallow_core.model.task import ObservedTask


class GangKey(NamedTuple):
    """Which gang: the cluster (`framework/cluster`), and the framework's id of the gang."""

    cluster: str
    gang_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GangHere:
    """How many members live here and elsewhere; with fewer than `minimum` in all, none of them is useful."""

    here: int
    elsewhere: int
    minimum: int

    @property
    def spare(self) -> int:
        """How many members here may be terminated one by one."""
        return max(min(self.here + self.elsewhere - self.minimum, self.here), 0)

    @property
    def useless(self) -> int:
        """How many members elsewhere would be useless without those here."""
        return self.elsewhere if self.elsewhere < self.minimum else 0


def gang_key(task: ObservedTask) -> GangKey | None:
    """The gang that a task is a member of, if any."""
    return None if task.task.gang is None else GangKey(task.cluster, task.task.gang.id)


def gangs(living: Collection[ObservedTask], terminating: Iterable[ObservedTask] = ()) -> dict[GangKey, GangHere]:
    """The gangs of a node's living tasks. Members that are `terminating` count neither as here nor as elsewhere."""
    members = {key: task.task.gang for task in living if (key := gang_key(task)) is not None}
    here, ending = Counter(map(gang_key, living)), Counter(map(gang_key, terminating))
    return {
        key: GangHere(here=here[key], elsewhere=max(gang.members - here[key] - ending[key], 0), minimum=gang.minimum)
        for key, gang in members.items()
        if gang is not None
    }
