"""The take-backs of all nodes, each cluster within its blast radius.

Within `blast_seconds` at most a share of a cluster's allocation, or one largest task if that is more, is taken back. A
take-back counts from its start for what it is about to terminate, from its end for what it does terminate, and not at
all when it was cancelled. All functions are pure; times are monotonic seconds.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from fallow_core.ledger.node_ledger import RowEntry
from fallow_core.ledger.rows import RowKey
from fallow_core.ledger.take_back import Active, Change, Decision, PartState, Situation, Started, decide
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_hookspecs import ResourceName

Part = tuple[RowKey, ResourceName]


@dataclass(slots=True)
class TakeBacks:
    """The state of all take-backs. `started`: those of each cluster and resource that the blast radius counts."""

    parts: dict[Part, PartState] = field(default_factory=dict)
    started: dict[tuple[str, ResourceName], tuple[Started, ...]] = field(default_factory=dict)

    def forget(self, gone: Callable[[RowKey], bool]) -> None:
        """Forget rows: should one come back, what it has then is adopted anew."""
        self.parts = {part: state for part, state in self.parts.items() if not gone(part[0])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One row and resource to decide about. `node_overdraft`: of its node. `under_pressure`: its node is measured to
    use more than its watermark allows.
    """

    entry: RowEntry
    resource: ResourceName
    situation: Situation
    node_overdraft: int
    under_pressure: bool = False


def budget(
    started: Iterable[Started], resource: ResourceName, situation: Situation, policy: TakeBackPolicy, now: float
) -> int:
    """What may still be taken back of a cluster: max(share of its allocation, one largest task) less what was begun."""
    lately = sum(each.amount for each in started if now - each.at < policy.blast_seconds)
    most = max(situation.cluster_allocated * policy.blast_percent // 100, situation.largest)
    return max(most - lately, 0)


def decide_all(
    takes: TakeBacks, candidates: Iterable[Candidate], policy: TakeBackPolicy, now: float, *, enforce: bool = True
) -> dict[Part, Decision]:
    """Decide about rows of any number of nodes: nodes under pressure first, then those with the largest overdraft.

    `takes` is brought up to date. Where nothing is enforced, adoption and the time of overdrafts are remembered, and no
    take-back.
    """
    decisions: dict[Part, Decision] = {}
    started: dict[tuple[str, ResourceName], tuple[Started, ...]] = {}
    for each in sorted(candidates, key=_order):
        entry, resource, situation = each.entry, each.resource, each.situation
        part, of = (entry.key, resource), (entry.key.cluster, resource)
        if of not in started:
            started[of] = tuple(s for s in takes.started.get(of, ()) if now - s.at < policy.blast_seconds)
        before = takes.parts.get(part, PartState())
        others = _without(started[of], before.active)
        left = budget(others, resource, situation, policy, now)
        decision = decide(entry, resource, situation, before, each.node_overdraft, left, policy, now)
        if decision.change is Change.TERMINATES:
            decision = _counted(decision, entry, situation, now)
        decisions[part] = decision
        takes.parts[part] = decision.state if enforce else replace(decision.state, active=None)
        if (active := decision.state.active) is not None:
            started[of] = (*others, active.started)
        elif decision.change is Change.CANCELLED and before.active is not None and before.active.ordered_at is None:
            started[of] = others  # nothing was terminated
    if enforce:
        takes.started |= started
    return decisions


def _without(started: tuple[Started, ...], active: Active | None) -> tuple[Started, ...]:
    if active is None or active.started not in started:
        return started
    at = started.index(active.started)
    return (*started[:at], *started[at + 1 :])


def _counted(decision: Decision, entry: RowEntry, situation: Situation, now: float) -> Decision:
    """The decision with what the blast radius counts from now on: what may be terminated now."""
    assert decision.state.active is not None
    size = decision.state.active.size
    started = Started(now, entry.allocated - size + situation.overshoot(entry.unit))
    return replace(decision, state=replace(decision.state, active=replace(decision.state.active, started=started)))


def _order(each: Candidate) -> tuple[bool, int, RowKey]:
    entry = each.entry
    return not each.under_pressure, max(entry.target, entry.floor) - entry.allocated, entry.key
