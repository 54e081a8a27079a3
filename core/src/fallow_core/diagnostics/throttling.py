"""What this host lets its user do to slow batch down: one finding for each way, of which none is needed by another."""

import os
from collections.abc import Iterator
from pathlib import Path

from fallow_core.errors import CgroupError
from fallow_core.model.control_file import ControlFile, file_name
from fallow_core.model.qos_policy import OnlinePressurePolicy, StrategyMode
from fallow_core.node import topology
from fallow_core.node.cgroups import cpu, memory
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import hierarchies
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.cgroups.pressure import NO_GROUP, memory_stall_percent
from fallow_hookspecs import Finding

MOUNT = "in a container mount the host's /sys/fs/cgroup, and set hostRoot to where its file system is"
ROOT = "run Fallow as root to have throttling enforced"


def findings(
    host_root: Path, pressure: OnlinePressurePolicy | None = None, files: Files | None = None
) -> Iterator[Finding]:
    """All findings; they change nothing. `pressure`: the configured groups of online services."""
    found, lacking = hierarchies(files or Files(), str(host_root))
    subjects = {"cpu": "CPU of batch", "memory": "memory of batch", "cpuset": "CPUs of batch"}
    for controller, subject in subjects.items():
        if controller in lacking:
            yield Finding(subject=subject, ok=None, detail=f"cannot be limited: {lacking[controller]}", advice=MOUNT)
        elif not os.access(found[controller].path("", "cgroup.procs"), os.W_OK):
            where = _where(found[controller])
            yield Finding(subject=subject, ok=None, detail=f"cannot be limited by this user: {where}", advice=ROOT)
        else:
            yield Finding(subject=subject, ok=True, detail=f"can be limited: {_where(found[controller])}")
    if "memory" in found:
        yield _reclaim(found["memory"])
    if "cpu" in found:
        yield _identity(found["cpu"])
        yield from _online_groups(found["cpu"], pressure or OnlinePressurePolicy())
    if "cpuset" in found:
        yield _topology(found["cpuset"])


def _where(hierarchy: Hierarchy) -> str:
    return f"cgroup v{hierarchy.version} at {hierarchy.mount}"


def _any_group(hierarchy: Hierarchy, name: str) -> str | None:
    """A group that has a file; the root of v2 has hardly any."""
    groups = ("", *hierarchy.children(""))
    return next((group for group in groups if hierarchy.has(group, name)), None)


def _reclaim(hierarchy: Hierarchy) -> Finding:
    subject = "memoryReclaim"
    group = _any_group(hierarchy, "memory.stat" if hierarchy.version == 1 else "memory.current")
    if group is None:
        return Finding(subject=subject, ok=None, detail="not known: no group has the memory controller yet")
    try:
        lowered = memory.lowered_limit(hierarchy, group)
    except (OSError, CgroupError) as error:
        return Finding(subject=subject, ok=None, detail=f"not available: {error}", advice="use a kernel that has it")
    way = "memory.reclaim" if lowered is None else f"{file_name(lowered, hierarchy.version)}, lowered for a moment"
    swap = memory.swap_free_bytes(hierarchy)
    if not swap:
        return Finding(subject=subject, ok=True, detail=f"by {way}; no free swap: file pages alone")
    return Finding(subject=subject, ok=True, detail=f"by {way}; {swap >> 20} MiB of free swap")


def _identity(hierarchy: Hierarchy) -> Finding:
    knobs = [
        knob for knob in cpu.BATCH_IDENTITY if _any_group(hierarchy, file_name(knob, hierarchy.version)) is not None
    ]
    if not knobs:
        return Finding(subject="identity", ok=None, detail=f"not available: {cpu.NO_IDENTITY}")
    return Finding(subject="identity", ok=True, detail=f"by {file_name(ControlFile(knobs[0]), hierarchy.version)}")


def _online_groups(hierarchy: Hierarchy, policy: OnlinePressurePolicy) -> Iterator[Finding]:
    """A finding for each group whose pressure cannot be read: its services are not protected."""
    if policy.mode is StrategyMode.OFF:
        return
    for group in policy.groups:
        try:
            why = NO_GROUP if memory_stall_percent(hierarchy, group) is None else ""
        except (OSError, CgroupError) as error:
            why = str(error)
        if why:
            detail = f"/{group}: its memory pressure cannot be read, so it is not protected: {why}"
            advice = "correct qos.onlinePressure.groups: paths from the root of the cgroup tree"
            yield Finding(subject="onlinePressure", ok=False, detail=detail, advice=advice)


def _topology(hierarchy: Hierarchy) -> Finding:
    subject = "cpuSuppress.cpuset"
    try:
        cpus = topology.read_topology(hierarchy.files)
    except CgroupError as error:
        return Finding(subject=subject, ok=None, detail=f"not available: {error}")
    cores, zones = {one.core for one in cpus}, {one.zone for one in cpus}
    return Finding(subject=subject, ok=True, detail=f"{len(cpus)} CPUs, {len(cores)} cores, {len(zones)} NUMA zones")
