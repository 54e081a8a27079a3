"""Taking back: when draining is too slow, the framework's own scheduler is told to end what is above an offer.

A take-back of one row and one resource starts when its overdraft (what is allocated above max(target, floor), and no
more than the node's allocations above batch; above the floor where the operator stopped it) has lasted, the inputs are
fresh, and nothing forbids it:

- what was allocated when Fallow first saw the row is adopted: drained, never taken back, until it has once fitted or
  the operator says so;
- the blast radius: within a time at most a share of a cluster's allocation, or one largest task, is taken back. The
  framework ends whole tasks until the rest fits, so the last one counts in full;
- never below the application masters on the row, which the framework would end last, but would end.

It is cancelled at once when its reason has gone, or when it is no longer allowed. The notice counts from when the size
is in force. All functions are pure; times are monotonic seconds.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from fallow_core.ledger.node_ledger import RowEntry
from fallow_core.ledger.rows import RowKey
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_hookspecs import ResourceName

Part = tuple[RowKey, ResourceName]


@dataclass(frozen=True, slots=True, kw_only=True)
class Active:
    """A take-back under way: down to `size`, with `notice_seconds` from when that was in force.

    `amount` is what lies above the size. `in_force_at` is `None` until the size was seen in force.
    """

    size: int
    amount: int
    notice_seconds: int
    ordered_at: float
    in_force_at: float | None = None

    def left_seconds(self, now: float) -> int:
        """The notice that is left, at least a second: what an update of the row has to carry.

        That is all of it until the size is in force: however late a call is carried out, nobody gets less.
        """
        if self.in_force_at is None:
            return self.notice_seconds
        return max(1, int(self.in_force_at + self.notice_seconds - now))

    def overdue(self, now: float, policy: TakeBackPolicy) -> bool:
        """Whether the framework should long have ended what is above the size."""
        if self.in_force_at is None:
            return False
        late = 2 * policy.heartbeat_seconds + policy.margin_seconds
        return now >= self.in_force_at + self.notice_seconds + late


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """What is remembered of one row and one resource. `fitted`: it was once within its offer, so it is not adopted.

    `cancelled_at`: when the newest take-back was cancelled, unless another one has started since.
    """

    fitted: bool = False
    over_since: float | None = None
    active: Active | None = None
    cancelled_at: float | None = None


class Started(NamedTuple):
    """One take-back that began, for the blast radius of its cluster: when, and what it may terminate at most."""

    at: float
    amount: int


@dataclass(slots=True)
class TakeBacks:
    """The state of all take-backs. `started`: those of each cluster and resource that the blast radius counts."""

    parts: dict[Part, PartState] = field(default_factory=dict)
    started: dict[tuple[str, ResourceName], tuple[Started, ...]] = field(default_factory=dict)

    def forget(self, gone: Callable[[RowKey], bool]) -> None:
        """Forget rows: should one come back, what it has then is adopted anew."""
        self.parts = {part: state for part, state in self.parts.items() if not gone(part[0])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What one row's take-back depends on besides the ledger.

    `allowed`: the framework takes this resource back uncharged, and the operator has not forbidden it. `fresh`: sample
    and report are. `masters`: what application masters on the row have requested; `largest`: the largest task there.
    `cluster_allocated`: what the cluster has allocated in all. `arrived_sent_at`: when the size in force was sent.
    `settles`: the policy was changed a short time ago, and what is over may be over because of that alone. `stopped`:
    the operator wants nothing to run there, so all that is allocated is in overdraft.
    """

    allowed: bool
    fresh: bool
    masters: int
    largest: int
    cluster_allocated: int
    arrived_sent_at: float = -math.inf
    settles: bool = False
    stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do about one row and one resource, and why; `state` is how it is remembered.

    `overdraft` is what is allocated above max(target, floor), as far as the node is in overdraft. After `start` or
    `cancel` the row is to be updated, to the size of `state.active`, or to `fits`.
    """

    state: PartState
    overdraft: int
    fits: int
    start: bool = False
    cancel: bool = False
    why: str = ""


def decide(
    entry: RowEntry,
    resource: ResourceName,
    situation: Situation,
    state: PartState,
    node_overdraft: int,
    budget: int,
    policy: TakeBackPolicy,
    now: float,
) -> Decision:
    """Decide about one row and one resource. `budget`: what the blast radius leaves."""
    bound = entry.floor if situation.stopped else max(entry.target, entry.floor)
    above = max(entry.allocated - bound, 0)
    # A row that drains for another account's sake is above, and not in overdraft.
    over = above if situation.stopped else min(above, node_overdraft)
    since = (now if state.over_since is None else state.over_since) if over else None
    fits = not above and situation.fresh  # before the first sample everything seems to fit
    if since != state.over_since or (fits and not state.fitted):
        state = replace(state, over_since=since, fitted=state.fitted or fits)
    why = _forbidden(resource, situation, state, policy, now) if state.active is None else ""
    decided = Decision(state=state, overdraft=over, fits=max(entry.size, entry.allocated), why=why)
    if state.active is not None:
        return _follow(entry, situation, decided, state.active, now)
    if not over or why:
        return decided
    size = max(
        entry.allocated - over, situation.masters, entry.allocated - max(budget - _overshoot(entry, situation), 0)
    )
    size = -(-size // entry.unit) * entry.unit
    if size >= entry.allocated:
        return replace(decided, why="the blast radius is used up, or only application masters are left: it drains")
    active = Active(size=size, amount=entry.allocated - size, notice_seconds=policy.notice_seconds, ordered_at=now)
    return replace(
        decided,
        state=replace(state, active=active, cancelled_at=None),
        start=True,
        why=f"overdraft for {now - (now if since is None else since):.0f} s",
    )


def _overshoot(entry: RowEntry, situation: Situation) -> int:
    """By how much more than what is asked for may end, as the last task that ends is a whole one."""
    return max(situation.largest - entry.unit, 0)


def _follow(entry: RowEntry, situation: Situation, decided: Decision, active: Active, now: float) -> Decision:
    """A take-back under way: it ends when it was enough, and is cancelled when its reason has gone."""
    if entry.allocated <= active.size:
        return replace(decided, state=replace(decided.state, active=None), why="taken back")
    if not decided.overdraft or not situation.allowed:
        why = "it is no longer allowed" if decided.overdraft else "its reason has gone"
        return replace(decided, state=replace(decided.state, active=None, cancelled_at=now), cancel=True, why=why)
    # Every size sent since the order carries the notice; one from before may be as small, and carries none.
    if active.in_force_at is None and situation.arrived_sent_at >= active.ordered_at:
        active = replace(active, in_force_at=now)
    return replace(decided, state=replace(decided.state, active=active), why="under way")


def _forbidden(
    resource: ResourceName, situation: Situation, state: PartState, policy: TakeBackPolicy, now: float
) -> str:
    after = policy.after_seconds.get(resource)
    if after is None:
        return "this resource is never taken back: it drains"
    if not situation.allowed:
        return "the framework cannot take back uncharged, or the operator forbids it: it drains"
    if not state.fitted:
        return "adopted: it was there when Fallow first saw the node, so it drains"
    if situation.settles:
        return "the policy was changed a short time ago: it drains"
    if not situation.fresh:
        return "sample or report are too old: it drains"
    if state.over_since is not None and now - state.over_since < after:
        return f"overdraft lasts for {now - state.over_since:.0f} s of {after:.0f} s"
    return ""


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
        left = budget(started[of], resource, situation, policy, now)
        before = takes.parts.get(part, PartState())
        decision = decide(entry, resource, situation, before, each.node_overdraft, left, policy, now)
        decisions[part] = decision
        takes.parts[part] = decision.state if enforce else replace(decision.state, active=None)
        if decision.start and decision.state.active is not None:
            amount = decision.state.active.amount + _overshoot(entry, situation)
            started[of] = (*started[of], Started(now, amount))
    if enforce:
        takes.started |= started
    return decisions


def _order(each: Candidate) -> tuple[bool, int, RowKey]:
    entry = each.entry
    return not each.under_pressure, max(entry.target, entry.floor) - entry.allocated, entry.key
