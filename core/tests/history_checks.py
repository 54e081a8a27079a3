"""What Fallow may do in the histories, and what that may expose: checked whenever it sends something."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from core.tests.history_happenings import CAPACITY, UNIT

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import SwitchState
from fallow_hookspecs import RESOURCE_NAMES, ResourceName

if TYPE_CHECKING:
    from core.tests.history_world import World

NAMED = {
    "load": "batch capacity fell",
    "register": "a node registered the size it is configured with",
    "restart": "a scheduler started anew, and its nodes registered",
    "resize": "somebody else set a size",
}
"""Which steps may expose something, and how that is called."""


def promised(world: "World", rows: Mapping[RowKey, Row], name: ResourceName) -> dict[RowKey, int]:
    """The most that each scheduler may promise: with what is on its way, and with all that Fallow believes."""
    most = {key: scheduler.most().amount(name) for key, scheduler in world.schedulers.items()}
    return most | {key: max(most[key], row.belief(name)) for key, row in rows.items()}


def exposure(world: "World", rows: Mapping[RowKey, Row], name: ResourceName) -> int:
    """What all schedulers together may promise above what there really is."""
    there = CAPACITY.amount(name) - world.used.amount(name)
    return max(sum(promised(world, rows, name).values()) - there, 0)


def check_growth(world: "World", due: Sequence[DueOffer], before: Mapping[RowKey, Row]) -> None:
    """What grows fits into batch capacity with all that is believed, and no input that made it grow is stale."""
    believed = world.shown().values()
    for d in due:
        row = before[d.key]
        assert min(d.size.cpu_milli, d.size.memory_bytes) >= 0
        for name in RESOURCE_NAMES:
            newest = row.newest(name)
            assert newest is not None
            assert d.size.amount(name) >= row.floor.amount(name), f"{d.key} gets less {name} than its floor"
            if d.size.amount(name) <= max(newest, _least(row, name)):
                continue
            there, measured_at = _measured(world, name)
            total = sum(r.belief(name) for r in believed)
            apart = sum(_apart(r, name) for r in believed)
            assert total - apart <= there, f"{d.key} grows: {total} of {name} believed, {there} there"
            limit = world.policy.degrade_after_seconds
            assert 0 <= world.now - measured_at < limit, "grows on a sample of another time"
            assert 0 <= world.now - row.measured_at < limit, "grows on a report of another time"
            assert world.known_before.keys() <= world.rows.keys(), "grows while not all rows are known"
            assert world.switches[d.key.cluster] is SwitchState.LEND, "grows although switched off"
    for name in RESOURCE_NAMES:
        _check_exposure(world, due, before, name)


def _least(row: Row, name: ResourceName) -> int:
    """The floor, and above it by how much sizes are told apart."""
    return row.floor.amount(name) + UNIT.amount(name) * (1 + len(row.in_flight))


def _apart(row: Row, name: ResourceName) -> int:
    """What a row at its floor got above it so that sizes can be told apart."""
    newest, floor = row.newest(name), row.floor.amount(name)
    return newest - floor if newest is not None and floor < newest <= _least(row, name) and name == "memory" else 0


def _measured(world: "World", name: ResourceName) -> tuple[int, float]:
    usage = world.sample.of(name)
    assert usage is not None, "grows without a sample"
    return usage.capacity - usage.used, usage.measured_at


def _check_exposure(world: "World", due: Sequence[DueOffer], before: Mapping[RowKey, Row], name: ResourceName) -> None:
    """What is sent exposes no more than floors, what has changed since it was measured, and what is not yet read back
    of named events.
    """
    rise = exposure(world, world.shown(), name) - exposure(world, before, name)
    if rise <= 0:
        return
    most = promised(world, before, name)
    usage = world.sample.of(name)
    bounds = {
        "a size below the floor was raised to it": sum(
            max(min(d.size.amount(name), _least(before[d.key], name)) - most[d.key], 0) for d in due
        ),
        "sizes at the floor were told apart": sum(_apart(row, name) for row in world.shown().values()),
        "batch capacity fell after the sample": 0 if usage is None else world.used.amount(name) - usage.used,
        "something grew beside a size not yet read back": sum(
            most[key] - (before[key].belief(name) if key in before else 0) for key in world.named
        ),
    }
    for kind, bound in bounds.items():
        part = min(rise, max(bound, 0))
        if part:
            world.counts.expose(kind, 100 * part / CAPACITY.amount(name))
        rise -= part
    assert rise <= 0, f"{rise} of {name} is exposed that no named event accounts for"
