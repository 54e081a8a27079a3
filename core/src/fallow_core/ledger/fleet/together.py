"""`ledger.together` for many nodes at once: what accounts can use of one resource, given the other one."""

from dataclasses import dataclass

import numpy as np

from fallow_core.ledger.fleet.arrays import NONE, Bools, Ints, product_quotient, product_sign
from fallow_core.ledger.fleet.level import levels
from fallow_core.ledger.together import ROUNDS

MANY = 0.7
"""From this share on it is quicker to compute all than to pick out those that are not done."""


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

    def fair_again(self, demand: Ints, fair: Ints, problems: Ints) -> None:
        """The same for some resources and nodes, by number, in place."""
        slots = len(demand)
        weight, floor, limit, some = (
            a.reshape(slots, -1).take(problems, 1) for a in (self.weight, self.floor, self.limit, demand)
        )
        found = levels(self.batch.reshape(-1).take(problems), weight, floor, np.minimum(some, limit))
        fair.reshape(slots, -1)[:, problems] = found


def cut(claims: Claims) -> tuple[Ints, Ints]:
    """The demands, cut to what accounts can use, and the fair shares with them.
    A node is done when no demand changed that is, or was, a bound of a fair share: the next round would be the same.
    """
    demand, fair = claims.wants, claims.fair(claims.wants)
    nodes, of, some_demand, some_fair = np.arange(demand.shape[-1]), claims, demand, fair
    for _ in range(ROUNDS):
        usable = _usable(of, some_demand, some_fair)
        again = ((usable != some_demand) & (np.minimum(usable, some_demand) <= some_fair)).any(0)
        if of is claims:
            demand = usable
        else:
            demand[..., nodes] = usable
        changed = np.flatnonzero(again.any(0))
        if not changed.size:
            break
        some_demand = usable
        if changed.size < MANY * again.shape[-1]:
            nodes, of, again = nodes.take(changed), of.of(changed), again.take(changed, -1)
            some_demand, some_fair = usable.take(changed, -1), some_fair.take(changed, -1)
        of.fair_again(some_demand, some_fair, np.flatnonzero(again))
        if of is not claims:
            fair[..., nodes] = some_fair
    return demand, fair


def _usable(of: Claims, demand: Ints, fair: Ints) -> Ints:
    """The demands of a round, from the fair shares with those of the round before."""
    enough = (demand != NONE) & (demand != of.wants) & (fair >= demand)
    counts: Bools = ~enough & (of.next_up > 0)
    more = np.maximum(fair - of.allocated, 0)
    (cpu, memory), (next_cpu, next_memory) = (more[:, 0], more[:, 1]), (of.next_up[:, 0], of.next_up[:, 1])
    sign = product_sign(cpu, next_memory, memory, next_cpu)
    by_cpu = counts[:, 0] & ((sign < 0) | ~counts[:, 1])
    by_memory = counts[:, 1] & ((sign > 0) | ~counts[:, 0])
    whole = np.where(by_cpu, next_memory, next_cpu)
    of_first = np.maximum(np.where(by_cpu, next_cpu, next_memory), 1)
    usable = _part(whole, np.where(by_cpu, cpu, memory), of_first)
    found: Ints = of.allocated + of.spare
    found[:, 1] += np.where(by_cpu, usable, NONE)
    found[:, 0] += np.where(by_memory, usable, NONE)
    np.minimum(found, of.wants, out=found)
    return found


def _part(whole: Ints, part: Ints, of: Ints) -> Ints:
    """whole × part / of, rounded up; no more than a bound above anything there is."""
    huge = whole.astype(np.float64) * part > of.astype(np.float64) * _HUGE
    found = product_quotient(np.where(huge, 0, whole), part, of)
    found += whole * part - found * of > 0
    return np.where(huge, _HUGE, found)


_HUGE = 1 << 49
