"""The gangs of one node: what of each is here, and how many of its members may end before the rest is of no use."""

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
    """How many members live here and elsewhere; with fewer than `minimum` in all, none is of use."""

    here: int
    elsewhere: int
    minimum: int

    @property
    def spare(self) -> int:
        """How many of those here may end one by one; all of them if the gang does without."""
        return max(min(self.here + self.elsewhere - self.minimum, self.here), 0)

    @property
    def useless(self) -> int:
        """How many elsewhere would be of no use without those here."""
        return self.elsewhere if self.elsewhere < self.minimum else 0


def gang_key(task: ObservedTask) -> GangKey | None:
    """The gang that a task is a member of, if any."""
    return None if task.task.gang is None else GangKey(task.cluster, task.task.gang.id)


def gangs(living: Collection[ObservedTask], termination: Iterable[ObservedTask] = ()) -> dict[GangKey, GangHere]:
    """The gangs of a node's tasks: those that live, and those that are terminating."""
    members = {key: task.task.gang for task in living if (key := gang_key(task)) is not None}
    here, leaving = Counter(map(gang_key, living)), Counter(map(gang_key, termination))
    return {
        key: GangHere(here=here[key], elsewhere=max(gang.members - here[key] - leaving[key], 0), minimum=gang.minimum)
        for key, gang in members.items()
        if gang is not None
    }
