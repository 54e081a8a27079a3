"""Decisions to terminate tasks in the answer to `explain`, with their arithmetic and outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from fallow_core.model.task import TaskKey
from fallow_hookspecs import ResourceName

if TYPE_CHECKING:
    from fallow_core.agent.eviction import evictor
    from fallow_core.qos.termination import Termination


class Decision(Struct, frozen=True, kw_only=True):
    """One choice of victims. `victims`: cluster and task. `enforced`: they are terminated; else they would be.

    `barred`: tasks that may not be terminated, and why. `outcomes`: what became of each victim.
    """

    ago_seconds: float
    strategy: str
    enforced: bool
    why: str
    victims: tuple[TaskKey, ...]
    arithmetic: tuple[str, ...]
    barred: Mapping[str, str]
    outcomes: tuple[str, ...]


class Shortfall(Struct, frozen=True, kw_only=True):
    """Pressure that terminations do not relieve. `short_of`: bytes or milli-cores that no task may free.

    `spared`: why tasks may not be terminated, and how many tasks that concerns.
    """

    strategy: str
    resource: ResourceName
    enforced: bool
    why: str
    short_of: int
    spared: Mapping[str, int]


def shortfalls(agent: evictor.Evictor) -> tuple[Shortfall, ...]:
    """What is lacking at this moment."""
    return tuple(
        Shortfall(
            strategy=name,
            resource=choice.need.resource,
            enforced=choice.need.enforce,
            why=choice.need.why,
            short_of=choice.shortfall,
            spared=choice.spared(),
        )
        for name, choice in sorted(agent.shortfalls.items())
    )


def decisions(agent: evictor.Evictor, now: float) -> tuple[Decision, ...]:
    """The last choices, the newest first."""
    active = {termination.key: termination for termination in agent.terminations.active}
    over = {termination.key: (at, termination) for at, termination in agent.finished}
    return tuple(_decision(decided, active, over, now) for decided in reversed(agent.decisions))


def _decision(
    decided: evictor.Decision,
    active: dict[TaskKey, Termination],
    over: dict[TaskKey, tuple[float, Termination]],
    now: float,
) -> Decision:
    need, victims = decided.choice.need, tuple(victim.task.key for victim in decided.choice.victims)
    return Decision(
        ago_seconds=now - decided.at,
        strategy=need.strategy,
        enforced=need.enforce,
        why=need.why,
        victims=victims,
        arithmetic=tuple(decided.choice.arithmetic),
        barred={key.task_id: why for key, why in decided.choice.ineligible.items()},
        outcomes=tuple(_outcome(key, active, over, now) for key in victims if need.enforce),
    )


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
