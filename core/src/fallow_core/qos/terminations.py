"""The life of each termination, from the order until the task is gone.

    graceful --grace has passed--> forced --margin has passed, still there--> failed
        └──────────────── no longer listed, no process left ────────────────┴──> gone

`due` returns the orders that are due, `answered` takes the framework's answers, `observed` takes an observation of the
node. Only an observation shows that a task is gone. A task that ends by itself counts too, and an order may be given
twice. Terminations by the framework itself are followed too, without orders, so that a hanging one is not waited for
forever.

The terminations are saved (`state.terminations_file`), so the grace continues over a restart of Fallow.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from fallow_core.ledger.node_ledger import NodeLedger
from fallow_core.model.qos_policy import TerminationPolicy
from fallow_core.model.task import ObservedTask, TaskKey
from fallow_core.qos import given_up_floors
from fallow_core.qos.termination import Hit, Order, Phase, Route, Termination, Terminations
from fallow_core.qos.victims import Choice, History
from fallow_hookspecs import KillOrder, KillOutcome, TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The terminations after an observation; those of ours that are gone; those that have just failed."""

    terminations: Terminations
    gone: tuple[Termination, ...]
    failed: tuple[Termination, ...]


def begun(
    terminations: Terminations, choice: Choice, policy: TerminationPolicy, ledger: NodeLedger, now: float
) -> Terminations:
    """Add the victims of a choice, if it is enforced. A task that is terminating already keeps its grace."""
    active = {termination.key: termination for termination in terminations.active}
    for victim in choice.victims if choice.need.enforce else ():
        task, before = victim.task, active.get(victim.task.key)
        if before is None or not before.is_under_way:
            active[task.key] = Termination(
                key=task.key,
                application=task.application_key,
                reason=f"{choice.need.strategy}: {choice.need.why}",
                ordered_at=now,
                grace_seconds=_grace_seconds(task, policy),
                attempts=1 if before is None else before.attempts + 1,
                floor_of=given_up_floors.floor_of(task, choice.need, ledger),
                memory_bytes=0 if task.usage is None else task.usage.memory_bytes,
            )
    return replace(terminations, active=tuple(active.values()))


def without_orders_to(terminations: Terminations, restored: Collection[str]) -> Terminations:
    """The terminations when these clusters are restored: none of their tasks gets another order.

    A task that got an order may still end, so it counts as being freed for its grace. After its cluster is switched to
    something else, its termination is forgotten: an old order does not end a task later.
    """
    active = []
    for termination in terminations.active:
        if termination.key.cluster not in restored:
            active += [] if termination.withdrawn else [termination]
        elif not termination.ours or not termination.is_under_way or termination.withdrawn:
            active.append(termination)
        elif termination.asked_at is not None or termination.phase is Phase.FORCED:
            active.append(replace(termination, withdrawn=True, note="its cluster is restored: no further order"))
    return replace(terminations, active=tuple(active))


def due(terminations: Terminations, policy: TerminationPolicy, now: float) -> tuple[Terminations, tuple[Order, ...]]:
    """The orders that are due, one for all tasks that it can contain.

    The terminations are saved after the orders were given: see `Evictor.save`.
    """
    active = [termination.forced_if_due(now) for termination in terminations.active]
    groups: defaultdict[tuple[str, Route, bool, str], list[str]] = defaultdict(list)
    for at, termination in enumerate(active):
        if termination.is_due(policy, now):
            active[at] = replace(termination, asked_at=now)
            group = (termination.key.cluster, termination.route, termination.phase is Phase.FORCED, termination.reason)
            groups[group].append(termination.key.task_id)
    orders = (
        Order(cluster=cluster, route=route, order=KillOrder(task_ids=tuple(sorted(ids)), reason=reason, force=force))
        for (cluster, route, force, reason), ids in sorted(groups.items())
    )
    return replace(terminations, active=tuple(active)), tuple(orders)


def answered(terminations: Terminations, order: Order, outcome: KillOutcome, now: float) -> Terminations:
    """Take the answers to an order. The order is repeated for a task without an answer."""
    phase = Phase.FORCED if order.order.force else Phase.GRACEFUL

    def after(termination: Termination) -> Termination:
        answer = outcome.answers.get(termination.key.task_id)
        is_meant = termination.key.cluster == order.cluster and termination.key.task_id in order.order.task_ids
        is_newest = termination.phase is phase and termination.route is order.route
        return termination.answered_with(answer, now) if answer is not None and is_meant and is_newest else termination

    return replace(terminations, active=tuple(after(termination) for termination in terminations.active))


def observed(
    terminations: Terminations,
    tasks: Iterable[ObservedTask],
    complete: frozenset[str],
    alive: frozenset[TaskKey],
    policy: TerminationPolicy,
    now: float,
) -> Observed:
    """Take an observation of the node.

    :param complete: the clusters whose newest task list is complete and recent; other lists prove nothing.
    :param alive: the tasks with living processes.
    """
    tasks = tuple(tasks)
    listed = {task.key: task for task in tasks if task.cluster in complete}
    uses = {task.key: task.usage.memory_bytes for task in tasks if task.usage is not None and task.usage.memory_bytes}
    active, gone, failed = list[Termination](), list[Termination](), list[Termination]()
    for termination in (*terminations.active, *_by_the_framework(terminations, listed.values(), policy, now)):
        used = uses.get(termination.key)
        # Each change is saved on the disk, so small ones are left out.
        if used is not None and abs(used - termination.memory_bytes) * 8 > termination.memory_bytes:
            termination = replace(termination, memory_bytes=used)
        if termination.key in listed or termination.key in alive:
            if termination.is_overdue(policy, now):
                termination = termination.failed("it is still there", now)
                failed.append(termination)
            active.append(termination)
        elif termination.key.cluster in complete:
            gone.append(termination)
        else:
            active.append(termination)
    hits = [hit for hit in terminations.hits if now - hit.at < policy.budget_seconds]
    hits += [Hit(termination.application, now) for termination in gone if termination.was_accepted]
    lost = given_up_floors.recent((*terminations.floor_losses, *given_up_floors.losses(gone)), now)
    return Observed(
        terminations=Terminations(active=tuple(active), hits=tuple(hits), floor_losses=lost),
        gone=tuple(termination for termination in gone if termination.ours),
        failed=tuple(failed),
    )


def being_freed(terminations: Terminations) -> frozenset[TaskKey]:
    """The tasks that count as being freed."""
    return frozenset(termination.key for termination in terminations.active if termination.is_under_way)


def freeing_bytes(terminations: Terminations) -> dict[TaskKey, int]:
    """The memory that each of the tasks that count as being freed was last seen to use."""
    return {
        termination.key: termination.memory_bytes for termination in terminations.active if termination.is_under_way
    }


def history(terminations: Terminations, policy: TerminationPolicy, now: float) -> History:
    """The earlier terminations that the next choice considers."""
    under_way = [
        termination.application for termination in terminations.active if termination.ours and termination.is_under_way
    ]
    over = [hit.application for hit in terminations.hits if now - hit.at < policy.budget_seconds]
    failed = frozenset(termination.key for termination in terminations.active if termination.is_left_alone(policy, now))
    return History(recent_terminations=Counter(under_way + over), failed=failed)


def _grace_seconds(task: ObservedTask, policy: TerminationPolicy) -> float:
    return policy.grace_seconds if task.task.grace_seconds is None else task.task.grace_seconds


def _by_the_framework(
    terminations: Terminations, tasks: Iterable[ObservedTask], policy: TerminationPolicy, now: float
) -> Iterator[Termination]:
    """Terminations by the framework, since the time that it reports, or since now."""
    known = {termination.key for termination in terminations.active}
    for task in tasks:
        if task.task.state is TaskState.TERMINATING and task.key not in known:
            yield Termination(
                key=task.key,
                application=task.application_key,
                reason="its framework terminates it",
                ordered_at=now - (task.task.terminating_age_seconds or 0.0),
                grace_seconds=_grace_seconds(task, policy),
                ours=False,
            )
