"""What can be set for a group, and in which file."""

from enum import StrEnum


class Knob(StrEnum):
    """What can be set for a group. Where several change, they are written in this order."""

    LIMIT = "limit"
    IDLE = "idle"
    IDENTITY = "identity"
    WEIGHT = "weight"
    MEMORY = "memory"
    HIGH = "high"
    CPUS = "cpus"


_FILES = {
    Knob.LIMIT: ("cpu", "cpu.cfs_quota_us", "cpu.max"),
    Knob.IDLE: ("cpu", "cpu.idle", "cpu.idle"),
    Knob.IDENTITY: ("cpu", "cpu.bvt_warp_ns", "cpu.bvt_warp_ns"),
    Knob.WEIGHT: ("cpu", "cpu.shares", "cpu.weight"),
    Knob.MEMORY: ("memory", "memory.limit_in_bytes", "memory.max"),
    Knob.HIGH: ("memory", "memory.high", "memory.high"),
    Knob.CPUS: ("cpuset", "cpuset.cpus", "cpuset.cpus"),
}


def file_of(knob: Knob, version: int) -> str:
    """The name of the knob's file in this version of control groups."""
    return _FILES[knob][version]


def controller_of(knob: Knob) -> str:
    """The controller that the knob is one of."""
    return _FILES[knob][0]
