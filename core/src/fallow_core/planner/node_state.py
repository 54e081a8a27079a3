"""One node as the planner knows it: its newest good readings, its policy now, and what its ledger is computed from.

A controller and an agent use it alike, so it needs neither offers nor take-backs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fallow_core.ledger.effective_policy import PolicyNow, lends_less, policy_now
from fallow_core.ledger.implausible import accepted
from fallow_core.ledger.node_ledger import NodeInputs, NodeLedger
from fallow_core.model.sample import NodeSample
from fallow_hookspecs import RESOURCE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fallow_core.ledger.blast_radius import Part
    from fallow_core.ledger.growth_delay import GrowthDelays
    from fallow_core.ledger.rows import Row, RowKey
    from fallow_core.ledger.take_back import Decision
    from fallow_core.ledger.task_shapes import TaskShape
    from fallow_core.model.event import Event
    from fallow_core.model.node_policies import NodePolicies
    from fallow_core.model.policy import AccountPolicy, PublishingPolicy
    from fallow_core.model.refused_inputs import RefusedInputs
    from fallow_core.planner.observations import NodeObservation
    from fallow_hookspecs import Pending

NOTHING: Mapping[str, Any] = {}


@dataclass(slots=True, kw_only=True)
class NodeState:
    """One node. `sample` has its newest good readings; `observed_since`: since when it should have been measured.

    `withheld`: why an offer is not made, by row. `decisions`: what was decided about take-backs. `budgets`: how many
    bytes of each cluster's tasks may be terminated for overdraft.
    """

    name: str
    observed_since: float
    observation: NodeObservation
    policy: PolicyNow
    sample: NodeSample = field(default_factory=NodeSample)
    ledger: NodeLedger | None = None
    growth_delays: GrowthDelays = field(default_factory=dict)
    floors_given_up: Mapping[RowKey, float] = field(default_factory=dict)
    withheld: dict[RowKey, str] = field(default_factory=dict)
    decisions: Mapping[Part, Decision] = field(default_factory=dict)
    budgets: Mapping[str, int] = field(default_factory=dict)
    look_again_at: float = -math.inf


def new_node(policies: NodePolicies, name: str, observation: NodeObservation, now: float, wall_now: float) -> NodeState:
    """A node that is observed for the first time."""
    policy = policy_now(policies, name, observation.labels, wall_now)
    return NodeState(name=name, observed_since=now, observation=observation, policy=policy)


def take_in(node: NodeState, observation: NodeObservation, refused: RefusedInputs, now: float) -> list[Event]:
    """Take over what is observed. A reading that cannot be true is refused, and the last good one counts."""
    node.observation = observation
    node.sample, wrong = accepted(node.sample, observation.sample, now)
    among = [f"{resource} of {node.name}" for resource in RESOURCE_NAMES]
    return refused.note("sample", {f"{resource} of {node.name}": why for resource, why in wrong.items()}, among)


def take_policy(node: NodeState, policies: NodePolicies, wall_now: float) -> tuple[bool, bool]:
    """Bring the policy of a node up to date; whether it changed, and whether it lends less than before."""
    before, node.policy = node.policy, policy_now(policies, node.name, node.observation.labels, wall_now)
    return node.policy != before, lends_less(before.policy, node.policy.policy)


def note_labels(node: NodeState, refused: RefusedInputs) -> list[Event]:
    """Labels that say nothing sensible are refused, and count as if they were not there."""
    problems = {node.name: "; ".join(node.policy.problems)} if node.policy.problems else {}
    return refused.note("labels", problems, [node.name])


def ledger_inputs(
    node: NodeState,
    publishing: PublishingPolicy,
    now: float,
    rows: tuple[Row, ...] = (),
    awaited: Iterable[RowKey] = (),
    *,
    accounts: Mapping[str, AccountPolicy] = NOTHING,
    pending: Mapping[str, Pending | None] = NOTHING,
    shapes: Mapping[str, TaskShape] = NOTHING,
    no_growth: str = "",
) -> NodeInputs:
    """What the ledger of a node is computed from; `accounts`, `pending` and `shapes` go by cluster.

    :param no_growth: why nothing may grow, whatever is measured.
    """
    return NodeInputs(
        node=node.name,
        now=now,
        sample=node.sample,
        watched_since=node.observed_since,
        rows=rows,
        awaited=tuple(sorted(awaited)),
        unsure=node.observation.unsure,
        daemons=node.observation.daemons,
        policy=node.policy.policy,
        publishing=publishing,
        accounts=accounts,
        pending=pending,
        shapes=shapes,
        no_growth=no_growth,
    )
