"""The largest container that applications can request, and the largest node outside of Fallow's. Pure."""

from collections.abc import Collection, Iterable, Mapping

from fallow_hookspecs import Resources
from fallow_yarn.model.size import Size, largest_of, resources, smallest_of
from fallow_yarn.rm.readings import Facts, NodeReading


def largest_container(readings: Iterable[NodeReading], facts: Facts) -> Size | None:
    """The largest container that can be requested: within the largest node and the configured maximum, in both
    resources.

    `None` without a node; then the configured maximum is the limit.
    """
    sizes = [r.in_force for r in readings if r.in_force is not None]
    if not sizes:
        return None
    found = largest_of(sizes)
    configured = facts.setup.maximum if facts.setup is not None else None
    return found if configured is None else smallest_of([found, configured])


def largest_elsewhere(readings: Mapping[str, NodeReading], own: Collection[str], vcore_milli: int) -> Resources | None:
    """The largest node, by memory, that is in the scheduler and is not one of `own`."""
    sizes = [reading.in_force for node_id, reading in readings.items() if node_id not in own]
    found = max((size for size in sizes if size is not None), default=None)
    return None if found is None else resources(found, vcore_milli)
