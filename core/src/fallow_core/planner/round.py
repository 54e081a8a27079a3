"""One round: what is new is taken in, the nodes that it concerns are computed, and what is due is returned.

    observations -> nodes with news or a timer that is due -> ledgers -> offers that are due -> take-backs
                 -> largest-node guard -> removal -> what is sent now, and what has to be written down before

A round costs what changed: sums of a cluster are kept, and a node without news is computed again only when time alone
changes its result.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import ZERO, Row, RowKey
from fallow_core.model.event import Event
from fallow_core.model.policy import PublishingMode
from fallow_core.planner import largest_node, publish, removal, take_back, timers
from fallow_core.planner.memory import Change, Sending, change_of, may_go_unrecorded
from fallow_core.planner.nodes import ClusterInputs, compute, take_in, take_policy
from fallow_core.planner.observations import NO_TASKS, ClusterObservation, Observations
from fallow_core.planner.state import ClusterState, PlannerState


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a round decided. The ledgers and everything that is shown is in the state.

    `send`: the offers to send now, by cluster. `remember`: what to write down before that; where it cannot be written,
    only `send_unrecorded` may be sent. `removed`: clusters of which nothing counts any more. `events`: for the log.
    `look_again_at`: when the next round is due, if nothing new is known before.
    """

    send: Mapping[str, tuple[DueOffer, ...]]
    send_unrecorded: Mapping[str, tuple[DueOffer, ...]]
    remember: Change
    removed: tuple[str, ...]
    events: tuple[Event, ...]
    look_again_at: float


def plan_round(state: PlannerState, news: Observations) -> Round:
    """Compute a round; `state` is brought up to date. Equal states and observations give equal results."""
    now, clusters = news.now, news.clusters
    events = [
        event for name in sorted(news.nodes) for event in take_in(state, name, news.nodes[name], now, news.wall_now)
    ]
    concerned = set(news.nodes) | _take_in_clusters(state, clusters)
    events += _check_policies(state, now, news.wall_now)
    concerned |= {node.name for node in state.nodes.values() if node.look_again_at <= now}
    events += _compute(state, sorted(concerned & state.nodes.keys()), clusters, now)
    send, waiting = publish.to_send(state, clusters, now)
    if state.publishing.mode is PublishingMode.OBSERVE:
        events += publish.tell_due(state)
    gone, more = removal.let_go(state, clusters, waiting | send.keys(), now)
    state.last_round_at = now
    sendings = [
        Sending(row=clusters[name].rows[d.key], due=d, started=clusters[name].started(d.key))
        for name, due in send.items()
        for d in due
    ]
    unrecorded = {s.due.key for s in sendings if may_go_unrecorded(s, state.memory)}
    return Round(
        send={name: tuple(due) for name, due in send.items()},
        send_unrecorded={name: tuple(d for d in due if d.key in unrecorded) for name, due in send.items()},
        remember=_change(state, clusters, sendings, news.wall_now),
        removed=tuple(gone),
        events=(*events, *more),
        look_again_at=_look_again_at(state, now),
    )


def _look_again_at(state: PlannerState, now: float) -> float:
    """When time alone changes the result of a node; soon where something is still to be sent."""
    nodes = min((node.look_again_at for node in state.nodes.values()), default=math.inf)
    if state.due or state.left_behind or state.removed:
        return min(nodes, now + state.publishing.urgent_interval_seconds)
    return nodes


def _take_in_clusters(state: PlannerState, clusters: Mapping[str, ClusterObservation]) -> set[str]:
    """Take over what changed of clusters; the nodes that it concerns."""
    concerned: set[str] = set()
    for name, cluster in clusters.items():
        of = state.clusters.setdefault(name, ClusterState())
        known = set()
        for key in cluster.changed:
            concerned.add(key.node)
            state.unwritten.add(key)
            if key in cluster.rows:
                of.rows.setdefault(key.node, set()).add(key)
                known.add(key)
            else:
                _forget_row(state, of, key)
        gone = known & state.awaited
        if cluster.silent:
            gone |= {key for key in state.awaited if key.cluster == name}
            state.unwritten |= gone
        if gone:
            state.awaited -= gone
            concerned |= {key.node for key in gone}
        inputs = _inputs(state, name, cluster, of)
        if inputs != of.inputs:
            of.inputs = inputs
            concerned |= of.rows.keys()
    return concerned


def _forget_row(state: PlannerState, cluster: ClusterState, key: RowKey) -> None:
    keys = cluster.rows.get(key.node, set())
    keys.discard(key)
    if not keys:
        cluster.rows.pop(key.node, None)
    cluster.sums.put(key, ZERO, NO_TASKS)
    cluster.due.pop(key, None)
    state.told.pop(key, None)


def _inputs(state: PlannerState, name: str, cluster: ClusterObservation, of: ClusterState) -> ClusterInputs:
    can = cluster.capabilities
    policy = removal.account_of_removed(cluster.policy) if name in state.removed else cluster.policy
    return ClusterInputs(
        policy=policy,
        pending=cluster.pending,
        pending_by_partition=cluster.pending_by_partition,
        shape=of.sums.shape(honours_cpu=can is None or can.cpu.honoured),
        capabilities=can,
    )


def _check_policies(state: PlannerState, now: float, wall_now: float) -> list[Event]:
    """Policies change by schedule; without one only when they are configured anew."""
    policies = state.policies
    layers = [*(pool.layer for pool in policies.pools), *policies.nodes.values()]
    scheduled = policies.schedule is not None or any(layer.schedule is not None for layer in layers)
    pause = timers.POLICY_SECONDS if scheduled else math.inf
    if abs(wall_now - state.policies_checked_at) < pause:  # a clock that is set counts too
        return []
    state.policies_checked_at = wall_now
    return [event for node in state.nodes.values() for event in take_policy(state, node, now, wall_now)]


def _compute(
    state: PlannerState, names: Iterable[str], clusters: Mapping[str, ClusterObservation], now: float
) -> list[Event]:
    """The ledgers of these nodes, and what is due in their clusters."""
    awaited: defaultdict[str, list[RowKey]] = defaultdict(list)
    for key in state.awaited:
        awaited[key.node].append(key)
    rows = {name: _rows(state, name, clusters) for name in names}
    for of_node, found in rows.items():
        _add_up(state, of_node, found)
    inputs = {name: _inputs(state, name, cluster, state.clusters[name]) for name, cluster in clusters.items()}
    events, computed = list[Event](), []
    for name, found in rows.items():
        one, more = compute(state, state.nodes[name], found, clusters, inputs, awaited[name], now)
        computed.append(one)
        events += more
    offers, more = take_back.decide(state, computed, clusters, now)
    events += more
    for one in computed:
        node = one.node
        for cluster in {row.key.cluster for row in one.inputs.rows}:
            due = state.clusters[cluster].due
            for key in state.clusters[cluster].rows[node.name]:
                due.pop(key, None)
        for each in offers[node.name]:
            state.clusters[each.key.cluster].due[each.key] = each
        node.look_again_at = timers.next_time(state, node, one.inputs, _lasts(inputs, one.inputs.rows))
    return events + _guard_largest(state, clusters)


def _rows(state: PlannerState, node: str, clusters: Mapping[str, ClusterObservation]) -> list[Row]:
    observation = state.nodes[node].observation
    return [
        observation.seen(clusters[name].rows[key])
        for name in clusters
        for key in sorted(state.clusters[name].rows.get(node, ()))
    ]


def _add_up(state: PlannerState, node: str, rows: Iterable[Row]) -> None:
    tasks = state.nodes[node].observation.tasks
    for row in rows:
        state.clusters[row.key.cluster].sums.put(row.key, row.allocated, tasks.get(row.key, NO_TASKS))


def _lasts(inputs: Mapping[str, ClusterInputs], rows: Iterable[Row]) -> list[int | None]:
    return [inputs[row.key.cluster].offer_lasts_seconds for row in rows]


def _guard_largest(state: PlannerState, clusters: Mapping[str, ClusterObservation]) -> list[Event]:
    """Set the due offers of all clusters, in the order in which they are sent; return the warnings."""
    events: list[Event] = []
    state.due = {}
    for name, cluster in clusters.items():
        kept, more = largest_node.guard(name, state.clusters[name], cluster, state.clusters[name].due.values())
        state.due |= {d.key: d for d in kept if publish.is_published(state, d.key)}
        events += more
    return events


def _change(
    state: PlannerState, clusters: Mapping[str, ClusterObservation], sendings: Iterable[Sending], wall_now: float
) -> Change:
    """The change to write down. Its rows stay in `unwritten` until the caller has written it."""
    rows = {key: clusters[key.cluster].rows.get(key) if key.cluster in clusters else None for key in state.unwritten}
    kept = {key for key in rows if key in state.awaited or key.cluster not in state.names}
    lends = state.publishing.mode is PublishingMode.ENFORCE

    def is_gone(key: RowKey) -> bool:
        if key in state.awaited or key.cluster not in state.names or key.cluster not in clusters:
            return False
        return clusters[key.cluster].reported and key not in clusters[key.cluster].rows

    return change_of(state.memory, rows, kept, sendings, wall_now, lends=lends, is_gone=is_gone)
