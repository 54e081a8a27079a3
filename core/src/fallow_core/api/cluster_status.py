"""One cluster in the answer to `status`: its plugin's health, and its rows with their sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from fallow_core.ledger.rows import Row
from fallow_core.model.plugin import PluginSource
from fallow_core.planner.switches import Switch
from fallow_core.plugins.lanes import LaneHealth, LaneState
from fallow_hookspecs import Capabilities, NodeState, Pending, Resources

if TYPE_CHECKING:
    from fallow_core.agent.remote_ledger import RemoteLedger
    from fallow_core.controller.controller import Controller
    from fallow_core.plugins.session import ClusterSession


class LaneStatus(Struct, frozen=True, kw_only=True):
    """One of the two threads that call a plugin instance. `next_try_in_seconds`: only after failures."""

    state: LaneState
    reason: str = ""
    failures: int = 0
    failing_for_seconds: float | None = None
    next_try_in_seconds: float | None = None


class Due(Struct, frozen=True, kw_only=True):
    """A size that is to be sent, and why."""

    size: Resources
    why: str


class RowStatus(Struct, frozen=True, kw_only=True):
    """One node of a framework.

    `in_force`: the size that its scheduler works with. `in_flight`: sizes that were sent and not seen in force yet.
    `newest`: the last size sent. `belief`: the most that the scheduler may still promise. `offer`: the size that the
    ledger wants. `due`: what is to be sent. `original`: the size before Fallow changed it. `in_force_why`: how a
    size came into force that Fallow did not send; empty if it sent it. `refusal`: why the framework did not take the
    newest size.
    """

    node: str
    framework_node: str
    state: NodeState
    age_seconds: float
    allocated: Resources
    in_force: Resources | None
    in_flight: tuple[Resources, ...]
    newest: Resources | None
    belief: Resources
    floor: Resources
    offer: Resources | None
    due: Due | None
    original: Resources | None
    in_force_why: str
    refusal: str


class CallCounts(Struct, frozen=True, kw_only=True):
    """What happened since the start: sizes sent, sizes that the framework refused, calls without an answer."""

    offers_sent: int = 0
    offers_refused: int = 0
    calls_failed: int = 0


class ClusterStatus(Struct, frozen=True, kw_only=True):
    """A cluster whose plugin instance was built.

    `failing`: of each kind of call that failed the last time, why. `wrappers`: the same of wrappers. `reads` and
    `acts`: the threads that call the plugin. `detail`: whom the plugin talks to. `pending`: requests that wait.
    `listed_nodes`: hosts whose tasks the plugin has listed.
    """

    cluster: str
    switch: Switch
    plugin: PluginSource
    failing: Mapping[str, str]
    wrappers: Mapping[str, str] = {}
    reads: LaneStatus
    acts: LaneStatus
    counts: CallCounts = CallCounts()
    listed_nodes: tuple[str, ...] = ()
    detail: str
    report_age_seconds: float | None
    capabilities: Capabilities | None = None
    pending: Pending | None = None
    rows: tuple[RowStatus, ...] = ()


def cluster_of_run(controller: Controller, cluster: ClusterSession, now: float) -> ClusterStatus:
    """A cluster as `fallow run` shows it."""
    return ClusterStatus(
        switch=controller.switch(cluster.name),
        **_health(cluster, now),
        detail=cluster.detail,
        report_age_seconds=None if cluster.reported_at is None else now - cluster.reported_at,
        capabilities=cluster.capabilities,
        pending=cluster.pending,
        rows=tuple(_row(controller, row, now) for _, row in sorted(cluster.rows.items())),
    )


def cluster_of_agent(followed: RemoteLedger, cluster: ClusterSession, now: float) -> ClusterStatus:
    """A cluster as `fallow agent` shows it: it has no rows, and its report is the list of its tasks."""
    listed = cluster.lists.get(followed.node.name)
    return ClusterStatus(
        switch=followed.switch(cluster.name),
        **_health(cluster, now),
        detail="" if listed is None else f"{len(listed.tasks)} tasks listed",
        report_age_seconds=None if listed is None else now - listed.measured_at,
    )


def _health(cluster: ClusterSession, now: float) -> dict[str, Any]:
    found, counts = cluster.instance.health(), cluster.counts
    return {
        "cluster": cluster.name,
        "plugin": cluster.instance.source,
        "failing": dict(cluster.failing),
        "wrappers": dict(found.wrappers),
        "reads": _lane(found.reads, now),
        "acts": _lane(found.acts, now),
        "counts": CallCounts(
            offers_sent=counts.offers_sent, offers_refused=counts.offers_refused, calls_failed=counts.calls_failed
        ),
        "listed_nodes": tuple(cluster.lists),
    }


def _lane(lane: LaneHealth, now: float) -> LaneStatus:
    return LaneStatus(
        state=lane.state,
        reason=lane.reason,
        failures=lane.failures,
        failing_for_seconds=None if lane.failing_since is None else now - lane.failing_since,
        next_try_in_seconds=None if lane.next_try_at is None else max(0.0, lane.next_try_at - now),
    )


def _row(controller: Controller, row: Row, now: float) -> RowStatus:
    original, due = controller.original(row.key), controller.state.due.get(row.key)
    return RowStatus(
        node=row.key.node,
        framework_node=row.key.framework_node,
        state=row.state,
        age_seconds=now - row.measured_at,
        allocated=row.allocated,
        in_force=row.in_force,
        in_flight=tuple(sent.size for sent in row.in_flight),
        newest=row.newest_size,
        belief=Resources(row.belief("cpu"), row.belief("memory")),
        floor=row.floor,
        offer=_offer(controller, row),
        due=None if due is None else Due(size=due.size, why=due.why),
        original=None if original is None else original.size,
        in_force_why=row.foreign_why if row.foreign is not None else "",
        refusal=row.refusal,
    )


def _offer(controller: Controller, row: Row) -> Resources | None:
    """The size that the ledger wants now, before dead band and growth delay."""
    ledger = controller.ledgers.get(row.key.node)
    entries = zip(ledger.cpu.rows, ledger.memory.rows, strict=True) if ledger is not None else ()
    return next((Resources(cpu.size, memory.size) for cpu, memory in entries if cpu.key == row.key), None)
