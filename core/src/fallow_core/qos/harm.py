"""The harm of terminating a task, in milli-core-seconds, with every term, so that the sum can be checked by hand.

    size  = requested CPU + requested memory, 4 GiB counting as one core
    work  = age × size × the share that no checkpoint or shuffle service keeps
    total = work × priority × near its end × gang + charge

- priority: 100 %, plus 100 % for each lower level that runs on the node, among the applications of the cluster and
  among the tasks of the application. Only the order of priorities matters, not their values.
- near its end: 100 % ÷ the share of its time that is left, at most 10,000 %. A task that will finish soon is spared: it
  frees its resources anyway.
- gang: (members on this node + useless members elsewhere) ÷ members on this node; 100 % if the gang can spare the task.
- charge: a signal counts as a failure of the application; the same again for each of its recent terminations.

If the age of a task is not known, the oldest known age on the node is used instead.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fallow_core.model.qos_policy import TerminationPolicy
from fallow_core.model.task import ApplicationKey, ObservedTask
from fallow_core.qos.gangs import GangHere, gang_key, gangs
from fallow_hookspecs import Resources, TaskState

MEMORY_BYTES_PER_CORE = 4 << 30
_LEAST_LEFT_PERMILLE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """The terms of one task. `work`, `charge` and `total` are milli-core-seconds."""

    age_ms: int
    size_milli: int
    lost_permille: int
    priority_percent: int
    near_end_percent: int
    gang_percent: int
    charge: int

    @property
    def work(self) -> int:
        """The work that would be lost."""
        return self.age_ms * self.size_milli * self.lost_permille // 10**6

    @property
    def total(self) -> int:
        """The harm."""
        return self.work * self.priority_percent * self.near_end_percent * self.gang_percent // 10**6 + self.charge

    @property
    def arithmetic(self) -> str:
        """The calculation as text, in core-seconds."""
        return (
            f"{self.total / 1000:.0f} core-s = {self.age_ms / 1000:.0f} s × {self.size_milli / 1000:g} cores"
            f" × {self.lost_permille / 10:g} % lost × priority {self.priority_percent} %"
            f" × near its end {self.near_end_percent} % × gang {self.gang_percent} % + charge {self.charge / 1000:.0f}"
        )


def harms(
    tasks: Sequence[ObservedTask],
    policy: TerminationPolicy,
    recent_terminations: Mapping[ApplicationKey, int],
    terminating: Iterable[ObservedTask] = (),
) -> Callable[[ObservedTask], Harm]:
    """A function for the harm of one of these tasks: all living tasks of the node. All members of a gang here are
    terminated together.
    """
    oldest_ms = max((_ms(t.task.age_seconds) for t in tasks if t.task.age_seconds is not None), default=0)
    applications = _ranks((t.cluster, _application_level(t)) for t in tasks)
    own = _ranks((t.application_key, (t.task.priority,)) for t in tasks)
    charge = policy.charge_core_seconds * 1000
    of_gangs = gangs(tasks, terminating)

    def harm(task: ObservedTask) -> Harm:
        age_ms = _age_ms(task, oldest_ms)
        rank = applications[task.cluster, _application_level(task)] + own[task.application_key, (task.task.priority,)]
        return Harm(
            age_ms=age_ms,
            size_milli=size_milli(task.requested),
            lost_permille=1000 - round(task.task.kept_share * 1000),
            priority_percent=100 * (1 + rank),
            near_end_percent=100_000 // max(_left_permille(task, age_ms), _LEAST_LEFT_PERMILLE),
            gang_percent=_gang_percent(None if (key := gang_key(task)) is None else of_gangs[key]),
            charge=charge * (1 + recent_terminations.get(task.application_key, 0)),
        )

    return harm


def size_milli(requested: Resources) -> int:
    """The size of a task in milli-cores."""
    return requested.cpu_milli + requested.memory_bytes * 1000 // MEMORY_BYTES_PER_CORE


def _application_level(task: ObservedTask) -> tuple[int, ...]:
    """The priority of its application; below all others if the framework itself may terminate the task at any time."""
    return not task.task.opportunistic, task.application.priority if task.application is not None else 0


def _ranks(levels: Iterable[tuple[Hashable, tuple[int, ...]]]) -> dict[tuple[Hashable, tuple[int, ...]], int]:
    """For each level of each group, the number of lower levels in the group."""
    groups: defaultdict[Hashable, set[tuple[int, ...]]] = defaultdict(set)
    for group, level in levels:
        groups[group].add(level)
    return {(group, level): rank for group, own in groups.items() for rank, level in enumerate(sorted(own))}


def _ms(seconds: float) -> int:
    return max(round(seconds * 1000), 0)


def _age_ms(task: ObservedTask, oldest_ms: int) -> int:
    if task.task.age_seconds is not None:
        return _ms(task.task.age_seconds)
    return 0 if task.task.state is TaskState.STARTING else oldest_ms


def _left_permille(task: ObservedTask, age_ms: int) -> int:
    """The share of its time that is left: by its expected end, else its progress, else that of its application."""
    if task.task.ends_in_seconds is not None:
        left_ms = _ms(task.task.ends_in_seconds)
        return left_ms * 1000 // max(age_ms + left_ms, 1)
    progress = task.task.progress
    if progress is None and task.application is not None:
        progress = task.application.progress
    return 1000 if progress is None else 1000 - round(progress * 1000)


def _gang_percent(gang: GangHere | None) -> int:
    return 100 if gang is None else 100 * (gang.here + gang.useless) // gang.here
