"""Chooses the tasks to terminate for a need: the set with the least harm that frees enough.

Masters are chosen only if nothing else suffices, and applications above their termination budget only if no others do;
then the least harm decides (`harm`), and with equal harm the newest task. Before all that, tasks of accounts that a
need names first are chosen, and others only for what these do not free. If all tasks together do not suffice, masters
are chosen only for a critical need. No task of a restored account is chosen.

A gang loses only members that it can spare, or all members here. Members elsewhere that become useless are part of the
harm; needs that spare masters leave such a gang to the controller. A task whose use is not known frees nothing, so
pressure never terminates it. No victim is redundant.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
MASTERS_WOULD_NOT_SUFFICE = "it is a master, and all tasks together would not free enough"


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Earlier terminations: how many each application had recently, and the tasks that could not be terminated."""

    recent_terminations: Mapping[ApplicationKey, int] = field(default_factory=dict)
    failed: frozenset[TaskKey] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An eligible task, what its termination would free (0 if its use is not known), and the harm.

    `budget`: how many more terminations its application may have.
    """

    task: ObservedTask
    freed: int
    harm: Harm
    budget: int

    @property
    def arithmetic(self) -> str:
        """The numbers of the decision as text."""
        master = " (master)" if self.task.is_master else ""
        return f"{self.task.task.id}{master}: frees {self.freed}, budget {self.budget}, {self.harm.arithmetic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The tasks to terminate for a need. `runners_up`: the next best, in order.

    `ineligible`: the tasks that may not be terminated, and why. `freed` by all victims; `shortfall`: what is missing.
    """

    need: Need
    victims: tuple[Candidate, ...]
    runners_up: tuple[Candidate, ...]
    ineligible: Mapping[TaskKey, str]
    freed: int
    shortfall: int

    def spared(self) -> Mapping[str, int]:
        """Why tasks may not be terminated, and how many tasks that concerns."""
        return Counter(sorted(self.ineligible.values()))

    @property
    def arithmetic(self) -> tuple[str, ...]:
        """The choice as lines of text."""
        terms = ", ".join(f"{name} {value:g}" for name, value in self.need.terms.items())
        return (
            f"{self.need.strategy}: {self.need.why}; to be freed: {self.need.amount} of {self.need.resource} ({terms})",
            *(f"terminates {candidate.arithmetic}" for candidate in self.victims),
            *(f"spares {candidate.arithmetic}" for candidate in self.runners_up),
            f"freed {self.freed} by {self.need.counted_by}, short of {self.shortfall}",
        )


def choose(need: Need, view: NodeView, policy: TerminationPolicy, history: History) -> Choice:
    """Choose the victims for a need."""
    if need.first:
        return _above_fair_first(need, view, policy, history)
    masters = need.masters
    choice = _choose(need, view, policy, history, "" if masters else "it is a master")
    if masters and choice.shortfall and not need.critical and any(c.task.is_master for c in choice.victims):
        return _choose(need, view, policy, history, MASTERS_WOULD_NOT_SUFFICE)
    return choice


def _above_fair_first(need: Need, view: NodeView, policy: TerminationPolicy, history: History) -> Choice:
    """The victims of accounts that come first, and for what is still lacking those of the others."""
    every = frozenset(task.cluster for task in view.tasks) if need.clusters is None else need.clusters
    stage = replace(need, first=frozenset())
    first = choose(replace(stage, clusters=every & need.first), view, policy, history)
    if not first.shortfall:
        return replace(first, need=need)
    rest = choose(replace(stage, clusters=every - need.first, amount=first.shortfall), view, policy, history)
    both = {key: why for key, why in rest.ineligible.items() if key in first.ineligible}
    return Choice(
        need=need,
        victims=first.victims + rest.victims,
        runners_up=first.runners_up + rest.runners_up,
        ineligible=both,
        freed=first.freed + rest.freed,
        shortfall=rest.shortfall,
    )


def _choose(need: Need, view: NodeView, policy: TerminationPolicy, history: History, spares_masters: str) -> Choice:
    """`spares_masters`: why masters may not be terminated; empty if they may."""
    living = view.living()
    terminating = [
        task for task in view.tasks if task.key in view.terminating or task.task.state is TaskState.TERMINATING
    ]
    of_gangs = gangs(living, terminating)
    ineligible = _ineligible(living, need, view.restored, history, of_gangs, spares_masters)
    harm = harms(living, policy, history.recent_terminations, terminating)
    candidates = []
    for task in sorted(living, key=lambda task: task.key):
        if task.key not in ineligible:
            budget = max(policy.budget - history.recent_terminations.get(task.application_key, 0), 0)
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
        ineligible=ineligible,
        freed=freed,
        shortfall=max(need.amount - freed, 0),
    )


def _ineligible(
    living: Sequence[ObservedTask],
    need: Need,
    restored: Collection[str],
    history: History,
    of_gangs: Mapping[GangKey, GangHere],
    spares_masters: str,
) -> dict[TaskKey, str]:
    ineligible = {
        task.key: why for task in living if (why := _why_ineligible(task, need, restored, history, spares_masters))
    }
    whole = {key: gang for key, gang in of_gangs.items() if not gang.spare}
    broken = {gang_key(task) for task in living if task.key in ineligible}
    for task in living:
        key = gang_key(task)
        if key in whole and task.key not in ineligible:
            if not _may_terminate(whole[key], need):
                ineligible[task.key] = "its gang is on other nodes too: the controller terminates it"
            elif key in broken:
                ineligible[task.key] = "its gang cannot be terminated as a whole"
    return ineligible


def _may_terminate(gang: GangHere, need: Need) -> bool:
    """Whether all its members here may be terminated for a need."""
    return need.masters or not gang.useless


def _why_ineligible(
    task: ObservedTask, need: Need, restored: Collection[str], history: History, spares_masters: str
) -> str:
    if task.cluster in restored:
        return f"{task.cluster} is restored"
    if not task.task.may_be_ended:
        return "its framework says that it may not be terminated"
    if need.clusters is not None and task.cluster not in need.clusters:
        return "the need is not for its account"
    if task.is_master and spares_masters:
        return spares_masters
    return "it could not be terminated a short time ago" if task.key in history.failed else ""


def _freed(task: ObservedTask, need: Need, view: NodeView) -> int:
    if need.counted_by == "request":
        return task.requested.amount(need.resource)
    return view.use(task, need.resource) or 0


def _units(
    candidates: Iterable[Candidate], of_gangs: Mapping[GangKey, GangHere], need: Need
) -> Iterator[tuple[Unit, list[Candidate]]]:
    """The units. A gang that can spare members is one unit as a whole, and each member is one too."""
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
        if gang.spare < gang.here == len(own) and _may_terminate(gang, need):
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
    """The order of the runners-up: the cheapest first; those that would free nothing last."""
    return unit.freed == 0, cost([unit], budgets), unit.name
