"""Terminates tasks when more memory is allocated than batch capacity and the framework did not take it back.

For each account, all in requested memory:

    over = allocated − max(target, floor, requests of its masters)       at most the node's overdraft;
                                                                         stopped: without target and overdraft;
                                                                         capacity is shared: no overdraft
    need = over − requests of tasks that are terminating       at most its termination budget
                − requests of tasks that have ended, as far as `allocated` has not fallen since

Tasks of one account at a time are terminated, first of the account with the largest need. CPU overdraft is throttled
and terminates no task. Application masters are never terminated for overdraft. A restored
account has no need. Without a ledger nothing is decided.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from fallow_core.ledger.node_ledger import AccountEntry
from fallow_core.model.qos_policy import OverdraftEvictPolicy, StrategyMode
from fallow_core.model.task import TaskKey
from fallow_core.qos.duration import ConditionDuration
from fallow_core.qos.need import Need, NodeView

LATEST_REPORT_SECONDS: Final = 60.0
"""After this time a report of the framework that still has an ended task's request is believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """`over`: for how long the account has been over. `asked_at`: the time of its newest need."""

    over: ConditionDuration = field(default_factory=ConditionDuration)
    asked_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminatingTask:
    """The request of a task that was terminating when it was last observed, and what its account had allocated then."""

    requested: int
    observed_at: float
    allocated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OverdraftEvictState:
    """The state of each account, and the tasks that are terminating or have ended a short time ago."""

    accounts: Mapping[str, AccountState] = field(default_factory=dict)
    terminating: Mapping[TaskKey, TerminatingTask] = field(default_factory=dict)


def decide(
    view: NodeView, policy: OverdraftEvictPolicy, state: OverdraftEvictState
) -> tuple[OverdraftEvictState, Need | None]:
    """The need that is due now, if any."""
    usage, ledger = view.measured("memory"), view.ledger.memory
    if usage is None or ledger.capacity is None or not view.tasks_complete:
        return state, None
    terminating = _terminating(view, policy, state.terminating)
    freed = {account.cluster: _being_freed(view, account, terminating) for account in ledger.accounts}
    accounts: dict[str, AccountState] = {}
    due: list[Need] = []
    for account in ledger.accounts:
        if account.cluster in view.restored:
            continue
        is_stopped = account.cluster in view.stopped
        entitled = max(0 if is_stopped else account.target, account.floor, _masters(view, account.cluster))
        is_over = account.allocated > entitled and (is_stopped or ledger.to_take_back > 0)
        old = state.accounts.get(account.cluster, AccountState())
        over = old.over.after(usage.measured_at, is_over, view.stale_seconds, policy.after_seconds)
        accounts[account.cluster] = replace(old, over=over)
        lasted = is_over and over.seconds >= policy.after_seconds
        if lasted and view.cooled_down(old.asked_at, policy.cool_down_seconds):
            due.append(_need(view, policy, account, entitled, freed, over.seconds))
    need = max(due, key=lambda need: (need.amount, need.why), default=None)
    if need is None or need.amount <= 0:
        return OverdraftEvictState(accounts=accounts, terminating=terminating), None
    for cluster in need.clusters or ():
        accounts[cluster] = replace(accounts[cluster], asked_at=view.now)
    return OverdraftEvictState(accounts=accounts, terminating=terminating), need


def _terminating(
    view: NodeView, policy: OverdraftEvictPolicy, before: Mapping[TaskKey, TerminatingTask]
) -> dict[TaskKey, TerminatingTask]:
    """The tasks that are terminating, and those that were a short time ago: the framework's report may be older."""
    living = {task.key for task in view.living()}
    remembered_seconds = max(policy.cool_down_seconds, LATEST_REPORT_SECONDS)
    recent = {
        key: task
        for key, task in before.items()
        if key not in living and view.now - task.observed_at < remembered_seconds
    }
    allocated = {account.cluster: account.allocated for account in view.ledger.memory.accounts}
    now = {
        task.key: TerminatingTask(
            requested=task.requested.memory_bytes, observed_at=view.now, allocated=allocated.get(task.cluster, 0)
        )
        for task in view.tasks
        if task.key in view.terminating
    }
    return recent | now


def _being_freed(view: NodeView, account: AccountEntry, terminating: Mapping[TaskKey, TerminatingTask]) -> int:
    """The requests of an account that are on their way: of terminating tasks, and of ended ones as far as the
    framework's allocation has not fallen since.
    """
    own = [task for key, task in terminating.items() if key.cluster == account.cluster]
    ended = [task for task in own if task.observed_at < view.now]
    fallen = max(max((task.allocated for task in ended), default=0) - account.allocated, 0)
    still = max(sum(task.requested for task in ended) - fallen, 0)
    return still + sum(task.requested for task in own if task.observed_at >= view.now)


def _masters(view: NodeView, cluster: str) -> int:
    return sum(t.requested.memory_bytes for t in view.living() if t.cluster == cluster and t.is_master)


def _need(
    view: NodeView,
    policy: OverdraftEvictPolicy,
    account: AccountEntry,
    entitled: int,
    freed: Mapping[str, int],
    seconds: float,
) -> Need:
    """The need of the account; not positive if enough is being freed or it has no budget."""
    own = freed[account.cluster]
    node_over = view.ledger.memory.to_take_back - sum(freed.values())
    is_stopped = account.cluster in view.stopped
    over = account.allocated - entitled - own
    budget = view.termination_budget_bytes.get(account.cluster, 0)
    return Need(
        strategy="overdraft_evict",
        resource="memory",
        amount=min(over if is_stopped else min(over, node_over), budget),
        counted_by="request",
        enforce=policy.mode is StrategyMode.ENFORCE,
        why=f"for {seconds:.0f} s {account.cluster} has "
        + ("run although it was stopped" if is_stopped else "had more memory allocated than the node can lend"),
        clusters=frozenset({account.cluster}),
        at_most=budget,
        terms={
            "allocated": account.allocated,
            "entitled": entitled,
            "being_freed": own,
            "node_over": node_over,
            "termination_budget": budget,
        },
    )
