"""Compares the sizes of this host's NodeManagers with the minimum allocation and with the host. Pure."""

from collections.abc import Collection, Mapping
from typing import Final

from fallow_hookspecs import Finding
from fallow_yarn.diagnosis.common import MANY_NODES
from fallow_yarn.diagnosis.daemon_conf import DaemonConf
from fallow_yarn.model.size import Size, largest_of, size_words
from fallow_yarn.rm.nodes import IN_SCHEDULER
from fallow_yarn.rm.readings import NodeReading

MEMORY: Final = "yarn.nodemanager.resource.memory-mb"
VCORES: Final = "yarn.nodemanager.resource.cpu-vcores"
DETECT: Final = "yarn.nodemanager.resource.detect-hardware-capabilities"
UNSET: Final = Size(8192, 8)
"""Hadoop's size if both settings are -1 and detection is off."""

FAR_ABOVE: Final = 1.25


def current(reading: NodeReading, floor: Size) -> Finding:
    """Whether a NodeManager could register again with its current size."""
    size = reading.node.capability
    subject = f"size of {reading.node.node_id}"
    if size.memory_mb >= floor.memory_mb and size.vcores >= floor.vcores:
        return Finding(subject=subject, ok=True, detail=size_words(size))
    return Finding(
        subject=subject,
        ok=False,
        detail=f"{size_words(size)}: below the minimum allocation, so it exits when the ResourceManager restarts",
        advice=f"set {MEMORY} and cpu-vcores in its yarn-site.xml to {size_words(floor)}: it then starts with that, and"
        " grows from there",
    )


def room(node: str, count: int, floor: Size, lend: Size) -> Finding:
    """Whether the host can lend more than the minimum allocation of each of its NodeManagers."""
    subject = f"room on {node}"
    least = Size(floor.memory_mb * count, floor.vcores * count)
    if lend.memory_mb > least.memory_mb and lend.vcores > least.vcores:
        return Finding(subject=subject, ok=True, detail=f"{size_words(lend)} can be lent now, to all clusters together")
    each = (
        f"{count} NodeManagers have at least {size_words(floor)} each"
        if count > 1
        else f"it has at least {size_words(floor)}"
    )
    return Finding(
        subject=subject,
        ok=None,
        detail=f"nothing above the minimum allocation: {each}, and {size_words(lend)} can be lent now",
        advice="if it is the same while the host is idle, raise the watermark or the cap of the host, or lower"
        " yarn.scheduler.minimum-allocation-mb or -vcores at the ResourceManager; if the vcores are the limit,"
        " let a vcore be fewer milli-cores: spec.vcoreMilli (the same on all nodes of the cluster)",
    )


def configured(node_id: str, settings: DaemonConf, floor: Size, lend: Size) -> Finding:
    """Whether a NodeManager registers with more than can be lent, which counts until Fallow sends a size."""
    subject = f"configured size of {node_id}"
    size = _configured(settings)
    if size is None:
        return Finding(
            subject=subject, ok=None, detail=f"{MEMORY} and cpu-vcores are not shown, or detected by the NodeManager"
        )
    words = size_words(size)
    if size.memory_mb > FAR_ABOVE * lend.memory_mb or size.vcores > FAR_ABOVE * lend.vcores:
        return Finding(
            subject=subject,
            ok=False,
            detail=f"{words}, far above the {size_words(lend)} that can be lent now: after each start of it the"
            " scheduler allocates all of that until Fallow sends a size",
            advice=f"set {MEMORY} and cpu-vcores in its yarn-site.xml to a small size, such as the minimum allocation,"
            f" {size_words(floor)}: Fallow raises it",
        )
    above = size.memory_mb > floor.memory_mb or size.vcores > floor.vcores
    more = f"; above the minimum allocation, {size_words(floor)}: that much is allocated at its start" if above else ""
    return Finding(subject=subject, ok=True, detail=words + more)


def largest(
    readings: Mapping[str, NodeReading], own: Collection[str], asked: Collection[Size] | None
) -> Finding | None:
    """The cluster's largest node; None in a cluster without nodes. `asked`: the pending requests, if known.

    The largest node limits the containers that can be requested. A change of a node with the cluster's largest memory
    or vcores makes the scheduler walk over all nodes.
    """
    sizes = {node_id: entry.node.capability for node_id, entry in readings.items() if entry.node.state in IN_SCHEDULER}
    if not sizes:
        return None
    subject = "largest node"
    top = largest_of(sizes.values())
    tied = [n for n, size in sizes.items() if size.memory_mb == top.memory_mb or size.vcores == top.vcores]
    advice = "keep one NodeManager that is not lent larger than all others, in memory and in vcores"
    if len(sizes) >= MANY_NODES and 2 * len(tied) > len(sizes):
        detail = (
            f"{len(tied)} of {len(sizes)} nodes share the largest size: a change of one makes the scheduler check all"
        )
        return Finding(subject=subject, ok=False, detail=detail, advice=advice)
    steady = sorted(node_id for node_id in tied if node_id not in own and sizes[node_id] == top)
    if steady:
        detail = (
            f"{steady[0]} with {size_words(top)}, not lent from here: the largest possible container stays the same"
        )
        return Finding(subject=subject, ok=True, detail=detail)
    wait = "the pending requests are unknown" if asked is None else "no request is pending now"
    if asked:
        most = largest_of(asked)
        wait = f"requests of up to {size_words(most)} are pending now"
    detail = (
        f"{size_words(top)}, on a node lent from here: as it shrinks, so does the largest container that can be"
        f" requested, and applications that request more fail; {wait}"
    )
    return Finding(subject=subject, ok=None, detail=detail, advice=advice)


def _configured(settings: DaemonConf) -> Size | None:
    memory_mb, vcores = settings.number(MEMORY), settings.number(VCORES)
    if memory_mb is None or vcores is None:
        return None
    if min(memory_mb, vcores) <= 0 and settings.flag(DETECT):
        return None
    return Size(
        int(memory_mb) if memory_mb > 0 else UNSET.memory_mb,
        int(vcores) if vcores > 0 else UNSET.vcores,
    )
