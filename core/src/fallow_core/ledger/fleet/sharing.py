"""`ledger.sharing` for many nodes at once: what each account gets."""

import numpy as np

from fallow_core.ledger.fleet.arrays import NONE, AnyArray, Bools, Floats, in_units
from fallow_core.ledger.fleet.level import levels, picked, whole_units
from fallow_core.ledger.fleet.together import Claims


def targets(
    claims: Claims, demand: Floats, fair: Floats, drain_step: Floats, guess: AnyArray, *, shared: bool
) -> tuple[Floats, Bools]:
    """The targets by slot, resource and node, and on which resources and nodes accounts drain for one that waits."""
    free = claims.batch - claims.allocated.sum(0)
    if shared:
        found, draining = _promised_to_all(claims, free), np.zeros(free.shape, np.bool_)
    else:
        found, draining = _exclusive(claims, demand, fair, free >= 0, drain_step, guess)
    over = np.flatnonzero(free < 0)
    if over.size:
        found.reshape(len(found), -1)[:, over] = _fallen(claims, fair, over)
    return found, draining


def _fallen(claims: Claims, fair: Floats, over: AnyArray) -> Floats:
    """In an overdraft accounts above fair fall, and nobody adds."""
    batch = claims.batch.reshape(-1).take(over)
    weight, allocated, least, unit = (
        picked(a, fair, over) for a in (claims.weight, claims.allocated, fair, claims.unit)
    )
    wanted = levels(batch, weight, np.minimum(allocated, least), allocated, np.zeros(over.size))
    return whole_units(batch, wanted, unit)


def _promised_to_all(claims: Claims, free: Floats) -> Floats:
    """All that is free is promised to each account."""
    most = in_units(np.maximum(np.minimum(claims.allocated + free, claims.limit), 0), claims.unit)
    found: Floats = np.maximum(claims.allocated, most)
    return found


def _exclusive(
    claims: Claims, demand: Floats, fair: Floats, fits: Bools, drain_step: Floats, guess: AnyArray
) -> tuple[Floats, Bools]:
    """Where allocations fit; and where accounts drain for one that waits."""
    lower = np.maximum(claims.allocated, claims.floor)
    most = np.minimum(demand, claims.limit)
    np.maximum(most, lower, out=most)
    enough = most.sum(0) <= claims.batch
    np.maximum(lower, most * enough, out=lower)
    most += NONE * enough
    np.minimum(most, claims.limit, out=most)
    found = whole_units(claims.batch, levels(claims.batch, claims.weight, lower, most, guess), claims.unit)
    waits = (fair - found >= claims.unit).any(0) & fits
    draining, some = np.zeros(waits.shape, np.bool_), np.flatnonzero(waits)
    if some.size:
        allocated, own, unit, step = (picked(a, fair, some) for a in (claims.allocated, fair, claims.unit, drain_step))
        drains = allocated > own
        drained = in_units(np.maximum(own, allocated - np.maximum(step, unit)), unit)
        out = found.reshape(len(found), -1)
        out[:, some] = np.where(drains, drained, out.take(some, 1))
        draining.reshape(-1)[some] = drains.any(0)
    return found, draining
