"""`ledger.sharing`: what each account of a node gets of a resource, and what of that its row may be sized to."""

from fallow_core.ledger.fleet.amounts import in_units, up_to_units
from fallow_core.ledger.fleet.arrays import Record, Records, compiled
from fallow_core.ledger.fleet.level import level, whole_units


@compiled
def shares(rows: Records, r: int, found: Record) -> None:
    """The targets of the accounts, and whether some drain for another one."""
    batch = found.batch[r]
    found.drains[r] = 0
    if _free(rows, r, found) < 0:
        _fall(rows, r, found)
        return
    all_wanted = 0
    for s in range(len(rows)):
        found.lower[r, s] = max(rows[s].allocated[r], rows[s].floor[r])
        found.upper[r, s] = min(found.demand[r, s], found.limit[r, s])
        all_wanted += max(found.lower[r, s], min(found.upper[r, s], batch + 1))
    if all_wanted <= batch:
        for s in range(len(rows)):
            found.lower[r, s] = max(found.lower[r, s], found.upper[r, s])
            found.upper[r, s] = found.limit[r, s]
    _level(rows, r, found)
    waits = False
    for s in range(len(rows)):
        waits |= found.fair[r, s] - found.target[r, s] >= found.unit[r, s]
    if waits:
        for s in range(len(rows)):
            allocated, fair, unit = rows[s].allocated[r], found.fair[r, s], found.unit[r, s]
            if allocated > fair:
                step = max(found.drain_step[r], unit)
                found.target[r, s] = in_units(max(fair, allocated - step), unit)
                found.drains[r] = 1


@compiled
def promised_to_all(rows: Records, r: int, found: Record) -> None:
    """The targets where all that is free is promised to each account. Nobody drains."""
    free = _free(rows, r, found)
    found.drains[r] = 0
    if free < 0:
        _fall(rows, r, found)
        return
    for s in range(len(rows)):
        allocated, unit = rows[s].allocated[r], found.unit[r, s]
        found.target[r, s] = max(allocated, in_units(min(allocated + free, found.limit[r, s]), unit))


@compiled
def _free(rows: Records, r: int, found: Record) -> int:
    """What of batch is not allocated."""
    free = found.batch[r]
    for s in range(len(rows)):
        free -= rows[s].allocated[r]
    return int(free)


@compiled
def _fall(rows: Records, r: int, found: Record) -> None:
    """In an overdraft accounts above fair fall, and nobody adds."""
    for s in range(len(rows)):
        found.lower[r, s] = min(rows[s].allocated[r], found.fair[r, s])
        found.upper[r, s] = rows[s].allocated[r]
    _level(rows, r, found)


@compiled
def _level(rows: Records, r: int, found: Record) -> None:
    """Targets in whole units, within bounds."""
    level(found.batch[r], len(rows), found.weight[r], found.lower[r], found.upper[r], found.target[r])
    whole_units(found.batch[r], len(rows), found.target[r], found.unit[r])


@compiled
def of_row(row: Record, r: int, s: int, found: Record) -> int:
    """`sharing.divided` for an account of one row."""
    allocated = row.allocated[r]
    target, unit, most = found.target[r, s], found.unit[r, s], max(found.most[r, s], allocated)
    amount = max(target, row.floor[r]) if target < allocated else min(most, target)
    rounded = in_units(amount, unit)
    return int(rounded + unit if rounded < amount and rounded + unit <= target else rounded)


@compiled
def grown(batch: int, rows: Records, r: int, found: Record) -> None:
    """The sizes: `sharing.grown`."""
    count = len(rows)
    free = batch
    for s in range(count):
        unit = found.unit[r, s]
        kept = up_to_units(max(rows[s].belief[r], rows[s].floor[r]), unit)
        free -= kept
        found.upper[r, s] = max(found.wanted[r, s] - kept, 0)
    if free < 0:
        for s in range(count):
            found.size[r, s] = min(found.wanted[r, s], rows[s].newest[r])
        return
    for s in range(count):
        found.lower[r, s], found.equal[r, s] = 0, 1
    level(free, count, found.equal[r], found.lower[r], found.upper[r], found.share[r])
    whole_units(free, count, found.share[r], found.unit[r])
    for s in range(count):
        growth = found.upper[r, s]
        found.size[r, s] = found.wanted[r, s] - growth + min(growth, found.share[r, s])
