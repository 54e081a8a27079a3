"""`ledger.sharing` for many nodes at once: what each account gets."""

from dataclasses import dataclass

import numpy as np

from fallow_core.ledger.fleet.arrays import Bools, Ints, in_units
from fallow_core.ledger.fleet.level import levels, whole_units
from fallow_core.ledger.fleet.together import Claims


@dataclass(slots=True)
class Divided:
    """Claims with resources and nodes on one axis: by slot and problem, `batch` and `step` by problem."""

    batch: Ints
    step: Ints
    weight: Ints
    allocated: Ints
    fair: Ints
    most: Ints
    limit: Ints
    floor: Ints
    unit: Ints

    def of(self, some: Ints) -> "Divided":
        """Some of the problems."""
        return Divided(*(getattr(self, name).take(some, -1) for name in self.__slots__))


def targets(claims: Claims, demand: Ints, fair: Ints, drain_step: Ints, *, shared: bool) -> tuple[Ints, Bools]:
    """The targets by slot, resource and node, and on which resources and nodes accounts drain for one that waits."""
    shape = demand.shape
    most = np.minimum(demand, claims.limit)
    by_slot = (claims.weight, claims.allocated, fair, most, claims.limit, claims.floor, claims.unit)
    all_ = Divided(claims.batch.reshape(-1), drain_step.reshape(-1), *(a.reshape(shape[0], -1) for a in by_slot))
    over = all_.allocated.sum(0) > all_.batch
    found, draining = (_promised_to_all(all_), np.zeros(over.shape, np.bool_)) if shared else _exclusive(all_, over)
    some = np.flatnonzero(over)
    if some.size:
        found[:, some] = _fallen(all_.of(some))
    return found.reshape(shape), draining.reshape(shape[1:])


def _fallen(all_: Divided) -> Ints:
    """In an overdraft accounts above fair fall, and nobody adds."""
    wanted = levels(all_.batch, all_.weight, np.minimum(all_.allocated, all_.fair), all_.allocated)
    return whole_units(all_.batch, wanted, all_.unit)


def _promised_to_all(all_: Divided) -> Ints:
    """All that is free is promised to each account."""
    free = all_.batch - all_.allocated.sum(0)
    most = in_units(np.maximum(np.minimum(all_.allocated + free, all_.limit), 0), all_.unit)
    found: Ints = np.maximum(all_.allocated, most)
    return found


def _exclusive(all_: Divided, over: Bools) -> tuple[Ints, Bools]:
    """Where there is no overdraft; and where accounts drain for one that waits.

    Where nobody has allocated more than its fair share, the level with allocations as lower bounds is the fair one.
    """
    wanted = all_.fair.copy()
    some = np.flatnonzero((all_.allocated > all_.fair).any(0) & ~over)
    if some.size:
        of = all_.of(some)
        wanted[:, some] = levels(of.batch, of.weight, np.maximum(of.allocated, of.floor), of.most)
    found = whole_units(all_.batch, wanted, all_.unit)
    waits = ~over & (all_.fair - found >= all_.unit).any(0)
    draining, some = np.zeros(waits.shape, np.bool_), np.flatnonzero(waits)
    if some.size:
        of = all_.of(some)
        drained = np.maximum(of.fair, of.allocated - np.maximum(of.step, of.unit))
        drains = of.allocated > of.fair
        found[:, some] = np.where(drains, in_units(drained, of.unit), found.take(some, 1))
        draining[some] = drains.any(0)
    some = np.flatnonzero(~over & ~waits & (wanted.sum(0) < all_.batch))
    if some.size:
        of = all_.of(some)
        found[:, some] = whole_units(of.batch, levels(of.batch, of.weight, wanted.take(some, 1), of.limit), of.unit)
    return found, draining
