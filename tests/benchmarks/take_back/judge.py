"""How closely the sizes of one node followed what could be lent, judged from samples and facts. Pure.

Times are seconds since the epoch, amounts are MB. A size may be as much as can be lent and the floor, or, where that is
more, the allocation less what the blast radius still permits to take back.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

UNIT_MB = 1
TAKEN_BACK = -102
BLAST_SECONDS = 600.0
TOGETHER_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """What the ResourceManager says of the node: its size, and what it has allocated."""

    size_mb: int
    allocated_mb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One moment. `in_force` is `None` while the ResourceManager does not serve the node."""

    at: float
    in_force: InForce | None
    lendable_mb: int
    floor_mb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container by the ResourceManager's log. `exit_code`: as its application master was told."""

    name: str
    memory_mb: int
    started: float
    end: float = math.inf
    exit_code: int | None = None

    @property
    def taken_back(self) -> bool:
        """Whether the ResourceManager ended it."""
        return self.exit_code == TAKEN_BACK

    def runs_at(self, at: float) -> bool:
        """Whether it was allocated before, and has not ended."""
        return self.started < at < self.end


def left_mb(at: float, allocated_mb: int, containers: Sequence[Container], blast_percent: int) -> int:
    """What the blast radius permits to take back at a time: max(its share, one largest task) less what was taken back.

    What counts are containers that did end, whatever was announced.
    """
    largest = max((each.memory_mb for each in containers if each.runs_at(at)), default=0)
    lately = sum(each.memory_mb for each in containers if each.taken_back and at - BLAST_SECONDS < each.end <= at)
    return max(max(allocated_mb * blast_percent // 100, largest) - lately, 0)


def stretches(samples: Sequence[Sample], most_mb: Callable[[Sample, InForce], int]) -> list[float]:
    """The seconds of each stretch in which the size was above `most_mb` by more than a unit.

    Without a ResourceManager that serves the node no time passes: a stretch goes on behind that.
    """
    found, length = [], 0.0
    for sample, following in itertools.pairwise(samples):
        if sample.in_force is None:
            continue
        if sample.in_force.size_mb > most_mb(sample, sample.in_force) + UNIT_MB:
            length += following.at - sample.at
        elif length:
            found.append(length)
            length = 0.0
    return [*found, length] if length else found


def started_overdrawn(samples: Sequence[Sample], containers: Sequence[Container]) -> list[Container]:
    """The containers that started while the others had more than could be lent, by more than such a container."""
    found = []
    for container in containers:
        before = [sample for sample in samples if sample.at <= container.started]
        if before:
            others = sum(each.memory_mb for each in containers if each.runs_at(container.started))
            if others - before[-1].lendable_mb > container.memory_mb:
                found.append(container)
    return found


def warnings(samples: Sequence[Sample], containers: Sequence[Container]) -> list[float]:
    """The seconds of warning that each container had which was taken back, the shortest first.

    It was warned while the size was below the allocation by more than those containers had that ended just before it:
    else they would have sufficed. A time without a ResourceManager does not count.
    """
    ended = sorted((each for each in containers if each.taken_back), key=lambda each: (each.end, -each.started))
    found = []
    for i, container in enumerate(ended):
        before = [each for each in ended[:i] if container.end - each.end < TOGETHER_SECONDS]
        first, before_mb = min((each.end for each in before), default=container.end), sum(c.memory_mb for c in before)
        warned, until = 0.0, container.end
        for sample in reversed([sample for sample in samples if container.started <= sample.at < first]):
            if sample.in_force is not None:
                if sample.in_force.allocated_mb - sample.in_force.size_mb <= before_mb:
                    break
                warned += until - sample.at
            until = sample.at
        found.append(warned)
    return sorted(found)
