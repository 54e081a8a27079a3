"""The ledger of one node: from its sample, its rows and the policy to the size that each row should have.

The result is at once the explanation: it holds every input and every step, so that each number can be recomputed.
"""

from collections.abc import Sequence
from functools import partial

from fallow_core.ledger.accounts import Side, accounts_of
from fallow_core.ledger.capacity import BatchCapacity, batch_capacity
from fallow_core.ledger.entries import AccountEntry, NodeInputs, NodeLedger, ResourceLedger, RowEntry
from fallow_core.ledger.implausible import wrong_workload
from fallow_core.ledger.online_use import counted
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.sharing import Part, divided, grown
from fallow_core.model.policy import AccountPolicy, Sharing, SwitchState
from fallow_hookspecs import RESOURCE_NAMES, NodeState, ResourceName

__all__ = ["AccountEntry", "NodeInputs", "NodeLedger", "ResourceLedger", "RowEntry", "node_ledger"]


def node_ledger(inputs: NodeInputs) -> NodeLedger:
    """Compute the ledger of a node. Rows may come in any order; the result does not depend on it."""
    capacities = [_capacity(inputs, resource) for resource in RESOURCE_NAMES]
    sides = [_side(inputs, name, capacity) for name, capacity in zip(RESOURCE_NAMES, capacities, strict=True)]
    accounts = accounts_of(inputs, sides)
    cpu, memory = map(partial(_resource_ledger, inputs), sides, capacities, accounts)
    return NodeLedger(node=inputs.node, cpu=cpu, memory=memory)


def _side(inputs: NodeInputs, resource: ResourceName, capacity: BatchCapacity | None) -> Side:
    """One resource before it is shared. While nothing was measured, what is believed counts as batch capacity."""
    age = _age(inputs, resource)
    rows = tuple(_row(inputs, row, resource, age) for row in sorted(inputs.rows, key=lambda row: row.key))
    batch = capacity.batch if capacity is not None else sum(row.belief for row in rows)
    drain_step = batch * inputs.publishing.drain_step_percent // 100
    return Side(resource=resource, batch=batch, drain_step=drain_step, rows=rows)


def _resource_ledger(
    inputs: NodeInputs, side: Side, capacity: BatchCapacity | None, accounts: tuple[AccountEntry, ...]
) -> ResourceLedger:
    allocated = sum(row.allocated for row in side.rows)
    believed = sum(row.belief for row in side.rows)
    shared = inputs.publishing.sharing is Sharing.SHARED
    targets = [row.newest for row in side.rows] if capacity is None else _targets(side.rows, accounts)
    _set_sizes(side.rows, targets, side.batch, inputs.awaited, shared=shared, floors=not inputs.no_growth)
    return ResourceLedger(
        resource=side.resource,
        capacity=capacity,
        sample_age_seconds=_age(inputs, side.resource),
        allocated=allocated,
        believed=believed,
        exposure=max(believed - side.batch, 0),
        overdraft=max(allocated - side.batch, 0),
        drain_step=side.drain_step,
        accounts=accounts,
        rows=side.rows,
        shared=shared,
    )


def _age(inputs: NodeInputs, resource: ResourceName) -> float | None:
    usage = inputs.sample.of(resource)
    return inputs.now - usage.measured_at if usage is not None else None


def _capacity(inputs: NodeInputs, resource: ResourceName) -> BatchCapacity | None:
    usage, policy = inputs.sample.of(resource), inputs.policy.of(resource)
    if usage is None:
        return None
    right = [each for each in inputs.workloads if not wrong_workload(each)]
    workloads = counted(right, resource, policy.rule, inputs.policy.usage_window_seconds)
    daemons = max(inputs.daemons, sum(row.state is not NodeState.GONE for row in inputs.rows))
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
        host_limit=row.most(resource)[1],
        reasons=(why,) if why else (),
    )


def _most(
    inputs: NodeInputs, row: Row, resource: ResourceName, newest: int, age: float | None
) -> tuple[int | None, str]:
    """What a row may be sized to, and in words why, where a switch or an age decides."""
    account = inputs.accounts.get(row.key.cluster, AccountPolicy())
    switch, of = account.switch, f"{account.switched} is " if account.switched else ""
    if switch in (SwitchState.DRAIN, SwitchState.STOP):
        return 0, f"{of}switched to {switch}"
    withdrawn = _withdrawn(inputs, age)
    if withdrawn:
        return 0, f"{withdrawn}: it drains"
    if switch is not SwitchState.LEND:
        return newest, f"{of}switched to {switch}: no growth"
    held = inputs.no_growth or _held(inputs, row, age)
    if held:
        return newest, f"{held}: no growth"
    most, limit = row.most(resource)
    return most, "" if limit is None else limit.why


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
    wrong = (f"{each.name} is refused: {why}" for each in inputs.workloads if (why := wrong_workload(each)))
    return next(wrong, inputs.unsure)


def _targets(rows: Sequence[RowEntry], accounts: Sequence[AccountEntry]) -> list[int]:
    """The targets of rows, which are sorted by cluster as accounts are."""
    found: list[int] = []
    for account in accounts:
        own = [row for row in rows if row.key.cluster == account.cluster]
        parts = [Part(allocated=row.allocated, floor=row.floor, most=row.most, unit=row.unit) for row in own]
        found += divided(account.target, parts)
    return found


def _set_sizes(
    rows: Sequence[RowEntry],
    targets: Sequence[int],
    batch: int,
    awaited: Sequence[RowKey],
    *,
    shared: bool,
    floors: bool,
) -> None:
    """Give each row its size: growth above what is believed already, and above floors, comes out of what nobody may
    believe to have. Where capacity is shared, beliefs hold nobody up, but nobody grows while somebody is not known.
    `floors`: a row below its floor is raised to it.
    """
    wanted = [target if row.most is None else min(target, row.most) for row, target in zip(rows, targets, strict=True)]
    newest = [row.newest for row in rows]
    kept = [max(row.belief, row.floor) for row in rows]
    unknown = awaited or any(row.in_force is None and row.state is NodeState.RUNNING for row in rows)
    if shared and not unknown:
        allowed = wanted
    else:
        allowed = grown(0 if unknown else batch, wanted, newest, kept, [row.unit for row in rows])
    for row, target, want, size in zip(rows, targets, wanted, allowed, strict=True):
        floor = row.floor if floors else min(row.floor, row.newest)
        row.target, row.size, row.waits = target, max(size, floor), size < want
        if row.waits:
            row.reasons = (*row.reasons, "grows only out of what no other account may still believe it has")
        if size < floor:
            row.reasons = (*row.reasons, "raised to the floor")
