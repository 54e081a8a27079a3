"""`ledger.together` for many nodes at once: what accounts can use of one resource, given the other one."""

from dataclasses import dataclass

import numpy as np

from fallow_core.ledger.fleet.arrays import NONE, Bools, Ints, product_quotient, product_sign
from fallow_core.ledger.fleet.level import levels
from fallow_core.ledger.together import ROUNDS


@dataclass(slots=True)
class Claims:
    """What accounts bring to the sharing, by slot, resource and node, and `batch` by resource and node; see `Need`."""

    batch: Ints
    weight: Ints
    allocated: Ints
    wants: Ints
    limit: Ints
    floor: Ints
    unit: Ints
    next_up: Ints
    spare: Ints

    def of(self, nodes: Ints) -> "Claims":
        """Those of some nodes."""
        return Claims(*(getattr(self, name).take(nodes, -1) for name in self.__slots__))

    def fair(self, demand: Ints) -> Ints:
        """The weighted max-min of batch over demand."""
        shape = demand.shape
        flat = (a.reshape(shape[0], -1) for a in (self.weight, self.floor, np.minimum(demand, self.limit)))
        return levels(self.batch.reshape(-1), *flat).reshape(shape)


def cut(claims: Claims) -> tuple[Ints, Ints]:
    """The demands, cut to what accounts can use, and the fair shares with them.
    A node is done when no demand changed that is, or was, a bound of a fair share: the next round would be the same.
    """
    demand, fair = claims.wants, claims.fair(claims.wants)
    nodes, of, some_demand, some_fair = np.arange(demand.shape[-1]), claims, demand, fair
    for _ in range(ROUNDS):
        usable = _usable(of, some_demand, some_fair)
        matters = (usable != some_demand) & (np.minimum(usable, some_demand) <= some_fair)
        if nodes.size == demand.shape[-1]:
            demand = usable
        else:
            demand[..., nodes] = usable
        changed = np.flatnonzero(matters.any((0, 1)))
        if not changed.size:
            break
        nodes, of, some_demand = nodes.take(changed), of.of(changed), usable.take(changed, -1)
        some_fair = of.fair(some_demand)
        fair[..., nodes] = some_fair
    return demand, fair


def _usable(of: Claims, demand: Ints, fair: Ints) -> Ints:
    """The demands of a round, from the fair shares with those of the round before."""
    enough = (demand != NONE) & (demand != of.wants) & (fair >= demand)
    counts: Bools = ~enough & (of.next_up > 0)
    more = np.maximum(fair - of.allocated, 0)
    sign = product_sign(more[:, 0], of.next_up[:, 1], more[:, 1], of.next_up[:, 0])
    found = of.wants.copy()
    for first, second, less in ((0, 1, sign < 0), (1, 0, sign > 0)):
        cuts = counts[:, first] & (less | ~counts[:, second])
        slots, nodes = np.nonzero(cuts)
        least, of_first = more[slots, first, nodes], of.next_up[slots, first, nodes]
        whole = of.next_up[slots, second, nodes]
        usable = _part(whole, least, of_first) + of.allocated[slots, second, nodes] + of.spare[slots, second, nodes]
        found[slots, second, nodes] = np.minimum(found[slots, second, nodes], usable)
    return found


def _part(whole: Ints, part: Ints, of: Ints) -> Ints:
    """whole × part / of, rounded up; no more than a bound above anything there is."""
    huge = whole.astype(np.float64) * part > of.astype(np.float64) * _HUGE
    found = product_quotient(np.where(huge, 0, whole), part, of)
    found += whole * part - found * of > 0
    return np.where(huge, _HUGE, found)


_HUGE = 1 << 49
