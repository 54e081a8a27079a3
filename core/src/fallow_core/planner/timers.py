"""When a node has to be computed again although nothing new is known of it: what its result owes to time alone."""

import math
from collections.abc import Iterable

from fallow_core.ledger.due_offers import RENEW_SHARE
from fallow_core.ledger.falls import DRAIN_AFTER_SECONDS
from fallow_core.ledger.growth_delay import SLOW
from fallow_core.ledger.node_ledger import NodeInputs, NodeLedger
from fallow_core.planner.node_state import NodeState
from fallow_core.planner.state import PlannerState
from fallow_hookspecs import RESOURCE_NAMES

JUST_AFTER = 1e-6
"""What counts up to and including a time counts no longer right after it."""
POLICY_SECONDS = 5.0
"""How often policies are looked up again where a schedule may change them."""
MOVING_SECONDS = 1.0
"""How soon a node is computed again where a take-back is under way or may start."""


def next_time(state: PlannerState, node: NodeState, inputs: NodeInputs, lasts: Iterable[int | None]) -> float:
    """When to compute a node again, in monotonic seconds."""
    now, ledger = inputs.now, node.ledger
    assert ledger is not None
    if _is_moving(node, ledger):
        return now + MOVING_SECONDS
    return min((at for at in _times(state, node, inputs, lasts) if at > now), default=math.inf)


def _is_moving(node: NodeState, ledger: NodeLedger) -> bool:
    """Whether a take-back is under way or may start: its decision depends on time."""
    if ledger.cpu.overdraft or ledger.memory.overdraft or node.budgets:
        return True
    return any(d.overdraft or d.state.active or d.state.over_since is not None for d in node.decisions.values())


def _times(state: PlannerState, node: NodeState, inputs: NodeInputs, lasts: Iterable[int | None]) -> Iterable[float]:
    limits = state.publishing
    stale = (limits.degrade_after_seconds, limits.withdraw_after_seconds)
    measured = [inputs.sample.of(name) for name in RESOURCE_NAMES]
    since = [node.observed_since if usage is None else usage.measured_at for usage in measured]
    yield from (at + seconds for at in since for seconds in (0.0, *stale))
    yield state.unknown_until
    yield from _growth(state, node)
    shortest = min((seconds for seconds in lasts if seconds is not None), default=None)
    for row in inputs.rows:
        yield row.measured_at + limits.degrade_after_seconds
        if row.refused_at is not None:
            yield row.refused_at + limits.in_flight_seconds
        if row.refreshed_at is not None and shortest is not None:
            yield row.refreshed_at + shortest * RENEW_SHARE


def _growth(state: PlannerState, node: NodeState) -> Iterable[float]:
    """When a target that has stood for long enough may be grown to, or fallen to below what is allocated."""
    limits = state.publishing
    longest = max(limits.growth_delay_seconds, limits.in_flight_seconds)
    for delay in node.growth_delays.values():
        yield delay.falls.over_since + DRAIN_AFTER_SECONDS
        if delay.targets and delay.targets[-1][1] > delay.newest:
            for at in (delay.since, *(at for at, _ in delay.targets)):
                for seconds in (limits.growth_delay_seconds, longest):
                    yield from (at + seconds, at + seconds + JUST_AFTER)
                    yield from (at + SLOW * seconds, at + SLOW * seconds + JUST_AFTER)
