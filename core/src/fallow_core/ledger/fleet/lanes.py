"""What is computed of some nodes side by side, and the rules for that."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fallow_core.ledger.fleet.arrays import Records
from fallow_core.ledger.fleet.columns import RESOURCES

LANES = 32
"""So many nodes are computed side by side: of a loop over them the compiler makes instructions that take eight at once.

It does so where each step of the loop does the same, whatever the amounts are: both sides of a choice are computed, and
conditions are joined by `&` and `|`.
"""

OF_NODE = ("batch", "unallocated", "drain_step", "overcommitted", "unmeasured", "unknown", "drains", "total", "left")
"""As in `ResourceLedger`. `unallocated`: what of batch is, below 0 in an overdraft. `unknown`: somebody may have a size
that is not known. `drains`: accounts drain for one that waits. The last two are for steps in between.
"""

OF_ROWS = (
    *("is_row", "allocated", "newest", "belief", "floor", "most", "unit", "weight", "limit"),
    *("wants", "next_up", "spare", "demand", "fair", "target", "wanted", "size", "held", "lowest", "decided", "why"),
    *("lower", "upper", "free", "share", "growth", "ahead", "further", "overdrawn", "falls", "leaves"),
)
"""As in `RowEntry`, `AccountEntry` and `Need`; `NONE` where there is no bound. `is_row`: 0 in a slot without one, where
weight, sizes and limit are 0 as well. `decided`: the size to send, and `why`, 0 where it is not due. The others are for
steps in between.
"""


class Rules(NamedTuple):
    """What of a `PublishingPolicy` decides about sizes, and the time."""

    now: float
    shared: bool
    drain_step_percent: int
    degrade_after_seconds: float
    withdraw_after_seconds: float


def room(slots: int) -> Records:
    """Room for what is computed of `LANES` nodes: a record for each resource, each value by slot and lane."""
    found = np.zeros(RESOURCES, _side(slots))
    found["unit"] = 1
    return found


@cache
def _side(slots: int) -> np.dtype[Any]:
    of_rows = [(name, np.int64, (slots, LANES)) for name in OF_ROWS]
    return np.dtype([*((name, np.int64, LANES) for name in OF_NODE), *of_rows, ("part", np.float64, (slots, LANES))])
