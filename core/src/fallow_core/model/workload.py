"""Pods and host applications of a node, as far as the ledger has to know them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fallow_hookspecs import ResourceName, Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One pod, or one application outside pods, known by a `name` that no other one ever had (of a pod: its uid).

    `request` is in native amounts, whatever resource names it is written with, with sidecars and overhead. `used` is
    measured, and no part of the node's `batch_used`; a resource that was not measured is missing. `age_seconds`: since
    it started. `batch`: it runs on what is lent, so it is no online work; else it is. `pinned`: it has CPUs of its own.
    `ended`: it is over, and only what it used while the node was measured counts. `zones`: the NUMA zones that it is
    bound to; empty where it may use all.
    """

    name: str
    request: Resources
    used: Mapping[ResourceName, int] = field(default_factory=dict)
    age_seconds: float
    batch: bool = False
    pinned: bool = False
    ended: bool = False
    zones: tuple[str, ...] = ()
