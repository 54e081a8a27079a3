"""What was measured on a node, and when."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fallow_hookspecs import ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """One resource of a NUMA zone as measured, in the same sense as in `Usage`."""

    name: str
    capacity: int
    used: int
    batch_used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One resource of a node as measured: milli-cores or bytes.

    `used` is all use, batch included, without page cache that can be dropped. `batch_used` is the part of processes
    below a framework's daemons. `allocatable` is what a kubelet gives to pods, before anybody amplified it; `None`
    where there is none. `zones` are the NUMA zones where they are told apart. `terms` are the raw readings, for
    explanation only. `measured_at`: monotonic seconds.
    """

    measured_at: float
    capacity: int
    used: int
    batch_used: int
    allocatable: int | None = None
    zones: tuple[Zone, ...] = ()
    terms: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSample:
    """The newest good reading of each resource; `None` where there never was one."""

    cpu: Usage | None = None
    memory: Usage | None = None

    def of(self, resource: ResourceName) -> Usage | None:
        """The reading of one resource."""
        return self.cpu if resource == "cpu" else self.memory
