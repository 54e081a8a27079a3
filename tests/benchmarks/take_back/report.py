"""What is printed of one run of the ramp, and which aims it missed. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.benchmarks.take_back import judge
from tests.benchmarks.take_back.facts import Event
from tests.benchmarks.take_back.judge import Container, InForce, Sample

MOST_SECONDS, MOST_SECONDS_WITH_KILLS, LEAST_WARNING_SECONDS = 3.0, 5.0, 15.0
OF_TAKE_BACKS = ("take_back_starts", "take_back_terminates", "take_back_ends", "take_back_cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All that is known of one run. `containers` also has those from before it `began`."""

    samples: Sequence[Sample]
    containers: Sequence[Container]
    events: Sequence[Event]
    blast_percent: int
    began: float

    def above(self) -> list[float]:
        """The stretches, in seconds, in which the size was above what it may be."""

        def most_mb(sample: Sample, node: InForce) -> int:
            left = judge.left_mb(sample.at, node.allocated_mb, self.containers, self.blast_percent)
            return max(sample.lendable_mb + sample.floor_mb, node.allocated_mb - left)

        return judge.stretches(self.samples, most_mb)

    def with_room(self) -> list[float]:
        """The stretches in which a task could start although there was nothing to lend."""
        return judge.stretches(self.samples, lambda s, node: max(s.lendable_mb + s.floor_mb, node.allocated_mb))

    def started_overdrawn(self) -> list[Container]:
        """Those that started in this run on a node that was overdrawn by more than one container."""
        return [each for each in judge.started_overdrawn(self.samples, self.containers) if each.started >= self.began]

    def warnings(self) -> list[float]:
        """The seconds of warning of each container that the ResourceManager ended, the shortest first."""
        return judge.warnings(self.samples, self.containers)


def measures(run: Run) -> dict[str, object]:
    """Each measure, by its name."""
    above, room, warnings = run.above(), run.with_room(), run.warnings()
    minutes = (run.samples[-1].at - run.samples[0].at) / 60
    served = [s.in_force for s in run.samples if s.in_force]
    names = Counter(event.name for event in run.events)
    codes = Counter(c.exit_code for c in run.containers if c.exit_code is not None)
    return {
        "above what it may be: longest, s": f"{max(above, default=0):.1f}",
        "above what it may be: total, s": f"{sum(above):.1f}",
        "room for tasks while nothing can be lent: longest, s": f"{max(room, default=0):.1f}",
        "room for tasks while nothing can be lent: total, s": f"{sum(room):.1f}",
        "without a ResourceManager, s": f"{60 * minutes * (1 - len(served) / len(run.samples)):.0f}",
        "started while overdrawn by more than one": len(run.started_overdrawn()),
        "containers started": sum(each.started >= run.began for each in run.containers),
        "allocated, mean MB": round(sum(node.allocated_mb for node in served) / max(len(served), 1)),
        "sizes sent a minute": f"{names['offer_sent'] / minutes:.1f}",
        **{name: names[name] for name in OF_TAKE_BACKS},
        "ended with": " ".join(f"{code}:{count}" for code, count in sorted(codes.items())),
        "warnings, s": " ".join(f"{each:.0f}" for each in warnings[:6]) or "-",
    }


def missed(run: Run, *, kills: bool) -> list[str]:
    """The aims that the run missed."""
    most = MOST_SECONDS_WITH_KILLS if kills else MOST_SECONDS
    longest, started, warnings = max(run.above(), default=0), len(run.started_overdrawn()), run.warnings()
    found = []
    if longest > most:
        found.append(f"the size was above what it may be for {longest:.1f} s, {most:.0f} s at most were expected")
    if started:
        found.append(f"{started} containers started on an overdrawn node, none was expected")
    if warnings and warnings[0] < LEAST_WARNING_SECONDS:
        found.append(f"a container had {warnings[0]:.0f} s of warning, {LEAST_WARNING_SECONDS:.0f} s were expected")
    return found
