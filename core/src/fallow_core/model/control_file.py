"""The control files that Fallow writes, and their names in both versions of control groups."""

from enum import StrEnum


class ControlFile(StrEnum):
    """What can be set for a group. Where several files of a group change, they are written in this order."""

    LIMIT = "limit"
    IDLE = "idle"
    IDENTITY = "identity"
    WEIGHT = "weight"
    MEMORY = "memory"
    HIGH = "high"
    CPUS = "cpus"


_FILES = {
    ControlFile.LIMIT: ("cpu", "cpu.cfs_quota_us", "cpu.max"),
    ControlFile.IDLE: ("cpu", "cpu.idle", "cpu.idle"),
    ControlFile.IDENTITY: ("cpu", "cpu.bvt_warp_ns", "cpu.bvt_warp_ns"),
    ControlFile.WEIGHT: ("cpu", "cpu.shares", "cpu.weight"),
    ControlFile.MEMORY: ("memory", "memory.limit_in_bytes", "memory.max"),
    ControlFile.HIGH: ("memory", "memory.high", "memory.high"),
    ControlFile.CPUS: ("cpuset", "cpuset.cpus", "cpuset.cpus"),
}


def file_name(file: ControlFile, version: int) -> str:
    """The name of the file in this version of control groups."""
    return _FILES[file][version]


def controller_of(file: ControlFile) -> str:
    """The controller that the file belongs to."""
    return _FILES[file][0]
