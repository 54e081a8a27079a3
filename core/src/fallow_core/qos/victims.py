"""Whom to end: of the tasks that may end for a need, the set with the least harm that frees enough.

Masters only when nothing else suffices; applications that were hit often only when no others do; then the least harm
(`harm`), and with equal harm the newest. Of a gang only so many end that the rest is still of use, or else all that are
here. If that makes others elsewhere useless it is part of the harm, and for needs that spare masters it is left to the
controller. A task whose use is not known is credited with nothing, so it never ends for pressure. Nobody ends who is
redundant.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fallow_core.model.qos_policy import TerminationPolicy
from fallow_core.model.task import ApplicationKey, ObservedTask, TaskKey
from fallow_core.qos.gangs import GangHere, GangKey, gang_key, gangs
from fallow_core.qos.harm import Harm, harms
from fallow_core.qos.least_harm import cheapest
from fallow_core.qos.need import Need, NodeView
from fallow_core.qos.units import Budgets, Cost, Unit, cost
from fallow_hookspecs import TaskState

RUNNERS_UP = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What became of earlier terminations: how many each application had lately, and which tasks could not be
    terminated.
    """

    terminations_lately: Mapping[ApplicationKey, int] = field(default_factory=dict)
    failed: frozenset[TaskKey] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A task that may end, what that would free (0 where its use is not known) and what it would cost.

    `budget`: how many more terminations its application had.
    """

    task: ObservedTask
    freed: int
    harm: Harm
    budget: int

    @property
    def arithmetic(self) -> str:
        """Why it was chosen, or was not, in numbers."""
        master = " (master)" if self.task.is_master else ""
        return f"{self.task.task.id}{master}: frees {self.freed}, budget {self.budget}, {self.harm.arithmetic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Who is to end for a need. `runners_up`: the next best, in order. `barred`: who may not end, and why.

    `freed` by all victims; `shortfall` is what is missing even so.
    """

    need: Need
    victims: tuple[Candidate, ...]
    runners_up: tuple[Candidate, ...]
    barred: Mapping[TaskKey, str]
    freed: int
    shortfall: int

    @property
    def arithmetic(self) -> tuple[str, ...]:
        """The choice, line by line."""
        terms = ", ".join(f"{name} {value:g}" for name, value in self.need.terms.items())
        return (
            f"{self.need.strategy}: {self.need.why}; to be freed: {self.need.amount} of {self.need.resource} ({terms})",
            *(f"ends {candidate.arithmetic}" for candidate in self.victims),
            *(f"spares {candidate.arithmetic}" for candidate in self.runners_up),
            f"freed {self.freed} by {self.need.counted_by}, short of {self.shortfall}",
        )


def choose(need: Need, view: NodeView, policy: TerminationPolicy, past: Past) -> Choice:
    """Choose who ends for a need. `Choice.shortfall` says what even all together do not free."""
    living = view.living()
    termination = [
        task for task in view.tasks if task.key in view.terminating or task.task.state is TaskState.TERMINATING
    ]
    of_gangs = gangs(living, termination)
    barred = _barred(living, need, past, of_gangs)
    harm = harms(living, policy, past.terminations_lately, termination)
    candidates = []
    for task in sorted(living, key=lambda task: task.key):
        if task.key not in barred:
            budget = max(policy.budget - past.terminations_lately.get(task.application_key, 0), 0)
            candidates.append(Candidate(task=task, freed=_freed(task, need, view), harm=harm(task), budget=budget))
    units = dict(_units(candidates, of_gangs, need))
    budgets = {unit.application: members[0].budget for unit, members in units.items()}
    chosen = cheapest((unit for unit in units if _fits(need, unit.freed)), need.amount, budgets, need.at_most)
    while not _fits(need, sum(unit.freed for unit in chosen)):
        chosen = chosen[:-1]
    victims = {candidate.task.key: candidate for unit in chosen for candidate in units[unit]}
    others = sorted((unit for unit in units if unit not in chosen), key=lambda unit: _next(unit, budgets))
    spared: dict[TaskKey, Candidate] = {}
    for candidate in (candidate for unit in others for candidate in units[unit]):
        if candidate.task.key not in victims:
            spared.setdefault(candidate.task.key, candidate)
    freed = sum(candidate.freed for candidate in victims.values())
    return Choice(
        need=need,
        victims=tuple(victims.values()),
        runners_up=tuple(spared.values())[:RUNNERS_UP],
        barred=barred,
        freed=freed,
        shortfall=max(need.amount - freed, 0),
    )


def _barred(
    living: Sequence[ObservedTask], need: Need, past: Past, of_gangs: Mapping[GangKey, GangHere]
) -> dict[TaskKey, str]:
    barred = {task.key: why for task in living if (why := _why_barred(task, need, past))}
    whole = {key: gang for key, gang in of_gangs.items() if not gang.spare}
    torn = {gang_key(task) for task in living if task.key in barred}
    for task in living:
        key = gang_key(task)
        if key in whole and task.key not in barred:
            if not _may_end(whole[key], need):
                barred[task.key] = "its gang is on other nodes too: the controller ends it"
            elif key in torn:
                barred[task.key] = "its gang cannot end whole"
    return barred


def _may_end(gang: GangHere, need: Need) -> bool:
    """Whether all its members here may end for a need."""
    return need.masters or not gang.useless


def _why_barred(task: ObservedTask, need: Need, past: Past) -> str:
    if not task.task.may_be_ended:
        return "its framework says that it may not be terminated"
    if need.clusters is not None and task.cluster not in need.clusters:
        return "its account does not have to pay"
    if task.is_master and not need.masters:
        return "it is a master"
    return "it could not be terminated a short time ago" if task.key in past.failed else ""


def _freed(task: ObservedTask, need: Need, view: NodeView) -> int:
    if need.counted_by == "request":
        return task.requested.amount(need.resource)
    return view.use(task, need.resource) or 0


def _units(
    candidates: Iterable[Candidate], of_gangs: Mapping[GangKey, GangHere], need: Need
) -> Iterator[tuple[Unit, list[Candidate]]]:
    """What may end together. A gang that has some to spare is in it whole, and each member by itself."""
    members: defaultdict[GangKey, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        key = gang_key(candidate.task)
        if key is not None:
            members[key].append(candidate)
        if key is None or of_gangs[key].spare:
            alone = replace(candidate, harm=replace(candidate.harm, gang_percent=100))
            unit = _unit((*candidate.task.key, "task"), [alone])
            yield unit if key is None else replace(unit, gang=key, room=of_gangs[key].spare), [alone]
    for key, own in members.items():
        gang = of_gangs[key]
        if gang.spare < gang.here == len(own) and _may_end(gang, need):
            room = max(gang.spare, 1)
            yield replace(_unit((*key, "gang"), own), gang=key, take=room, room=room), own


def _unit(name: tuple[str, ...], candidates: Sequence[Candidate]) -> Unit:
    return Unit(
        name=name,
        application=candidates[0].task.application_key,
        terminations=len(candidates),
        masters=sum(candidate.task.is_master for candidate in candidates),
        harm=sum(candidate.harm.total for candidate in candidates),
        age_ms=sum(candidate.harm.age_ms for candidate in candidates),
        freed=sum(candidate.freed for candidate in candidates),
    )


def _fits(need: Need, freed: int) -> bool:
    return need.at_most is None or freed <= need.at_most


def _next(unit: Unit, budgets: Budgets) -> tuple[bool, Cost, tuple[str, ...]]:
    """The order of those who were spared: the cheapest first, last those who would free nothing that is known."""
    return unit.freed == 0, cost([unit], budgets), unit.name
