"""Pods and host applications of a node, as the ledger needs them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fallow_hookspecs import ResourceName, Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One pod, or one application outside pods. `name` is unique for all time (the uid of a pod).

    `request`: native amounts, whatever its resource names are, with sidecars and overhead. `used`: the measured use,
    not part of the node's `batch_used`; a resource that was not measured is missing. `age_seconds`: since its start.
    `batch`: it runs on lent capacity; otherwise it is online work. `pinned`: it has exclusive CPUs. `ended`: only its
    use while the node was measured counts. `zones`: the NUMA zones to which it is bound; empty: it may use all.
    """

    name: str
    request: Resources
    used: Mapping[ResourceName, int] = field(default_factory=dict)
    age_seconds: float
    batch: bool = False
    pinned: bool = False
    ended: bool = False
    zones: tuple[str, ...] = ()
