"""The tasks of a node and what became of those that were terminated, as plain values for JSON."""

from typing import Any

from fallow_core.agent.eviction.evictor import Decision, Evictor
from fallow_core.model.task import ObservedTask, TaskKey
from fallow_core.qos.harm import Harm
from fallow_core.qos.termination import Termination

View = dict[str, Any]


def tasks(agent: Evictor, now: float) -> View:
    """Every task with its use and what it would cost to end it: masters last, as they would end, the cheapest first."""
    harms = agent.harms(now)
    terminations = {termination.key: termination for termination in agent.terminations.active}
    ordered = sorted(agent.tasks, key=lambda task: (task.is_master, harms[task.key].total, task.key))
    return {
        "node": agent.node.name,
        "tasks": [_task(task, harms[task.key], terminations.get(task.key), now) for task in ordered],
        "incomplete": agent.incomplete,
        "terminations_error": agent.save_error,
        "terminations_lost": agent.load_error,
    }


def decisions(agent: Evictor, now: float) -> list[View]:
    """The newest choices, the newest first, each with its arithmetic and with what became of its victims."""
    over = {termination.key: (at, termination) for at, termination in agent.finished}
    active = {termination.key: termination for termination in agent.terminations.active}
    return [_decision(decided, active, over, now) for decided in reversed(agent.decisions)]


def _task(task: ObservedTask, harm: Harm, termination: Termination | None, now: float) -> View:
    application, usage = task.application, task.usage
    return {
        "cluster": task.cluster,
        "task": task.task.id,
        "framework_node": task.task.framework_node,
        "application": task.task.application_id,
        "name": application.name if application else "",
        "user": application.user if application else "",
        "queue": application.queue if application else "",
        "role": "master" if task.is_master else "worker",
        "state": task.task.state,
        "termination": None
        if termination is None
        else {"phase": termination.phase, "why": termination.reason, "note": termination.note},
        "requested": {"cpu_milli": task.requested.cpu_milli, "memory_bytes": task.requested.memory_bytes},
        "used": None if usage is None else {"cpu_milli": usage.cpu_milli, "memory_bytes": usage.memory_bytes},
        "age_seconds": task.task.age_seconds,
        "listed_ago_seconds": now - task.measured_at,
        "harm_core_seconds": harm.total / 1000,
        "harm": harm.arithmetic,
    }


def _decision(
    decided: Decision, active: dict[TaskKey, Termination], over: dict[TaskKey, tuple[float, Termination]], now: float
) -> View:
    need = decided.choice.need
    return {
        "ago_seconds": now - decided.at,
        "strategy": need.strategy,
        "enforced": need.enforce,
        "why": need.why,
        "victims": [list(victim.task.key) for victim in decided.choice.victims],
        "arithmetic": list(decided.choice.arithmetic),
        "barred": {key.task_id: why for key, why in decided.choice.ineligible.items()},
        "outcomes": [_outcome(victim.task.key, active, over, now) for victim in decided.choice.victims if need.enforce],
    }


def _outcome(
    key: TaskKey, active: dict[TaskKey, Termination], over: dict[TaskKey, tuple[float, Termination]], now: float
) -> str:
    if key in active:
        termination = active[key]
        note = f": {termination.note}" if termination.note else ""
        return f"{key.task_id}: {termination.phase}, ordered {now - termination.ordered_at:.0f} s ago{note}"
    if key in over:
        at, termination = over[key]
        how = "after force" if termination.forced_at is not None else "within its grace"
        return f"{key.task_id}: gone {how}, {at - termination.ordered_at:.1f} s after the order"
    return f"{key.task_id}: no longer followed"
