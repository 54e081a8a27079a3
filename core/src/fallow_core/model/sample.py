"""Samples: the measured use of a node."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fallow_hookspecs import ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """One measured resource of a NUMA zone, with the fields of `Usage`."""

    name: str
    capacity: int
    used: int
    batch_used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One measured resource of a node, in milli-cores or bytes.

    `used`: all use including batch, without droppable page cache. `batch_used`: the use of processes below the daemons
    of frameworks. `allocatable`: what a kubelet gives to pods, before any amplification; `None` without a kubelet.
    `unusable`: what is neither in use nor anybody's to use, by the reason: it is not lent.
    `zones`: the NUMA zones, if they are measured. `terms`: the raw readings, for explanation only. `measured_at`:
    monotonic seconds.
    """

    measured_at: float
    capacity: int
    used: int
    batch_used: int
    allocatable: int | None = None
    unusable: Mapping[str, int] = field(default_factory=dict)
    zones: tuple[Zone, ...] = ()
    terms: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSample:
    """The newest valid reading of each resource; `None`: there was none."""

    cpu: Usage | None = None
    memory: Usage | None = None

    def of(self, resource: ResourceName) -> Usage | None:
        """The reading of one resource."""
        return self.cpu if resource == "cpu" else self.memory
