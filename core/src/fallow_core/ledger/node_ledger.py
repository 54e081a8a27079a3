"""The ledger of one node: from its sample, its rows and the policy to the size that each row should have.

The result is at once the explanation: it holds every input and every step, so that each number can be recomputed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from fallow_core.ledger.capacity import BatchCapacity, batch_capacity
from fallow_core.ledger.online import counted
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.sharing import Claim, Part, demand, divided, grown, shares
from fallow_core.model.policy import AccountPolicy, NodePolicy, PublishingPolicy, SwitchState
from fallow_core.model.sample import NodeSample
from fallow_core.model.workload import Workload
from fallow_hookspecs import RESOURCE_NAMES, NodeState, Pending, ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInputs:
    """All that the ledger of one node is computed from. `accounts` and `pending` go by cluster name.

    `awaited`: rows that an earlier process knew and that nobody has reported yet. Their schedulers may promise
    anything, so while there are any nothing grows. `unsure`: why it is not known what on the node is batch; then
    nothing grows either. `watched_since`: since when the node should have been measured. `workloads` are its pods and
    host applications as they were at `workloads_at`, which is `None` where nobody tells of any.
    """

    node: str
    now: float
    sample: NodeSample
    rows: tuple[Row, ...]
    awaited: tuple[RowKey, ...] = ()
    unsure: str = ""
    watched_since: float | None = None
    workloads: tuple[Workload, ...] = ()
    workloads_at: float | None = None
    accounts: Mapping[str, AccountPolicy]
    pending: Mapping[str, Pending | None] = field(default_factory=dict)
    policy: NodePolicy = field(default_factory=NodePolicy)
    publishing: PublishingPolicy = field(default_factory=PublishingPolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountEntry:
    """One account and one resource. `pending` is `None` where unknown, `demand` and `limit` where there is no bound.

    `room`: what it should have free to start anything. `limit`: the least of the operator's limit and of what its rows
    may be sized to, in whole units.
    """

    cluster: str
    weight: int
    unit: int
    allocated: int
    in_force: int
    pending: int | None
    room: int
    demand: int | None
    limit: int | None
    floor: int
    fair: int = 0
    target: int = 0
    drains_for_others: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEntry:
    """One row and one resource. `target` is its part of the account's target, `size` what it should be sized to.

    `newest`: the size it was last sent, or the one in force; its belief where neither is known. `most`: what it may be
    sized to by switch, ages and what the framework can use; `None` if that is no bound. `waits`: it would grow if
    others believed in less. `reasons` says in words what else than sharing decides about `size`.
    """

    key: RowKey
    state: NodeState
    allocated: int
    in_force: int | None
    in_flight: tuple[int, ...]
    newest: int
    belief: int
    floor: int
    unit: int
    most: int | None
    target: int = 0
    size: int = 0
    waits: bool = False
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLedger:
    """One resource of a node. `capacity` is `None` while nothing was ever measured: then nothing grows.

    `exposure`: beliefs above batch. `overdraft`: allocations above batch. Neither is ever clamped out of sight.
    `drain_step`: by how much an account above its fair share drains for one that waits.
    """

    resource: ResourceName
    capacity: BatchCapacity | None
    sample_age_seconds: float | None
    allocated: int
    believed: int
    exposure: int
    overdraft: int
    drain_step: int
    accounts: tuple[AccountEntry, ...]
    rows: tuple[RowEntry, ...]

    @property
    def overcommitted(self) -> bool:
        """Whether schedulers may promise more than there is."""
        return self.exposure > 0

    @property
    def someone_waits(self) -> bool:
        """Whether a row would grow if others believed in less."""
        return any(row.waits for row in self.rows) or any(account.drains_for_others for account in self.accounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLedger:
    """The ledger of one node."""

    node: str
    cpu: ResourceLedger
    memory: ResourceLedger

    def of(self, resource: ResourceName) -> ResourceLedger:
        """The ledger of one resource."""
        return self.cpu if resource == "cpu" else self.memory


def node_ledger(inputs: NodeInputs) -> NodeLedger:
    """Compute the ledger of a node. Rows may come in any order; the result does not depend on it."""
    cpu, memory = (_resource_ledger(inputs, resource) for resource in RESOURCE_NAMES)
    return NodeLedger(node=inputs.node, cpu=cpu, memory=memory)


def _resource_ledger(inputs: NodeInputs, resource: ResourceName) -> ResourceLedger:
    usage = inputs.sample.of(resource)
    capacity = _capacity(inputs, resource)
    age = inputs.now - usage.measured_at if usage is not None else None
    rows = [_row(inputs, row, resource, age) for row in sorted(inputs.rows, key=lambda row: row.key)]
    allocated = sum(row.allocated for row in rows)
    believed = sum(row.belief for row in rows)
    batch = capacity.batch if capacity is not None else believed
    drain_step = batch * inputs.publishing.drain_step_percent // 100
    accounts = _accounts(inputs, rows, resource, batch, drain_step)
    if capacity is None:
        rows = [replace(row, target=row.newest) for row in rows]
    return ResourceLedger(
        resource=resource,
        capacity=capacity,
        sample_age_seconds=age,
        allocated=allocated,
        believed=believed,
        exposure=max(believed - batch, 0),
        overdraft=max(allocated - batch, 0),
        drain_step=drain_step,
        accounts=accounts,
        rows=_with_sizes(rows if capacity is None else _with_targets(rows, accounts), batch, inputs.awaited),
    )


def _capacity(inputs: NodeInputs, resource: ResourceName) -> BatchCapacity | None:
    usage, policy = inputs.sample.of(resource), inputs.policy.of(resource)
    if usage is None:
        return None
    workloads = counted(inputs.workloads, resource, policy.rule, inputs.policy.usage_window_seconds)
    daemons = sum(row.state is not NodeState.GONE for row in inputs.rows)
    return batch_capacity(usage, policy, workloads, daemons)


def _row(inputs: NodeInputs, row: Row, resource: ResourceName, age: float | None) -> RowEntry:
    """What goes into the sharing of one row; its target and size are not known yet."""
    newest, belief = row.newest(resource), row.belief(resource)
    newest = belief if newest is None else newest
    most, why = _most(inputs, row, resource, newest, age)
    return RowEntry(
        key=row.key,
        state=row.state,
        allocated=row.allocated.amount(resource),
        in_force=row.in_force.amount(resource) if row.in_force is not None else None,
        in_flight=tuple(sent.size.amount(resource) for sent in row.in_flight),
        newest=newest,
        belief=belief,
        floor=row.floor.amount(resource),
        unit=row.unit.amount(resource),
        most=most,
        reasons=(why,) if why else (),
    )


def _most(
    inputs: NodeInputs, row: Row, resource: ResourceName, newest: int, age: float | None
) -> tuple[int | None, str]:
    """What a row may be sized to, and in words why, where a switch or an age decides."""
    switch = inputs.accounts.get(row.key.cluster, AccountPolicy()).switch
    if switch in (SwitchState.DRAIN, SwitchState.STOP):
        return 0, f"switched to {switch}"
    withdrawn = _withdrawn(inputs, age)
    if withdrawn:
        return 0, f"{withdrawn}: it drains"
    if switch is not SwitchState.LEND:
        return newest, f"switched to {switch}: no growth"
    held = _held(inputs, row, age)
    if held:
        return newest, f"{held}: no growth"
    unit = row.unit.amount(resource)
    return row.maximum.amount(resource) // unit * unit if row.maximum is not None else None, ""


def _withdrawn(inputs: NodeInputs, age: float | None) -> str:
    """Why a node's sample is worth nothing any more; empty if it is worth something."""
    limit = inputs.publishing.withdraw_after_seconds
    if age is None:
        missing = 0.0 if inputs.watched_since is None else inputs.now - inputs.watched_since
        return f"the node was never measured in {missing:.0f} s" if missing >= limit else ""
    if age <= -limit:
        return f"the node's sample is {-age:.0f} s from the future"
    return f"the node's sample is {age:.0f} s old" if age >= limit else ""


def _held(inputs: NodeInputs, row: Row, age: float | None) -> str:
    """Which input is missing, too old, or of a time to come; empty if all are fresh."""
    if age is None:
        return "the node was never measured"
    ages = {"the node's sample": age, "the framework's report": inputs.now - row.measured_at}
    if inputs.workloads_at is not None:
        ages["the list of pods and host applications"] = inputs.now - inputs.workloads_at
    for what, seconds in ages.items():
        if seconds < 0:
            return f"{what} is {-seconds:.0f} s from the future"
        if seconds >= inputs.publishing.degrade_after_seconds:
            return f"{what} is {seconds:.0f} s old"
    return inputs.unsure


def _accounts(
    inputs: NodeInputs, rows: Sequence[RowEntry], resource: ResourceName, batch: int, drain_step: int
) -> tuple[AccountEntry, ...]:
    usage = inputs.sample.of(resource)
    room = usage.capacity * inputs.publishing.drain_step_percent // 100 if usage is not None else 0
    by_cluster = [(name, tuple(own)) for name, own in groupby(rows, key=lambda row: row.key.cluster)]
    accounts = [_account(inputs, name, own, resource, batch, room) for name, own in by_cluster]
    claims = [
        Claim(weight=a.weight, allocated=a.allocated, demand=a.demand, limit=a.limit, floor=a.floor, unit=a.unit)
        for a in accounts
    ]
    return tuple(
        replace(account, fair=share.fair, target=share.target, drains_for_others=share.drains_for_others)
        for account, share in zip(accounts, shares(batch, claims, drain_step), strict=True)
    )


def _account(
    inputs: NodeInputs, cluster: str, rows: Sequence[RowEntry], resource: ResourceName, batch: int, room: int
) -> AccountEntry:
    """What an account brings to the sharing; its fair share and target are not known yet."""
    policy = inputs.accounts.get(cluster, AccountPolicy())
    pending = inputs.pending.get(cluster)
    waiting = pending.total.amount(resource) if pending is not None else None
    unit = max(row.unit for row in rows)
    allocated = sum(row.allocated for row in rows)
    in_force = sum(row.in_force or 0 for row in rows)
    floor = sum(row.floor for row in rows)
    room = max(room, floor)
    most = [row.most for row in rows if row.most is not None]
    limits = [policy.limit(resource).of(batch), sum(most) if len(most) == len(rows) else None]
    return AccountEntry(
        cluster=cluster,
        weight=policy.weight,
        unit=unit,
        allocated=allocated,
        in_force=in_force,
        pending=waiting,
        room=room,
        demand=demand(allocated, in_force, waiting, room, unit),
        limit=min((limit // unit * unit for limit in limits if limit is not None), default=None),
        floor=floor,
    )


def _with_targets(rows: Sequence[RowEntry], accounts: Sequence[AccountEntry]) -> list[RowEntry]:
    entries: list[RowEntry] = []
    for account in accounts:
        own = [row for row in rows if row.key.cluster == account.cluster]
        parts = [Part(allocated=row.allocated, floor=row.floor, most=row.most, unit=row.unit) for row in own]
        targets = divided(account.target, parts)
        entries += [replace(row, target=target) for row, target in zip(own, targets, strict=True)]
    return entries


def _with_sizes(rows: Sequence[RowEntry], batch: int, awaited: Sequence[RowKey]) -> tuple[RowEntry, ...]:
    """Growth above what is believed already, and above floors, comes out of what nobody may believe to have."""
    wanted = [row.target if row.most is None else min(row.target, row.most) for row in rows]
    newest = [row.newest for row in rows]
    kept = [max(row.belief, row.floor) for row in rows]
    unknown = awaited or any(row.in_force is None and row.state is NodeState.RUNNING for row in rows)
    allowed = grown(0 if unknown else batch, wanted, newest, kept, [row.unit for row in rows])
    return tuple(_with_size(row, want, size) for row, want, size in zip(rows, wanted, allowed, strict=True))


def _with_size(row: RowEntry, wanted: int, allowed: int) -> RowEntry:
    reasons = row.reasons
    if allowed < wanted:
        reasons = (*reasons, "grows only out of what no other account may still believe it has")
    if allowed < row.floor:
        reasons = (*reasons, "raised to the floor")
    return replace(row, size=max(allowed, row.floor), waits=allowed < wanted, reasons=reasons)
