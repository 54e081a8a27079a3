"""The answer to `status`, and how it is made: in the same way by `fallow run` and `fallow agent`.

Amounts of CPU are milli-cores, of memory bytes. What is not known is `None`, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from fallow_core.api.cluster_status import ClusterStatus, cluster_of_agent, cluster_of_run
from fallow_core.api.decisions import Shortfall
from fallow_core.ledger.capacity import BatchCapacity
from fallow_core.ledger.entries import NodeLedger, ResourceLedger
from fallow_core.ledger.rows import RowKey
from fallow_core.model.policy import PublishingMode, SwitchState
from fallow_hookspecs import ResourceName

if TYPE_CHECKING:
    from fallow_core.agent.remote_ledger import RemoteLedger
    from fallow_core.controller.controller import Controller
    from fallow_core.state.lost_files import LostFile

VALID = "valid"
"""The ledger state of an agent while the grant of its controller is valid."""
LABELS: Mapping[ResourceName, str] = {"cpu": "CPU", "memory": "memory"}


class RowName(Struct, frozen=True, kw_only=True):
    """One node of a framework: the host, the cluster, and the framework's name of the node."""

    node: str
    cluster: str
    framework_node: str


class ScopeSwitch(Struct, frozen=True, kw_only=True):
    """A switch that an operator set. `scope`: a cluster, pool, node, framework or all. `when`: seconds since 1970."""

    scope: str
    state: SwitchState
    who: str
    when: float
    why: str


class LostState(Struct, frozen=True, kw_only=True):
    """A file of the state directory that cannot be read, and that nobody has given up. `why`: what is wrong with it.
    `effect`: what follows until a person decides. `advice`: what to do besides giving it up.
    """

    file: str
    why: str
    effect: str
    advice: str


class AcceptedLoss(Struct, frozen=True, kw_only=True):
    """A file of the state directory that a person gave up. `kept_as`: its name now. `when`: seconds since 1970."""

    kept_as: str
    who: str
    when: float
    why: str


class RefusedFile(Struct, frozen=True, kw_only=True):
    """A file with mistakes, which is not in force. `since`: seconds since 1970."""

    file: str
    since: float
    problems: tuple[str, ...]


class RefusedInput(Struct, frozen=True, kw_only=True):
    """A measurement or an answer that cannot be true. `source`: a cluster, or `nodes`. `of`: what it is about."""

    source: str
    kind: str
    of: str
    why: str


class ConfigReads(Struct, frozen=True, kw_only=True):
    """How often files were read again, by outcome. `last_taken_at`: the last time without a mistake, since 1970."""

    taken: int = 0
    refused: int = 0
    last_taken_at: float | None = None


class ProcessStatus(Struct, frozen=True, kw_only=True):
    """What a process says of itself: a part of its status.

    `not_selected`: clusters whose `nodeSelector` does not match this host, and why. `shortfalls`: pressure on this host
    that terminations do not relieve.
    """

    uptime_seconds: float
    config_file: str
    building: tuple[str, ...] = ()
    failed: Mapping[str, str] = {}
    not_selected: Mapping[str, str] = {}
    config_problems: tuple[str, ...] = ()
    refused_files: tuple[RefusedFile, ...] = ()
    config_reads: ConfigReads = ConfigReads()
    sample_problems: Mapping[ResourceName, str] = {}
    probe_problems: tuple[str, ...] = ()
    throttle_problems: tuple[str, ...] = ()
    changed_groups: Mapping[str, str] = {}
    exempt_groups: Mapping[str, int] = {}
    shortfalls: tuple[Shortfall, ...] = ()


class ResourceStatus(Struct, frozen=True, kw_only=True):
    """One resource of a node.

    `capacity`: what the node has. `used`: what is in use, `batch_used` of it by batch. `batch`: what it can lend.
    `allocated`: what frameworks have promised to tasks. `believed`: the most that they may still promise. `exposure`
    and `overdraft`: `believed` and `allocated` above `batch`. `watermark_problem`: why the watermark alone keeps the
    node from lending.
    """

    capacity: int | None
    used: int | None
    batch_used: int | None
    batch: int | None
    sample_age_seconds: float | None
    allocated: int
    believed: int
    exposure: int
    overdraft: int
    watermark_problem: str = ""


class LimitOfHost(Struct, frozen=True, kw_only=True):
    """A limit of the host that decides about the size of one of a framework's nodes. `where`: the control file that
    says so, or in words what does. `daemons`: how many share the limit; `amount` is the part of this one.
    """

    cluster: str
    framework_node: str
    resource: ResourceName
    amount: int
    where: str
    daemons: int = 1


class NodeStatus(Struct, frozen=True, kw_only=True):
    """A node. `awaited`: rows that an earlier process knew; until they are reported nothing grows. `limits`: what the
    host allows the daemons of frameworks, where that is less than the host has.
    """

    node: str
    pool: str
    cpu: ResourceStatus
    memory: ResourceStatus
    awaited: tuple[RowName, ...] = ()
    limits: tuple[LimitOfHost, ...] = ()

    def of(self, resource: ResourceName) -> ResourceStatus:
        """One resource."""
        return self.cpu if resource == "cpu" else self.memory


class TakeBackStarted(Struct, frozen=True, kw_only=True):
    """A take-back that began within the time of the blast radius. `amount`: the most that it may terminate."""

    cluster: str
    resource: ResourceName
    amount: int
    ago_seconds: float


class Status(ProcessStatus, frozen=True, kw_only=True):
    """The answer to `status`.

    `failed` and `building`: clusters without a plugin instance. `sample_problems`: what cannot be measured,
    `probe_problems`: what quick probes cannot read.
    `changed_groups`: control groups that are not as Fallow found them, with the problem of the last change.
    `exempt_groups`: those in which nothing is changed (`qos.exempt`), with the number of tasks that are not throttled.
    `journal_error`: why the journal cannot be written. `lost_state`: state files that cannot be read. `sizes_unknown`:
    so the switches and the sizes found first are not known. `accepted_losses`: state files that were given up.
    `switches`: those that are not `lend`. `configured`: the clusters that have a file. `removals`: clusters without a
    file that still count, and why. `restoring`: the original sizes are being put back. `node_grant`: of an agent, why
    no grant of a controller is valid, or `valid`.
    """

    role: Literal["run", "agent"] = "run"
    mode: PublishingMode
    journal_error: str
    lost_state: tuple[LostState, ...] = ()
    sizes_unknown: bool = False
    accepted_losses: tuple[AcceptedLoss, ...] = ()
    switches: tuple[ScopeSwitch, ...]
    refused_inputs: tuple[RefusedInput, ...]
    nodes: tuple[NodeStatus, ...]
    configured: tuple[str, ...]
    clusters: tuple[ClusterStatus, ...]
    take_backs: tuple[TakeBackStarted, ...] = ()
    take_backs_started: Mapping[str, int] = {}
    removals: Mapping[str, str] = {}
    restoring: bool = False
    node_grant: str = ""


def row_name(key: RowKey) -> RowName:
    """The key of a row, with names in JSON."""
    return RowName(**key._asdict())


def lost_state(files: Iterable[LostFile]) -> tuple[LostState, ...]:
    """State files that cannot be read."""
    return tuple(LostState(file=str(it.path), why=it.why, effect=it.effect, advice=it.advice) for it in files)


def run_status(controller: Controller, process: ProcessStatus, now: float, lost: Iterable[LostFile] = ()) -> Status:
    """The status of `fallow run`."""
    return Status(
        **_fields(process),
        mode=controller.state.publishing.mode,
        journal_error=controller.journal_error,
        lost_state=lost_state(lost),
        sizes_unknown=bool(controller.state.memory_unknown),
        accepted_losses=_accepted_losses(controller),
        switches=_switches(controller),
        refused_inputs=_refused(controller),
        nodes=tuple(
            _node(ledger, controller.state.pool(name), tuple(map(row_name, controller.awaited(name))))
            for name, ledger in controller.ledgers.items()
        ),
        configured=controller.names,
        clusters=tuple(cluster_of_run(controller, each, now) for _, each in sorted(controller.clusters.items())),
        take_backs=tuple(
            TakeBackStarted(cluster=cluster, resource=resource, amount=started.amount, ago_seconds=now - started.at)
            for (cluster, resource), found in sorted(controller.state.take_backs.started.items())
            for started in found
        ),
        take_backs_started={name: controller.state.take_backs_started[name] for name in controller.names},
        removals=dict(controller.state.removal_reasons),
        restoring=not controller.left,
    )


def agent_status(followed: RemoteLedger, process: ProcessStatus, now: float, lost: Iterable[LostFile] = ()) -> Status:
    """The status of `fallow agent`, which sends no sizes."""
    return Status(
        **_fields(process),
        role="agent",
        mode=PublishingMode.OBSERVE,
        journal_error="",
        lost_state=lost_state(lost),
        accepted_losses=_accepted_losses(followed),
        switches=_switches(followed),
        refused_inputs=_refused(followed),
        nodes=tuple(_node(ledger, followed.pool(name)) for name, ledger in followed.ledgers.items()),
        configured=followed.names,
        clusters=tuple(cluster_of_agent(followed, each, now) for _, each in sorted(followed.clusters.items())),
        node_grant=followed.row_file.why or VALID,
    )


def watermark_problem(name: ResourceName, capacity: BatchCapacity) -> str:
    """Why the watermark alone keeps a node from lending; empty if it lends, or would not lend without it either."""
    others = capacity.system + capacity.online
    if capacity.batch_real or not 0 < capacity.capacity - others <= capacity.margin or not capacity.cap:
        return ""
    how = "in use" if capacity.system > capacity.reserved else "in use or reserved"
    without = " without batch" if capacity.batch_used else ""
    return (
        f"nothing to lend: {100 * others // capacity.capacity} % of {LABELS[name]} is {how}{without} and the watermark "
        f"is {capacity.watermark_percent} %"
    )


def _fields(process: ProcessStatus) -> dict[str, Any]:
    return {name: getattr(process, name) for name in process.__struct_fields__}


def _switches(ledgers: Controller | RemoteLedger) -> tuple[ScopeSwitch, ...]:
    stored = sorted(ledgers.journal.memory.switches.items())
    return tuple(
        ScopeSwitch(scope=scope, **asdict(switch)) for scope, switch in stored if switch.state is not SwitchState.LEND
    )


def _accepted_losses(ledgers: Controller | RemoteLedger) -> tuple[AcceptedLoss, ...]:
    accepted = sorted(ledgers.journal.memory.accepted.items())
    return tuple(AcceptedLoss(kept_as=name, **asdict(acceptance)) for name, acceptance in accepted)


def _refused(ledgers: Controller | RemoteLedger) -> tuple[RefusedInput, ...]:
    every = [ledgers.refused, *(cluster.refused for _, cluster in sorted(ledgers.clusters.items()))]
    return tuple(
        RefusedInput(source=each.source, kind=kind, of=of, why=why)
        for each in every
        for (kind, of), why in sorted(each.now.items())
    )


def _node(ledger: NodeLedger, pool: str, awaited: tuple[RowName, ...] = ()) -> NodeStatus:
    return NodeStatus(
        node=ledger.node,
        pool=pool,
        cpu=_resource("cpu", ledger.cpu),
        memory=_resource("memory", ledger.memory),
        awaited=awaited,
        limits=tuple(
            LimitOfHost(cluster=row.key.cluster, framework_node=row.key.framework_node, **asdict(row.host_limit))
            for row in (*ledger.cpu.rows, *ledger.memory.rows)
            if row.host_limit is not None
        ),
    )


def _resource(name: ResourceName, ledger: ResourceLedger) -> ResourceStatus:
    capacity = ledger.capacity
    measured = ("capacity", "used", "batch_used", "batch")
    return ResourceStatus(
        **{field: None if capacity is None else getattr(capacity, field) for field in measured},
        sample_age_seconds=ledger.sample_age_seconds,
        allocated=ledger.allocated,
        believed=ledger.believed,
        exposure=ledger.exposure,
        overdraft=ledger.overdraft,
        watermark_problem="" if capacity is None else watermark_problem(name, capacity),
    )
