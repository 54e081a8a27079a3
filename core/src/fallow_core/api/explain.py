"""The answer to `explain`: every input and every step of the offers of one node, and what its agent decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from fallow_core.api.decisions import Decision
from fallow_core.api.status import LostState, RowName, ScopeSwitch, lost_state, row_name
from fallow_core.api.throttling import ThrottlingStatus
from fallow_core.ledger.entries import NodeLedger, ResourceLedger
from fallow_core.ledger.partitions import elsewhere, servable
from fallow_core.ledger.rows import ZERO, Row
from fallow_core.ledger.take_back import Active
from fallow_core.model.policy import PublishingMode, SwitchState
from fallow_core.state.node_grant import AccountGrant
from fallow_hookspecs import RESOURCE_NAMES, ResourceName, Resources

if TYPE_CHECKING:
    from fallow_core.agent.remote_ledger import RemoteLedger
    from fallow_core.controller.controller import Controller
    from fallow_core.planner.switches import Switch
    from fallow_core.plugins.session import ClusterSession
    from fallow_core.state.lost_files import LostFile


class ClusterSwitch(ScopeSwitch, frozen=True, kw_only=True):
    """The strictest switch of a cluster on the node, where that is not `lend`."""

    cluster: str


class TakeBackUnderWay(Struct, frozen=True, kw_only=True):
    """`down_to`: what is allocated after it, by the newest numbers. `notice_left_seconds`: until tasks are terminated,
    `None` while the notice does not count. `terminates`: the framework was told to terminate them.
    """

    down_to: int
    notice_left_seconds: float | None
    terminates: bool


class TakeBackDecision(Struct, frozen=True, kw_only=True):
    """A row with more allocated than offered. `active`: the take-back under way; in mode `observe`, the one that would
    be.
    """

    key: RowName
    resource: ResourceName
    mode: PublishingMode
    overdraft: int
    active: TakeBackUnderWay | None
    why: str


class ClusterPending(Struct, frozen=True, kw_only=True):
    """Requests that wait in a cluster and that this node can serve: the sum, the smallest and the largest one; `None`
    if unknown. `detail`: whose they are. `partitions`: the framework's partitions that the node can serve, where it has
    several; `elsewhere`: what waits in the others.
    """

    cluster: str
    total: Resources | None
    smallest: Resources | None
    largest: Resources | None
    detail: str
    partitions: tuple[str, ...] = ()
    elsewhere: Resources = ZERO


class FilteredOffer(Struct, frozen=True, kw_only=True):
    """A larger offer that is not made, since the framework could not use it."""

    key: RowName
    why: str


class GivenUpFloor(Struct, frozen=True, kw_only=True):
    """A floor that is not offered for a while, since pressure terminated tasks in it."""

    key: RowName
    left_seconds: float


class DueOffer(Struct, frozen=True, kw_only=True):
    """A size that is to be sent. `take_back`: down to what tasks are terminated now, by resource."""

    key: RowName
    size: Resources
    urgent: bool
    why: str
    take_back: Mapping[ResourceName, int]


class GrantStatus(Struct, frozen=True, kw_only=True):
    """What a controller grants an agent's node, memory in bytes. `why`: why no grant is valid."""

    why: str
    to_take_back: int | None = None
    accounts: Mapping[str, AccountGrant] = {}


class Explanation(Struct, frozen=True, kw_only=True):
    """The answer to `explain`. `pools`: those that the node matches, of which the first one counts. `lost_state`: state
    files that cannot be read. `node_grant`: of an agent. `throttle`: how batch is throttled, and why.
    """

    role: Literal["run", "agent"] = "run"
    node: str
    pools: tuple[str, ...] = ()
    mode: PublishingMode
    lost_state: tuple[LostState, ...] = ()
    resources: Mapping[ResourceName, ResourceLedger]
    switches: tuple[ClusterSwitch, ...] = ()
    take_backs: tuple[TakeBackDecision, ...] = ()
    pending: tuple[ClusterPending, ...] = ()
    filtered_offers: tuple[FilteredOffer, ...] = ()
    floors_given_up: tuple[GivenUpFloor, ...] = ()
    due: tuple[DueOffer, ...] = ()
    node_grant: GrantStatus | None = None
    decisions: tuple[Decision, ...] = ()
    throttle: ThrottlingStatus | None = None


def run_explanation(
    controller: Controller,
    node: str,
    now: float,
    decisions: tuple[Decision, ...],
    throttle: ThrottlingStatus | None,
    lost: Iterable[LostFile] = (),
) -> Explanation:
    """One node of `fallow run`. `decisions` and `throttle`: of its agent. `lost`: state files that cannot be read."""
    state = controller.state
    found = state.nodes[node]
    switches = ((name, *state.switch_at(name, node)) for name in controller.names)
    return Explanation(
        **_node(controller.ledgers[node], state.pools(node), switches),
        mode=state.publishing.mode,
        lost_state=lost_state(lost),
        take_backs=tuple(
            TakeBackDecision(
                key=row_name(key),
                resource=name,
                mode=state.take_back.mode,
                overdraft=decision.overdraft,
                active=_under_way(decision.state.active, now),
                why=decision.why,
            )
            for (key, name), decision in found.decisions.items()
            if decision.overdraft or decision.state.active is not None
        ),
        pending=tuple(
            _pending(name, cluster, rows)
            for name, cluster in sorted(controller.clusters.items())
            if cluster.pending is not None and (rows := [row for row in cluster.rows.values() if row.key.node == node])
        ),
        filtered_offers=tuple(FilteredOffer(key=row_name(key), why=why) for key, why in found.withheld.items()),
        floors_given_up=tuple(
            GivenUpFloor(key=row_name(key), left_seconds=until - now)
            for key, until in sorted(found.floors_given_up.items())
        ),
        due=tuple(
            DueOffer(key=row_name(it.key), size=it.size, urgent=it.urgent, why=it.why, take_back=dict(it.take_back))
            for it in state.due.values()
            if it.key.node == node
        ),
        decisions=decisions,
        throttle=throttle,
    )


def _under_way(active: Active | None, now: float) -> TakeBackUnderWay | None:
    if active is None:
        return None
    left = None if active.warned_at is None else max(active.left_seconds(now), 0.0)
    return TakeBackUnderWay(down_to=active.size, notice_left_seconds=left, terminates=active.ordered_at is not None)


def _pending(name: str, cluster: ClusterSession, rows: list[Row]) -> ClusterPending:
    here = servable(cluster.pending, cluster.pending_by_partition, rows)
    return ClusterPending(
        cluster=name,
        total=None if here is None else here.total,
        smallest=None if here is None else here.smallest,
        largest=None if here is None else here.largest,
        detail="" if here is None else here.detail,
        partitions=tuple(sorted({partition for row in rows for partition in row.partitions})),
        elsewhere=elsewhere(cluster.pending, here),
    )


def agent_explanation(
    followed: RemoteLedger,
    decisions: tuple[Decision, ...],
    throttle: ThrottlingStatus,
    lost: Iterable[LostFile] = (),
) -> Explanation:
    """The node of `fallow agent`, which was measured before."""
    row = followed.row
    grant = GrantStatus(
        why=followed.row_file.why,
        to_take_back=None if row is None else row.to_take_back,
        accounts={} if row is None else dict(sorted(row.accounts.items())),
    )
    node = followed.node.name
    switches = ((name, *followed.switch_at(name, node)) for name in followed.names)
    return Explanation(
        role="agent",
        **_node(followed.ledgers[node], followed.pools(node), switches),
        mode=PublishingMode.OBSERVE,
        lost_state=lost_state(lost),
        node_grant=grant,
        decisions=decisions,
        throttle=throttle,
    )


def _node(ledger: NodeLedger, pools: tuple[str, ...], switches: Iterable[tuple[str, str, Switch]]) -> dict[str, Any]:
    return {
        "node": ledger.node,
        "pools": pools,
        "resources": {name: ledger.of(name) for name in RESOURCE_NAMES},
        "switches": tuple(
            ClusterSwitch(cluster=cluster, scope=scope, **asdict(switch))
            for cluster, scope, switch in switches
            if switch.state is not SwitchState.LEND
        ),
    }
