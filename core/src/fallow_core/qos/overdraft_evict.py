"""More memory is allocated than batch capacity, and the framework did not take it back: terminate tasks until it fits.

For each account, all in requested memory:

    over = allocated − max(target, floor, requests of its masters)       no more than the node's overdraft;
                                                                         without target and overdraft where stopped;
                                                                         no overdraft where capacity is shared
    need = over − requests of what is terminating or has just ended           no more than it may still lose

The account that is the furthest over pays first, one at a time. CPU in overdraft is throttled and ends nothing, and
application masters are never terminated for it. A ledger that is not known is not a ledger of zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fallow_core.ledger.node_ledger import AccountEntry
from fallow_core.model.qos_policy import OverdraftEvictPolicy, StrategyMode
from fallow_core.model.task import TaskKey
from fallow_core.qos.duration import Held
from fallow_core.qos.need import Need, NodeView


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """`over`: for how long the account has been over. `asked_at`: when it last had to pay."""

    over: Held = field(default_factory=Held)
    asked_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """What a task requested that was last seen termination at `seen_at`."""

    requested: int
    seen_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OverdraftEvictState:
    """What is remembered of each account, and what is leaving."""

    accounts: Mapping[str, AccountState] = field(default_factory=dict)
    leaving: Mapping[TaskKey, Leaving] = field(default_factory=dict)


def decide(
    view: NodeView, policy: OverdraftEvictPolicy, state: OverdraftEvictState
) -> tuple[OverdraftEvictState, Need | None]:
    """What has to be freed now, if anything."""
    usage, ledger = view.measured("memory"), view.ledger.memory
    if usage is None or ledger.capacity is None or not view.tasks_complete:
        return state, None
    leaving = _leaving(view, policy, state.leaving)
    accounts: dict[str, AccountState] = {}
    due: list[Need] = []
    for account in ledger.accounts:
        is_stopped = account.cluster in view.stopped
        kept = max(0 if is_stopped else account.target, account.floor, _masters(view, account.cluster))
        is_over = account.allocated > kept and (is_stopped or ledger.to_take_back > 0)
        old = state.accounts.get(account.cluster, AccountState())
        over = old.over.after(usage.measured_at, is_over, view.stale_seconds, policy.after_seconds)
        accounts[account.cluster] = replace(old, over=over)
        lasted = is_over and over.seconds >= policy.after_seconds
        if lasted and view.cooled_down(old.asked_at, policy.cool_down_seconds):
            due.append(_need(view, policy, account, kept, leaving, over.seconds))
    need = max(due, key=lambda need: (need.amount, need.why), default=None)
    if need is None or need.amount <= 0:
        return OverdraftEvictState(accounts=accounts, leaving=leaving), None
    for cluster in need.clusters or ():
        accounts[cluster] = replace(accounts[cluster], asked_at=view.now)
    return OverdraftEvictState(accounts=accounts, leaving=leaving), need


def _leaving(view: NodeView, policy: OverdraftEvictPolicy, before: Mapping[TaskKey, Leaving]) -> dict[TaskKey, Leaving]:
    """What is terminating, and what was a short time ago: the framework's report may be older than its end."""
    living = {task.key for task in view.living()}
    lately = {
        key: part
        for key, part in before.items()
        if key not in living and view.now - part.seen_at < policy.cool_down_seconds
    }
    termination = (task for task in view.tasks if task.key in view.terminating)
    return lately | {t.key: Leaving(requested=t.requested.memory_bytes, seen_at=view.now) for t in termination}


def _masters(view: NodeView, cluster: str) -> int:
    return sum(t.requested.memory_bytes for t in view.living() if t.cluster == cluster and t.is_master)


def _need(
    view: NodeView,
    policy: OverdraftEvictPolicy,
    account: AccountEntry,
    kept: int,
    leaving: Mapping[TaskKey, Leaving],
    seconds: float,
) -> Need:
    """What the account has to free; nothing, or less, where enough is leaving or it may lose nothing."""
    own = sum(part.requested for key, part in leaving.items() if key.cluster == account.cluster)
    node_over = view.ledger.memory.to_take_back - sum(part.requested for part in leaving.values())
    is_stopped = account.cluster in view.stopped
    over = account.allocated - kept - own
    may_pay = view.may_pay.get(account.cluster, 0)
    return Need(
        strategy="overdraft_evict",
        resource="memory",
        amount=min(over if is_stopped else min(over, node_over), may_pay),
        counted_by="request",
        enforce=policy.mode is StrategyMode.ENFORCE,
        why=f"for {seconds:.0f} s {account.cluster} has "
        + ("run although it was stopped" if is_stopped else "had more memory allocated than the node can lend"),
        clusters=frozenset({account.cluster}),
        at_most=may_pay,
        terms={
            "allocated": account.allocated,
            "kept": kept,
            "being_freed": own,
            "node_over": node_over,
            "may_pay": may_pay,
        },
    )
