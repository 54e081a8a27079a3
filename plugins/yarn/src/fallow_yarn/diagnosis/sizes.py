"""The sizes of this host's NodeManagers against the smallest allocation and against what the host has. Pure."""

from collections.abc import Collection, Mapping
from typing import Final

from fallow_hookspecs import Finding
from fallow_yarn.diagnosis.common import MANY_NODES
from fallow_yarn.diagnosis.daemon_conf import DaemonConf
from fallow_yarn.diagnosis.probes import HostSize
from fallow_yarn.model.size import MIB_BYTES, Size, largest_of, size_words
from fallow_yarn.rm.nodes import IN_SCHEDULER
from fallow_yarn.rm.readings import NodeReading

MEMORY: Final = "yarn.nodemanager.resource.memory-mb"
VCORES: Final = "yarn.nodemanager.resource.cpu-vcores"
DETECT: Final = "yarn.nodemanager.resource.detect-hardware-capabilities"
UNSET: Final = Size(8192, 8)
"""What Hadoop takes where both are -1 and it does not detect."""

FAR_ABOVE: Final = 1.25


def lendable(host: HostSize, used: Size, vcore_milli: int) -> Size:
    """The most that could be lent now: all CPUs; the memory that is available, and what batch may be using of it."""
    memory_bytes = min(host.memory_bytes, host.available_bytes + used.memory_mb * MIB_BYTES)
    return Size(memory_bytes // MIB_BYTES, host.cpus * 1000 // vcore_milli)


def current(reading: NodeReading, floor: Size) -> Finding:
    """Whether a NodeManager would be taken back with the size it has now."""
    size = reading.node.capability
    subject = f"size of {reading.node.node_id}"
    if size.memory_mb >= floor.memory_mb and size.vcores >= floor.vcores:
        return Finding(subject=subject, ok=True, detail=size_words(size))
    return Finding(
        subject=subject,
        ok=False,
        detail=f"{size_words(size)}: below the minimum allocation, so it exits when the ResourceManager restarts",
        advice=f"set {MEMORY} and cpu-vcores in its yarn-site.xml to {size_words(floor)}: it comes back with that, and"
        " grows from there",
    )


def room(node: str, count: int, floor: Size, lend: Size) -> Finding:
    """Whether anything can be lent above the smallest sizes that the NodeManagers of a host can have."""
    subject = f"room on {node}"
    least = Size(floor.memory_mb * count, floor.vcores * count)
    if lend.memory_mb > least.memory_mb and lend.vcores > least.vcores:
        return Finding(subject=subject, ok=True, detail=f"at most {size_words(lend)} could be lent now")
    each = (
        f"{count} NodeManagers have at least {size_words(floor)} each"
        if count > 1
        else f"it has at least {size_words(floor)}"
    )
    return Finding(
        subject=subject,
        ok=False,
        detail=f"nothing above the minimum allocation: {each}, and at most {size_words(lend)} could be lent now",
        advice="lower yarn.scheduler.minimum-allocation-mb or -vcores at the ResourceManager; if it is the vcores, let"
        " one stand for less: spec.vcoreMilli (the same on all nodes of the cluster)",
    )


def configured(node_id: str, settings: DaemonConf, floor: Size, lend: Size) -> Finding:
    """Whether a NodeManager registers with more than could be lent: until Fallow speaks, all of it is given out."""
    subject = f"configured size of {node_id}"
    size = _configured(settings)
    if size is None:
        return Finding(subject=subject, ok=None, detail=f"{MEMORY} and cpu-vcores are not shown, or are detected by it")
    words = size_words(size)
    if size.memory_mb > FAR_ABOVE * lend.memory_mb or size.vcores > FAR_ABOVE * lend.vcores:
        return Finding(
            subject=subject,
            ok=False,
            detail=f"{words}, far above the {size_words(lend)} that could be lent now: after each start of it the"
            " scheduler gives out all of that until Fallow sends a size, or for good if Fallow does not run",
            advice=f"set {MEMORY} and cpu-vcores in its yarn-site.xml to little, such as the minimum allocation,"
            f" {size_words(floor)}: Fallow raises it",
        )
    above = size.memory_mb > floor.memory_mb or size.vcores > floor.vcores
    more = f"; above the minimum allocation, {size_words(floor)}: that much is given out at its start" if above else ""
    return Finding(subject=subject, ok=True, detail=words + more)


def largest(
    readings: Mapping[str, NodeReading], own: Collection[str], asked: Collection[Size] | None
) -> Finding | None:
    """Which node is the cluster's largest; nothing in a cluster without nodes. `asked`: what is waited for, if known.

    The largest container that can be asked for is no larger than the largest node, and a change of a node that has
    the cluster's largest memory or vcores has the scheduler walk over all nodes.
    """
    sizes = {node_id: entry.node.capability for node_id, entry in readings.items() if entry.node.state in IN_SCHEDULER}
    if not sizes:
        return None
    subject = "largest node"
    top = largest_of(sizes.values())
    tied = [n for n, size in sizes.items() if size.memory_mb == top.memory_mb or size.vcores == top.vcores]
    advice = "keep one NodeManager that is not lent larger than all others, in memory and in vcores"
    if len(sizes) >= MANY_NODES and 2 * len(tied) > len(sizes):
        detail = f"{len(tied)} of {len(sizes)} nodes share the largest size: each change of one has all nodes looked at"
        return Finding(subject=subject, ok=False, detail=detail, advice=advice)
    steady = sorted(node_id for node_id in tied if node_id not in own and sizes[node_id] == top)
    if steady:
        detail = f"{steady[0]} with {size_words(top)}, not lent from here: what can be asked for stays as large"
        return Finding(subject=subject, ok=True, detail=detail)
    wait = "what they wait for cannot be told" if asked is None else "none waits now"
    if asked:
        most = largest_of(asked)
        wait = f"they wait for up to {size_words(most)} now"
    detail = (
        f"{size_words(top)}, on a node lent from here: as it shrinks, so does the largest container that can be asked"
        f" for, and applications that ask for more fail; {wait}"
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
