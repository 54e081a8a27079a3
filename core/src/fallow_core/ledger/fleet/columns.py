"""How some thousand nodes are laid out.

The last axis is always the node, so that one step of arithmetic runs over neighbours in memory. Before it comes the
resource (in the order of `RESOURCE_NAMES`) where there are two, and first the slot: a node's rows lie in its first
slots, sorted by key, each an account of its own. A slot without a row has the term `ABSENT` and zeros.
"""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from fallow_core.ledger.fleet.arrays import AnyArray, Bools, Floats

RESOURCES = 2
ABSENT = 0


@dataclass(slots=True)
class NodeColumns:
    """What is known of the nodes themselves; times are NaN where there is none.

    `terms`: which policy, by `NodeTerms`. `daemons`: rows that are not gone. By resource: `outside`: used by neither
    batch nor pods and host applications; `kept`: what a kubelet does not give to pods; `online`: what pods and host
    applications count with. `zone_*`: the same by NUMA zone and resource; there may be none.
    """

    terms: AnyArray
    daemons: AnyArray
    unsure: Bools
    awaited: Bools
    watched_since: Floats
    workloads_at: Floats
    measured_at: Floats
    capacity: Floats
    outside: Floats
    kept: Floats
    online: Floats
    zones: AnyArray
    zone_capacity: Floats
    zone_outside: Floats
    zone_online: Floats

    @classmethod
    def empty(cls, nodes: int) -> Self:
        """Nodes that were never measured."""
        none = np.full((RESOURCES, nodes), np.nan)
        zero = np.zeros((RESOURCES, nodes))
        no_zones = np.zeros((0, RESOURCES, nodes))
        return cls(
            terms=np.zeros(nodes, np.int32),
            daemons=np.zeros(nodes, np.int32),
            unsure=np.zeros(nodes, np.bool_),
            awaited=np.zeros(nodes, np.bool_),
            watched_since=none[0].copy(),
            workloads_at=none[0].copy(),
            measured_at=none,
            capacity=zero,
            outside=zero.copy(),
            kept=zero.copy(),
            online=zero.copy(),
            zones=np.zeros((RESOURCES, nodes), np.int8),
            zone_capacity=no_zones,
            zone_outside=no_zones.copy(),
            zone_online=no_zones.copy(),
        )

    def with_zones(self, count: int) -> None:
        """Make room for so many zones a node."""
        for name in ("zone_capacity", "zone_outside", "zone_online"):
            old: Floats = getattr(self, name)
            more = np.zeros((count - len(old), *old.shape[1:]))
            setattr(self, name, np.concatenate([old, more]))


@dataclass(slots=True)
class RowColumns:
    """What is known of the rows. `terms`: what rows have in common, by `AccountTerms`.

    `in_force` is 0 where it is not known (`known`). `newest`, `belief`: as in `RowEntry`. `maximum`: the largest size
    that the framework can use, in whole units. `refreshed_at` and `refused_at`: NaN where never. `astray`: the newest
    size is to be sent again, and is not the one in force.
    """

    terms: AnyArray
    running: Bools
    known: Bools
    astray: Bools
    measured_at: Floats
    refreshed_at: Floats
    refused_at: Floats
    allocated: Floats
    in_force: Floats
    newest: Floats
    belief: Floats
    floor: Floats
    maximum: Floats

    @classmethod
    def empty(cls, slots: int, nodes: int) -> Self:
        """Slots without rows."""
        one, two = (slots, nodes), (slots, RESOURCES, nodes)
        amounts = {field.name: np.zeros(two) for field in fields(cls) if field.name not in _ONE_A_ROW}
        return cls(
            terms=np.full(one, ABSENT, np.int32),
            running=np.zeros(one, np.bool_),
            known=np.zeros(one, np.bool_),
            astray=np.zeros(one, np.bool_),
            measured_at=np.zeros(one),
            refreshed_at=np.full(one, np.nan),
            refused_at=np.full(one, np.nan),
            **amounts,
        )

    def clear(self, slot: int, at: int) -> None:
        """Make a slot one without a row."""
        for field in fields(self):
            getattr(self, field.name)[slot, ..., at] = 0


_ONE_A_ROW = {"terms", "running", "known", "astray", "measured_at", "refreshed_at", "refused_at"}


def bytes_of(columns: NodeColumns | RowColumns) -> int:
    """How much memory the arrays take."""
    return sum(getattr(columns, field.name).nbytes for field in fields(columns))
