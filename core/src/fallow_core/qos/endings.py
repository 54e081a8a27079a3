"""The life of each ending, from the order to the moment when the task is seen gone.

    graceful --grace has passed--> forced --margin has passed, still there--> failed
        └──────────────── no longer listed, no process left ────────────────┴──> gone

`due` says which orders are to be given now, `answered` takes the framework's answers, `observed` what was seen. Only
what is seen gone is gone. A task that ends by itself counts as well, and an order may be given twice. Tasks that the
framework ends by itself are followed too, without orders, so that one that hangs is not waited for for ever.

All of it survives Fallow (`ending_json`): the grace runs from when the order was first given, whoever lives through it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from fallow_core.ledger.node_ledger import NodeLedger
from fallow_core.model.qos_policy import EndingPolicy
from fallow_core.model.task import SeenTask, TaskKey
from fallow_core.qos import floors
from fallow_core.qos.ending import Ending, Endings, Hit, Order, Phase, Route
from fallow_core.qos.victims import Choice, Past
from fallow_hookspecs import KillOrder, KillOutcome, TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The endings after a look at the node; those of ours that are gone; any that have failed just now."""

    endings: Endings
    gone: tuple[Ending, ...]
    failed: tuple[Ending, ...]


def begun(endings: Endings, choice: Choice, policy: EndingPolicy, ledger: NodeLedger, now: float) -> Endings:
    """With the victims of a choice, if it is to be carried out. A task that is ending already keeps its grace."""
    active = {ending.key: ending for ending in endings.active}
    for victim in choice.victims if choice.need.enforce else ():
        task, before = victim.task, active.get(victim.task.key)
        if before is None or not before.is_under_way:
            active[task.key] = Ending(
                key=task.key,
                application=task.application_key,
                reason=f"{choice.need.strategy}: {choice.need.why}",
                ordered_at=now,
                grace_seconds=_grace_seconds(task, policy),
                attempts=1 if before is None else before.attempts + 1,
                floor_of=floors.floor_of(task, choice.need, ledger),
            )
    return replace(endings, active=tuple(active.values()))


def due(endings: Endings, policy: EndingPolicy, now: float) -> tuple[Endings, tuple[Order, ...]]:
    """The orders to be given now, one for all tasks that can go into it.

    The endings have to be where they survive before the orders are given.
    """
    active = [ending.grown_older(now) for ending in endings.active]
    groups: defaultdict[tuple[str, Route, bool, str], list[str]] = defaultdict(list)
    for at, ending in enumerate(active):
        if ending.is_due(policy, now):
            active[at] = replace(ending, asked_at=now)
            group = (ending.key.cluster, ending.route, ending.phase is Phase.FORCED, ending.reason)
            groups[group].append(ending.key.task_id)
    orders = (
        Order(cluster=cluster, route=route, order=KillOrder(task_ids=tuple(sorted(ids)), reason=reason, force=force))
        for (cluster, route, force, reason), ids in sorted(groups.items())
    )
    return replace(endings, active=tuple(active)), tuple(orders)


def answered(endings: Endings, order: Order, outcome: KillOutcome, now: float) -> Endings:
    """With the answers to an order. A task without one is asked for again."""
    phase = Phase.FORCED if order.order.force else Phase.GRACEFUL

    def after(ending: Ending) -> Ending:
        answer = outcome.answers.get(ending.key.task_id)
        is_meant = ending.key.cluster == order.cluster and ending.key.task_id in order.order.task_ids
        is_newest = ending.phase is phase and ending.route is order.route
        return ending.answered_with(answer, now) if answer is not None and is_meant and is_newest else ending

    return replace(endings, active=tuple(after(ending) for ending in endings.active))


def observed(
    endings: Endings,
    tasks: Iterable[SeenTask],
    complete: frozenset[str],
    alive: frozenset[TaskKey],
    policy: EndingPolicy,
    now: float,
) -> Observed:
    """With what was seen on the node.

    `complete`: the clusters whose newest list of tasks is complete and fresh; of others nothing is concluded from their
    lists. `alive`: the tasks of which processes were seen.
    """
    listed = {task.key: task for task in tasks if task.cluster in complete}
    active, gone, failed = list[Ending](), list[Ending](), list[Ending]()
    for ending in (*endings.active, *_by_the_framework(endings, listed.values(), policy, now)):
        if ending.key in listed or ending.key in alive:
            if ending.is_overdue(policy, now):
                ending = ending.failed("it is still there", now)
                failed.append(ending)
            active.append(ending)
        elif ending.key.cluster in complete:
            gone.append(ending)
        else:
            active.append(ending)
    hits = [hit for hit in endings.hits if now - hit.at < policy.budget_seconds]
    hits += [Hit(ending.application, now) for ending in gone if ending.was_hit]
    lost = floors.remembered((*endings.floor_losses, *floors.losses(gone)), now)
    return Observed(
        endings=Endings(active=tuple(active), hits=tuple(hits), floor_losses=lost),
        gone=tuple(ending for ending in gone if ending.ours),
        failed=tuple(failed),
    )


def being_freed(endings: Endings) -> frozenset[TaskKey]:
    """The tasks that count as being freed."""
    return frozenset(ending.key for ending in endings.active if ending.is_under_way)


def past(endings: Endings, policy: EndingPolicy, now: float) -> Past:
    """What the next choice has to know: how many endings each application had lately, and who could not be ended."""
    under_way = [ending.application for ending in endings.active if ending.ours and ending.is_under_way]
    over = [hit.application for hit in endings.hits if now - hit.at < policy.budget_seconds]
    failed = frozenset(ending.key for ending in endings.active if ending.is_left_alone(policy, now))
    return Past(endings_lately=Counter(under_way + over), failed=failed)


def _grace_seconds(task: SeenTask, policy: EndingPolicy) -> float:
    return policy.grace_seconds if task.task.grace_seconds is None else task.task.grace_seconds


def _by_the_framework(
    endings: Endings, tasks: Iterable[SeenTask], policy: EndingPolicy, now: float
) -> Iterator[Ending]:
    """Endings that nobody here ordered, from when they are first seen, or earlier where the framework says when."""
    known = {ending.key for ending in endings.active}
    for task in tasks:
        if task.task.state is TaskState.ENDING and task.key not in known:
            yield Ending(
                key=task.key,
                application=task.application_key,
                reason="its framework ends it",
                ordered_at=now - (task.task.ending_age_seconds or 0.0),
                grace_seconds=_grace_seconds(task, policy),
                ours=False,
            )
