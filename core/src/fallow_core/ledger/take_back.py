"""Taking back: when draining is too slow, the framework's own scheduler is told to terminate what is above a size.

A take-back of one row and one resource is a notice, and at its end one offer that says down to which size tasks are
terminated. Until then, and afterwards, the row drains with ordinary sizes that follow the target: so nothing new
starts, and no scheduler keeps a deadline that a restart could lose or that would have to be cancelled.

A notice starts when the overdraft (what is allocated above max(target, floor), and no more than the node's allocations
above batch; above the floor where the operator stopped it) has lasted, the inputs are fresh, and nothing forbids it:
what was allocated when Fallow first saw the row is adopted: drained, never taken back, until it has once fitted or the
operator says so. It counts from when a size below what is allocated is in force: then tasks are warned. It is cancelled
when its reason has gone, or when it is no longer allowed. At its end tasks are terminated down to the largest of

- what is allocated less the overdraft;
- the application masters on the row, which the framework would terminate last, but would terminate;
- what the blast radius of its cluster leaves. The framework terminates whole tasks until the rest fits, so the last one
  counts in full;
- the smallest size that has been in force for `WARNING_SECONDS`: what became too much since waits for the next notice.

The framework is told again while it did not do it. All functions are pure; times are monotonic seconds.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from fallow_core.ledger.node_ledger import RowEntry
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_hookspecs import ResourceName

WARNING_SECONDS = 15.0
"""For at least so long a size is in force before tasks above it are terminated."""
USED_UP = "the blast radius is used up, or only application masters are left: it drains"


@dataclass(frozen=True, slots=True, kw_only=True)
class Active:
    """A take-back under way. `size`: down to what tasks are terminated at the end of the notice, by the newest numbers,
    or down to what the framework was told to terminate them, at `ordered_at`.

    `warned_at`: since when a size below what is allocated is in force, `None` before; the notice counts from then.
    `started`: what the blast radius counts for it.
    """

    size: int
    notice_seconds: int
    started: "Started"
    warned_at: float | None = None
    ordered_at: float | None = None

    def left_seconds(self, now: float) -> float:
        """The notice that is left: all of it until it counts."""
        return self.notice_seconds if self.warned_at is None else self.warned_at + self.notice_seconds - now

    def overdue(self, now: float, policy: TakeBackPolicy) -> bool:
        """Whether the framework should long have terminated what is above the size."""
        return self.ordered_at is not None and -self.left_seconds(now) >= policy.late_seconds


class Warned(NamedTuple):
    """Since when a size below what is allocated is in force."""

    at: float
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """What is remembered of one row and one resource. `fitted`: it was once within its offer, so it is not adopted.

    `warned`: the sizes that have been in force during the present overdraft, each smaller than the one before; of those
    older than `WARNING_SECONDS` only the newest.
    """

    fitted: bool = False
    over_since: float | None = None
    warned: tuple[Warned, ...] = ()
    active: Active | None = None

    def warned_size(self, now: float) -> int | None:
        """The smallest size that has been in force for `WARNING_SECONDS`; `None` if there is none."""
        return next((size for at, size in reversed(self.warned) if now - at >= WARNING_SECONDS), None)


class Started(NamedTuple):
    """One take-back that began, for the blast radius of its cluster: when, and what it may terminate at most."""

    at: float
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What one row's take-back depends on besides the ledger.

    `allowed`: the framework takes this resource back uncharged, and the operator has not forbidden it. `fresh`: sample
    and report are. `masters`: what application masters on the row have requested; `largest`: the largest task there.
    `cluster_allocated`: what the cluster has allocated in all. `settles`: the policy was changed a short time ago, and
    what is over may be over because of that alone. `stopped`: the operator wants nothing to run there, so all that is
    allocated is in overdraft.
    """

    allowed: bool
    fresh: bool
    masters: int
    largest: int
    cluster_allocated: int
    settles: bool = False
    stopped: bool = False

    def overshoot(self, unit: int) -> int:
        """By how much more than what is asked for may be terminated, as the last task is a whole one."""
        return max(self.largest - unit, 0)


class Change(StrEnum):
    """What becomes of a take-back in a round."""

    STARTS = "starts"
    TERMINATES = "terminates"
    ENDS = "ends"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided about one row and one resource, and why; `state` is how it is remembered.

    `overdraft` is what is allocated above max(target, floor), as far as the node is in overdraft. After
    `Change.TERMINATES` the framework is to be told to terminate tasks down to the size of `state.active`.
    """

    state: PartState
    overdraft: int
    change: Change | None = None
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
    """Decide about one row and one resource.

    :param budget: what the blast radius leaves, what it counts for this take-back included.
    """
    bound = entry.floor if situation.stopped else max(entry.target, entry.floor)
    above = max(entry.allocated - bound, 0)
    # A row that drains for another account's sake is above, and not in overdraft.
    over = above if situation.stopped else min(above, node_overdraft)
    since = (now if state.over_since is None else state.over_since) if over else None
    fits = not above and situation.fresh  # before the first sample everything seems to fit
    warned = _warned(state.warned, entry, now) if over else ()
    if (since, warned) != (state.over_since, state.warned) or (fits and not state.fitted):
        state = replace(state, over_since=since, warned=warned, fitted=state.fitted or fits)
    if state.active is not None:
        return _follow(entry, situation, state, state.active, over, budget, policy, now)
    why = _forbidden(resource, situation, state, policy, now)
    if not over or why:
        return Decision(state=state, overdraft=over, why=why)
    size = _size(entry, situation, over, budget)
    if size >= entry.allocated:
        return Decision(state=state, overdraft=over, why=USED_UP)
    started = Started(now, entry.allocated - size + situation.overshoot(entry.unit))
    active = Active(size=size, notice_seconds=policy.notice_seconds, started=started)
    why = f"overdraft for {now - (now if since is None else since):.0f} s"
    return Decision(state=replace(state, active=active), overdraft=over, change=Change.STARTS, why=why)


def _warned(before: tuple[Warned, ...], entry: RowEntry, now: float) -> tuple[Warned, ...]:
    size = entry.in_force
    if size is not None and size < entry.allocated and (not before or size < before[-1].size):
        before = (*before, Warned(now, size))
    old = sum(now - at >= WARNING_SECONDS for at, _ in before)
    return before[max(old - 1, 0) :]


def _size(entry: RowEntry, situation: Situation, over: int, budget: int) -> int:
    """Down to what tasks may be terminated, in whole units; warnings apart."""
    allowed = max(budget - situation.overshoot(entry.unit), 0)
    size = max(entry.allocated - over, situation.masters, entry.allocated - allowed)
    return -(-size // entry.unit) * entry.unit


def _follow(
    entry: RowEntry,
    situation: Situation,
    state: PartState,
    active: Active,
    over: int,
    budget: int,
    policy: TakeBackPolicy,
    now: float,
) -> Decision:
    """A take-back under way: what is left of it, and whether its time has come."""

    def ends(change: Change, why: str) -> Decision:
        return Decision(state=replace(state, active=None), overdraft=over, change=change, why=why)

    def goes_on(active: Active, why: str, change: Change | None = None) -> Decision:
        return Decision(state=replace(state, active=active), overdraft=over, change=change, why=why)

    if active.ordered_at is not None and entry.allocated <= active.size:
        return ends(Change.ENDS, "the framework has terminated what was above")
    if not over or not situation.allowed:
        return ends(Change.CANCELLED, "it is no longer allowed" if over else "its reason has gone")
    if active.ordered_at is not None and now - active.ordered_at < policy.late_seconds:
        return goes_on(active, "the framework was told to terminate what is above")
    if active.warned_at is None and state.warned:
        active = replace(active, warned_at=now)
    size = _size(entry, situation, over, budget)
    if active.ordered_at is None:
        active = replace(active, size=min(size, entry.allocated))
    if waits := _waits(active, state, situation, entry.allocated, now):
        return goes_on(active, waits)
    if size >= entry.allocated:
        return ends(Change.CANCELLED, USED_UP)
    active = replace(active, size=max(size, state.warned_size(now) or 0), ordered_at=now)
    return goes_on(active, "its notice is over", Change.TERMINATES)


def _waits(active: Active, state: PartState, situation: Situation, allocated: int, now: float) -> str:
    """Why nothing is terminated yet; empty if the time has come."""
    left, warned = active.left_seconds(now), state.warned_size(now)
    if active.warned_at is None:
        return f"{left:.0f} s of the notice are left, which counts from when a size below what is allocated is in force"
    if left > 0:
        return f"{left:.0f} s of the notice are left"
    if not situation.fresh:
        return "its notice is over, and sample or report are too old"
    if warned is None or warned >= allocated:
        return f"its notice is over, and what is above now was warned for less than {WARNING_SECONDS:.0f} s"
    return ""


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
