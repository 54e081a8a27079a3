"""`ledger.together` for many nodes at once: what accounts can use of one resource, given the other one."""

from dataclasses import dataclass

import numpy as np

from fallow_core.ledger.fleet.arrays import NONE, AnyArray, Floats
from fallow_core.ledger.fleet.level import levels
from fallow_core.ledger.together import ROUNDED_OFF, ROUNDS

FAR = 2.0**100
"""A part that is more than any."""


@dataclass(slots=True)
class Claims:
    """What accounts bring to the sharing, by slot, resource and node, and `batch` by resource and node; see `Need`.

    What all nodes have in common may lack the last axis.
    """

    batch: Floats
    weight: Floats
    allocated: Floats
    wants: Floats
    limit: Floats
    floor: Floats
    unit: Floats
    next_up: Floats
    spare: Floats

    def fair(self, demand: Floats, guess: AnyArray) -> Floats:
        """The weighted max-min of batch over demand."""
        return levels(self.batch, self.weight, self.floor, np.minimum(demand, self.limit), guess)


def cut(claims: Claims, guesses: AnyArray) -> tuple[Floats, Floats]:
    """The demands, cut to what accounts can use, and the fair shares with them."""
    demand, fair = claims.wants, claims.fair(claims.wants, guesses[0])
    divisor = np.maximum(claims.next_up, 1)
    nothing = FAR * (claims.next_up == 0)
    most = claims.allocated + claims.spare
    for guess in guesses[1 : ROUNDS + 1]:
        part = fair - claims.allocated
        np.maximum(part, 0, out=part)
        part /= divisor
        part += nothing
        if demand is not claims.wants:
            enough = fair >= demand
            enough &= demand < claims.wants
            part += FAR * enough
        np.minimum(part, FAR, out=part)
        least = np.minimum(part[:, :1], part[:, 1:])
        usable = claims.next_up * least
        usable -= ROUNDED_OFF
        np.ceil(usable, out=usable)
        usable += most
        usable += NONE * (part <= least)
        demand = np.minimum(usable, claims.wants, out=usable)
        fair = claims.fair(demand, guess)
    return demand, fair
