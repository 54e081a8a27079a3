"""One node in a round: what is taken in of it, its ledger, and the offers that are due by it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fallow_core.ledger.due_offers import DueOffer, due_rows
from fallow_core.ledger.node_ledger import NodeInputs, node_ledger
from fallow_core.ledger.offer_filter import too_small
from fallow_core.ledger.partitions import servable
from fallow_core.ledger.rows import ZERO, Row, RowKey
from fallow_core.ledger.task_shapes import TaskShape
from fallow_core.model.event import Event
from fallow_core.model.policy import AccountPolicy, PublishingPolicy
from fallow_core.planner import node_state
from fallow_core.planner.node_state import NodeState
from fallow_core.planner.observations import ClusterObservation, NodeObservation
from fallow_core.planner.state import PlannerState
from fallow_hookspecs import RESOURCE_NAMES, Capabilities, Pending, Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInputs:
    """What one cluster brings to the ledgers of all its nodes."""

    policy: AccountPolicy
    pending: Pending | None
    pending_by_partition: Mapping[str, Pending]
    shape: TaskShape
    capabilities: Capabilities | None

    @property
    def offer_lasts_seconds(self) -> int | None:
        """After how long an offer runs out; `None` if it does not."""
        return None if self.capabilities is None else self.capabilities.offer_lasts_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """One node after its ledger was computed. `due`: the offers that are due by it, before take-backs."""

    node: NodeState
    inputs: NodeInputs
    due: list[DueOffer]


def take_in(state: PlannerState, name: str, observation: NodeObservation, now: float, wall_now: float) -> list[Event]:
    """Take over what is observed of a node."""
    node = state.nodes.get(name)
    events: list[Event] = []
    if node is None:
        node = state.nodes[name] = node_state.new_node(state.policies, name, observation, now, wall_now)
        events = node_state.note_labels(node, state.refused)
    relabelled = node.observation.labels != observation.labels
    events += node_state.take_in(node, observation, state.refused, now)
    return events + (take_policy(state, node, now, wall_now) if relabelled else [])


def take_policy(state: PlannerState, node: NodeState, now: float, wall_now: float) -> list[Event]:
    """Bring the policy of a node up to date. One that lends less than before starts no take-back for a while."""
    changed, less = node_state.take_policy(node, state.policies, wall_now)
    if less:
        state.settle(now)
    if changed:
        node.look_again_at = now
    return node_state.note_labels(node, state.refused) if changed else []


def compute(
    state: PlannerState,
    node: NodeState,
    rows: Sequence[Row],
    clusters: Mapping[str, ClusterObservation],
    inputs_of: Mapping[str, ClusterInputs],
    awaited: Iterable[RowKey],
    now: float,
) -> tuple[Computed, list[Event]]:
    """The ledger of a node and the offers that are due by it.

    :param rows: its rows, with no less allocated than its tasks were promised.
    :param awaited: its rows that nobody has reported yet.
    """
    counted, events = _without_given_up_floors(node, rows)
    names = {row.key.cluster for row in counted}
    inputs = node_state.ledger_inputs(
        node,
        state.publishing,
        now,
        counted,
        awaited,
        accounts={name: _account(state, inputs_of[name].policy, name, node.name) for name in names},
        pending={name: _servable(inputs_of[name], name, counted) for name in names},
        shapes={name: inputs_of[name].shape for name in names},
        no_growth=state.memory_unknown,
    )
    node.ledger = node_ledger(inputs)
    lasts = {name: inputs_of[name].offer_lasts_seconds for name in names}
    limits = _limits(state, now)
    due = due_rows(node.ledger, counted, node.growth_delays, limits, now, lasts, state.last_round_at)
    due = _without_growth(due, counted) if state.memory_unknown else due
    for key in node.growth_delays.keys() - {(row.key, name) for row in counted for name in RESOURCE_NAMES}:
        del node.growth_delays[key]
    return Computed(node=node, inputs=inputs, due=_without_too_small(node, due, clusters)), events


def _servable(inputs: ClusterInputs, cluster: str, rows: Iterable[Row]) -> Pending | None:
    return servable(inputs.pending, inputs.pending_by_partition, [row for row in rows if row.key.cluster == cluster])


def _limits(state: PlannerState, now: float) -> PublishingPolicy:
    """After the memory was lost nothing grows before whatever was in flight has arrived."""
    if now >= state.unknown_until:
        return state.publishing
    delay = max(state.publishing.growth_delay_seconds, state.publishing.in_flight_seconds)
    return replace(state.publishing, growth_delay_seconds=delay)


def _without_growth(due: Iterable[DueOffer], rows: Iterable[Row]) -> list[DueOffer]:
    """The offers without what they would add to the newest sizes; those of which nothing is left are not made."""
    found, by_key = [], {row.key: row for row in rows}
    for each in due:
        row = by_key[each.key]
        newest = row.newest_size
        if newest is None:
            continue
        size = Resources(*(min(each.size.amount(name), newest.amount(name)) for name in RESOURCE_NAMES))
        if size != newest or row.resend:
            found.append(replace(each, size=size))
    return found


def _account(state: PlannerState, policy: AccountPolicy, cluster: str, node: str) -> AccountPolicy:
    if cluster in state.removed:
        return policy
    scope, switch = state.switch_at(cluster, node)
    return replace(policy, switch=switch.state, switched="" if scope == cluster else scope)


def _without_given_up_floors(node: NodeState, rows: Sequence[Row]) -> tuple[tuple[Row, ...], list[Event]]:
    """The rows without the floors that keep losing tasks to pressure; they are not offered for a while."""
    before, given_up = node.floors_given_up, node.observation.floors_given_up
    if not before and not given_up:
        return tuple(rows), []
    offered = {row.key for row in rows if row.floor != ZERO}
    now = {row.key: given_up[row.key] for row in rows if row.key in given_up and row.key in offered | before.keys()}
    node.floors_given_up = now
    events = [_floor_event("floor_given_up", key, warning=True) for key in sorted(now.keys() - before.keys())]
    events += [_floor_event("floor_offered_again", key, warning=False) for key in sorted(before.keys() - now.keys())]
    return tuple(replace(row, floor=ZERO) if row.key in now else row for row in rows), events


def _without_too_small(
    node: NodeState, due: Iterable[DueOffer], clusters: Mapping[str, ClusterObservation]
) -> list[DueOffer]:
    """The offers that something pending would fit into; why the others are withheld is kept to be shown."""
    node.withheld, made = {}, []
    for each in due:
        cluster = clusters[each.key.cluster]
        row = cluster.rows[each.key]
        pending = servable(cluster.pending, cluster.pending_by_partition, [row])
        reason = too_small(each, row, pending, cluster.capabilities)
        if reason:
            node.withheld[each.key] = reason
        else:
            made.append(each)
    return made


def _floor_event(name: str, key: RowKey, *, warning: bool) -> Event:
    fields = {"cluster": key.cluster, "node": key.framework_node}
    return Event(logger="controller", name=name, fields=fields, warning=warning)
