"""What is computed of one node, and the rules for that."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fallow_core.ledger.fleet.arrays import Record
from fallow_core.ledger.fleet.columns import RESOURCES

OF_NODE = ("batch", "drain_step", "overcommitted", "drains")
"""As in `ResourceLedger`. `drains`: accounts drain for one that waits."""

OF_ROWS = (
    *("most", "unit", "weight", "limit", "wants", "next_up", "spare", "demand", "fair", "target", "wanted", "size"),
    *("held", "decided", "why", "lower", "upper", "share", "equal"),
)
"""As in `RowEntry`, `AccountEntry` and `Need`; `NONE` where there is no bound. `decided`: the size to send, and `why`,
0 where it is not due. The last four are for steps in between.
"""


class Rules(NamedTuple):
    """What of a `PublishingPolicy` decides about sizes, and the time."""

    now: float
    shared: bool
    drain_step_percent: int
    degrade_after_seconds: float
    withdraw_after_seconds: float


def room(slots: int) -> Record:
    """Room for what is computed of a node, by resource, and slot where there are several."""
    return np.zeros(1, _computed(slots))[0]


@cache
def _computed(slots: int) -> np.dtype[Any]:
    of_node = [(name, np.int64, RESOURCES) for name in OF_NODE]
    return np.dtype([*of_node, *((name, np.int64, (RESOURCES, slots)) for name in OF_ROWS)])
