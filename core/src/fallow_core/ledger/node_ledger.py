"""The ledger of one node: from its sample, its rows and the policy to the size that each row should have.

The result is at once the explanation: it holds every input and every step, so that each number can be recomputed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fallow_core.ledger.capacity import BatchCapacity, batch_capacity
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.sharing import Claim, Part, demand, divided, grown, shares, whole_units
from fallow_core.model.policy import AccountPolicy, NodePolicy, PublishingPolicy, SwitchState
from fallow_core.model.sample import NodeSample
from fallow_hookspecs import RESOURCE_NAMES, NodeState, Pending, ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInputs:
    """All that the ledger of one node is computed from. `accounts` and `pending` go by cluster name."""

    node: str
    now: float
    sample: NodeSample
    rows: tuple[Row, ...]
    accounts: Mapping[str, AccountPolicy]
    pending: Mapping[str, Pending | None] = field(default_factory=dict)
    policy: NodePolicy = field(default_factory=NodePolicy)
    publishing: PublishingPolicy = field(default_factory=PublishingPolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountEntry:
    """One account and one resource. `demand` and `limit` are `None` where there is no bound."""

    cluster: str
    weight: int
    allocated: int
    demand: int | None
    limit: int | None
    floor: int
    fair: int
    target: int
    drains_for_others: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEntry:
    """One row and one resource. `target` is its part of the account's target, `size` what it should be sized to.

    `waits`: it would grow if others believed in less. `reasons` says in words why `size` is not `target`.
    """

    key: RowKey
    allocated: int
    in_force: int | None
    newest: int | None
    belief: int
    floor: int
    unit: int
    target: int
    size: int
    waits: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLedger:
    """One resource of a node. `capacity` is `None` while nothing was ever measured: then no size changes.

    `exposure`: beliefs above batch. `overdraft`: allocations above batch. Neither is ever clamped out of sight.
    """

    resource: ResourceName
    capacity: BatchCapacity | None
    sample_age_seconds: float | None
    allocated: int
    believed: int
    exposure: int
    overdraft: int
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
    rows = tuple(sorted(inputs.rows, key=lambda row: row.key))
    cpu, memory = (_resource_ledger(inputs, rows, resource) for resource in RESOURCE_NAMES)
    return NodeLedger(node=inputs.node, cpu=cpu, memory=memory)


def _resource_ledger(inputs: NodeInputs, rows: tuple[Row, ...], resource: ResourceName) -> ResourceLedger:
    usage = inputs.sample.of(resource)
    capacity = batch_capacity(usage, inputs.policy.of(resource)) if usage is not None else None
    allocated = sum(row.allocated.amount(resource) for row in rows)
    believed = sum(row.belief(resource) for row in rows)
    batch = capacity.batch if capacity is not None else believed
    accounts = _accounts(inputs, rows, resource, batch)
    age = inputs.now - usage.measured_at if usage is not None else None
    return ResourceLedger(
        resource=resource,
        capacity=capacity,
        sample_age_seconds=age,
        allocated=allocated,
        believed=believed,
        exposure=max(believed - batch, 0),
        overdraft=max(allocated - batch, 0),
        accounts=accounts,
        rows=_rows(inputs, rows, resource, accounts, batch, age),
    )


def _accounts(
    inputs: NodeInputs, rows: tuple[Row, ...], resource: ResourceName, batch: int
) -> tuple[AccountEntry, ...]:
    clusters = sorted({row.key.cluster for row in rows})
    claims = [_claim(inputs, [r for r in rows if r.key.cluster == c], c, resource, batch) for c in clusters]
    smallest_unit = max((row.unit.amount(resource) for row in rows), default=1)
    step = max(smallest_unit, batch * inputs.publishing.drain_step_percent // 100)
    return tuple(
        AccountEntry(
            cluster=cluster,
            weight=claim.weight,
            allocated=claim.allocated,
            demand=claim.demand,
            limit=claim.limit,
            floor=claim.floor,
            fair=share.fair,
            target=share.target,
            drains_for_others=share.drains_for_others,
        )
        for cluster, claim, share in zip(clusters, claims, shares(batch, claims, step), strict=True)
    )


def _claim(inputs: NodeInputs, rows: list[Row], cluster: str, resource: ResourceName, batch: int) -> Claim:
    policy = inputs.accounts.get(cluster, AccountPolicy())
    pending = inputs.pending.get(cluster)
    allocated = sum(row.allocated.amount(resource) for row in rows)
    in_force = sum(row.in_force.amount(resource) for row in rows if row.in_force is not None)
    floor = sum(row.floor.amount(resource) for row in rows if row.state is not NodeState.GONE)
    largest = pending.largest.amount(resource) if pending is not None and pending.largest is not None else 0
    waiting = pending.total.amount(resource) if pending is not None else None
    return Claim(
        weight=policy.weight,
        allocated=allocated,
        demand=demand(allocated, in_force, waiting, max(floor, largest)),
        limit=policy.limit(resource).of(batch),
        floor=floor,
    )


def _rows(
    inputs: NodeInputs,
    rows: tuple[Row, ...],
    resource: ResourceName,
    accounts: tuple[AccountEntry, ...],
    batch: int,
    age: float | None,
) -> tuple[RowEntry, ...]:
    targets = _row_targets(rows, resource, accounts)
    units = [row.unit.amount(resource) for row in rows]
    beliefs = [row.belief(resource) for row in rows]
    rounded = whole_units(targets, units)
    safe = grown(rounded, beliefs, units, batch - sum(beliefs))
    entries = []
    for row, target, want, allowed in zip(rows, targets, rounded, safe, strict=True):
        size, reasons = _guarded(inputs, row, resource, allowed, age)
        if allowed < want:
            reasons = ("grows only out of what no other account may still believe it has", *reasons)
        entries.append(
            RowEntry(
                key=row.key,
                allocated=row.allocated.amount(resource),
                in_force=row.in_force.amount(resource) if row.in_force is not None else None,
                newest=row.newest(resource),
                belief=row.belief(resource),
                floor=row.floor.amount(resource),
                unit=row.unit.amount(resource),
                target=target,
                size=size,
                waits=allowed < want,
                reasons=reasons,
            )
        )
    return tuple(entries)


def _row_targets(rows: tuple[Row, ...], resource: ResourceName, accounts: tuple[AccountEntry, ...]) -> list[int]:
    targets: dict[RowKey, int] = {}
    for account in accounts:
        own = [row for row in rows if row.key.cluster == account.cluster]
        parts = [
            Part(
                allocated=row.allocated.amount(resource),
                floor=row.floor.amount(resource),
                maximum=row.maximum.amount(resource) if row.maximum is not None else None,
                unit=row.unit.amount(resource),
            )
            for row in own
        ]
        targets |= dict(zip((row.key for row in own), divided(account.target, parts), strict=True))
    return [targets[row.key] for row in rows]


def _guarded(
    inputs: NodeInputs, row: Row, resource: ResourceName, size: int, age: float | None
) -> tuple[int, tuple[str, ...]]:
    """The size after age, switch and floor, and why it is not the one that sharing gave."""
    policy = inputs.publishing
    switch = inputs.accounts.get(row.key.cluster, AccountPolicy()).switch
    newest, floor = row.newest(resource), row.floor.amount(resource)
    reasons: list[str] = []
    if newest is None:
        newest = row.belief(resource)
    if age is None:
        size, reasons = newest, ["the node was never measured: nothing changes"]
    elif age >= policy.withdraw_after_seconds:
        size, reasons = 0, [f"the node's sample is {age:.0f} s old: it drains"]
    elif switch is SwitchState.DRAIN:
        size, reasons = 0, ["switched to drain"]
    elif size > newest and (why := _no_growth(inputs, row, age, switch)):
        size, reasons = newest, [why]
    if size < floor:
        size = floor
        reasons.append("raised to the floor")
    return size, tuple(reasons)


def _no_growth(inputs: NodeInputs, row: Row, age: float, switch: SwitchState) -> str:
    limit = inputs.publishing.degrade_after_seconds
    if switch is SwitchState.HOLD:
        return "switched to hold: no growth"
    if age >= limit:
        return f"the node's sample is {age:.0f} s old: no growth"
    if (report_age := inputs.now - row.measured_at) >= limit:
        return f"the framework's report is {report_age:.0f} s old: no growth"
    return ""
