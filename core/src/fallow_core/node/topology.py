"""The online CPUs of this host by core and NUMA zone, from sysfs."""

from fallow_core.errors import CgroupError
from fallow_core.node.cgroups.cpuset import parse
from fallow_core.node.cgroups.files import Files
from fallow_core.qos.cpuset import Cpu

SYS_ROOT = "/sys/devices/system"


def read_topology(files: Files, sys_root: str = SYS_ROOT) -> tuple[Cpu, ...]:
    """All online CPUs. Without information about cores or zones, each CPU is a core, and all are in one zone.

    :raises CgroupError: the list of CPUs cannot be read.
    """
    path = f"{sys_root}/cpu/online"
    try:
        online = parse(files.read(path), path)
    except OSError as error:
        raise CgroupError(f"{path}: {error.strerror}") from error
    zones = {cpu: zone for zone in _listed(files, f"{sys_root}/node/online") for cpu in _zone(files, sys_root, zone)}
    return tuple(Cpu(number=cpu, core=_core(files, sys_root, cpu), zone=zones.get(cpu, 0)) for cpu in sorted(online))


def _zone(files: Files, sys_root: str, zone: int) -> frozenset[int]:
    return _listed(files, f"{sys_root}/node/node{zone}/cpulist")


def _core(files: Files, sys_root: str, cpu: int) -> int:
    """The number of a core is the lowest number of its threads."""
    return min(_listed(files, f"{sys_root}/cpu/cpu{cpu}/topology/thread_siblings_list"), default=cpu)


def _listed(files: Files, path: str) -> frozenset[int]:
    try:
        return parse(files.read(path), path)
    except (OSError, CgroupError):
        return frozenset()
