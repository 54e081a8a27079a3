"""`ledger.sharing`: what each account of a node gets of a resource, and what of that its row may be sized to."""

from fallow_core.ledger.fleet.amounts import in_units, up_to_units
from fallow_core.ledger.fleet.arrays import Record, compiled
from fallow_core.ledger.fleet.lanes import LANES
from fallow_core.ledger.fleet.max_min import level, whole_units


@compiled
def fair_shares(side: Record) -> None:
    """The weighted max-min of batch over demand."""
    for i in range(LANES):
        for s in range(len(side.share)):
            side.lower[s, i] = side.floor[s, i]
            side.upper[s, i] = min(side.demand[s, i], side.limit[s, i])
    _level_batch(side)
    for s in range(len(side.share)):
        for i in range(LANES):
            side.fair[s, i] = side.share[s, i]


@compiled
def shares(side: Record) -> None:
    """The targets of the accounts, and whether some drain for another one."""
    for i in range(LANES):
        all_wanted = 0
        for s in range(len(side.share)):
            lower = side.lower[s, i] = max(side.allocated[s, i], side.floor[s, i])
            upper = side.upper[s, i] = min(side.demand[s, i], side.limit[s, i])
            all_wanted += max(lower, min(upper, side.batch[i] + 1))
        for s in range(len(side.share)):
            lower, upper, fits = side.lower[s, i], side.upper[s, i], all_wanted <= side.batch[i]
            side.lower[s, i] = max(lower, upper) if fits else lower
            side.upper[s, i] = side.limit[s, i] if fits else upper
        _fall(side, i)
    _targets(side)
    _drain(side)


@compiled
def _drain(side: Record) -> None:
    """While one account waits, those above their fair shares go down. In an overdraft nobody waits."""
    for i in range(LANES):
        waits = False
        for s in range(len(side.share)):
            waits |= side.fair[s, i] - side.target[s, i] >= side.unit[s, i]
        side.drains[i] = 0
        for s in range(len(side.share)):
            allocated, fair, unit = side.allocated[s, i], side.fair[s, i], side.unit[s, i]
            drains = waits & (side.unallocated[i] >= 0) & (allocated > fair)
            drained = in_units(max(fair, allocated - max(side.drain_step[i], unit)), unit)
            side.target[s, i] = drained if drains else side.target[s, i]
            side.drains[i] |= drains


@compiled
def promised_to_all(side: Record) -> None:
    """The targets where all that is free is promised to each account. Nobody drains."""
    for i in range(LANES):
        _fall(side, i)
    _targets(side)
    for i in range(LANES):
        free = side.unallocated[i]
        for s in range(len(side.share)):
            allocated, unit = side.allocated[s, i], side.unit[s, i]
            promised = max(allocated, in_units(min(allocated + free, side.limit[s, i]), unit))
            side.target[s, i] = promised if free >= 0 else side.target[s, i]
        side.drains[i] = 0


@compiled
def _fall(side: Record, i: int) -> None:
    """In an overdraft accounts above fair fall, and nobody adds."""
    for s in range(len(side.share)):
        own, overdraft = side.allocated[s, i], side.unallocated[i] < 0
        side.lower[s, i] = min(own, side.fair[s, i]) if overdraft else side.lower[s, i]
        side.upper[s, i] = own if overdraft else side.upper[s, i]


@compiled
def _targets(side: Record) -> None:
    """Targets in whole units, within bounds."""
    _level_batch(side)
    whole_units(side)
    for s in range(len(side.share)):
        for i in range(LANES):
            side.target[s, i] = side.share[s, i]


@compiled
def _level_batch(side: Record) -> None:
    """Batch shared out by the weights of accounts, within bounds."""
    for i in range(LANES):
        side.total[i] = side.batch[i]
        for s in range(len(side.share)):
            side.free[s, i] = side.weight[s, i]
    level(side)


@compiled
def of_rows(side: Record) -> None:
    """`sharing.divided` for accounts of one row, and what rows may have of that."""
    for i in range(LANES):
        for s in range(len(side.share)):
            allocated, target, unit = side.allocated[s, i], side.target[s, i], side.unit[s, i]
            most = max(side.most[s, i], allocated)
            amount = max(target, side.floor[s, i]) if target < allocated else min(most, target)
            rounded = in_units(amount, unit)
            own = rounded + unit if (rounded < amount) & (rounded + unit <= target) else rounded
            side.target[s, i] = side.newest[s, i] if side.unmeasured[i] else own
            side.wanted[s, i] = min(side.target[s, i], side.most[s, i])


@compiled
def grown(side: Record, shared: bool) -> None:
    """The sizes: `sharing.grown`. Where capacity is `shared` growth is cut on nodes where something is not known."""
    for i in range(LANES):
        free = 0 if side.unknown[i] else side.batch[i]
        for s in range(len(side.share)):
            kept = up_to_units(max(side.belief[s, i], side.floor[s, i]), side.unit[s, i])
            free -= kept
            growth = side.growth[s, i] = max(side.wanted[s, i] - kept, 0)
            side.free[s, i], side.lower[s, i], side.upper[s, i] = side.is_row[s, i], 0, growth
        side.total[i] = free
    level(side)
    whole_units(side)
    for i in range(LANES):
        cut = (side.unknown[i] > 0) | (not shared)
        for s in range(len(side.share)):
            wanted, growth = side.wanted[s, i], side.growth[s, i]
            within = wanted - growth + min(growth, side.share[s, i])
            allowed = min(wanted, side.newest[s, i]) if side.total[i] < 0 else within
            side.size[s, i] = max(allowed if cut else wanted, side.floor[s, i])
