"""The CPU files of a group: its limit, its scheduling class, and its weight.

A limit is a fraction of cores; the kernel has a quota of microseconds in each period. v1: `cpu.cfs_quota_us` (−1: no
limit) with `cpu.cfs_period_us`; v2: `cpu.max`, both in one line. The period is not changed.
"""

from fractions import Fraction

from fallow_core.errors import CgroupError
from fallow_core.model.control_file import ControlFile, file_name
from fallow_core.node.cgroups.hierarchy import Hierarchy

LEAST_QUOTA_US = 1000
"""The smallest quota that the kernel accepts."""
MOST_PERIOD_US = 1_000_000
"""The longest period that the kernel accepts."""
_DIGITS = 15
"""More than any number of microseconds has."""
LEAST_WEIGHT = {1: "2", 2: "1"}
"""The smallest weight by version, of `cpu.shares` and `cpu.weight`."""
BATCH_IDENTITY = {ControlFile.IDLE: "1", ControlFile.IDENTITY: "-1"}
"""The values for batch: the group runs only on idle CPUs."""
NO_IDENTITY = "this kernel has neither cpu.idle (Linux 5.15) nor cpu.bvt_warp_ns; the smallest weight has to do"


def limit_of(hierarchy: Hierarchy, group: str, text: str) -> Fraction | None:
    """Parse the text of a group's limit file: the limit in cores; `None`: no limit.

    :raises CgroupError: its format is unknown.
    :raises OSError: the period cannot be read.
    """
    quota = text.split()[0] if text else text
    if quota in ("max", "-1"):
        return None
    period = _period(hierarchy, group)
    if not quota.isdigit() or len(quota) > _DIGITS or int(quota) == 0:
        raise _strange(hierarchy, group, file_name(ControlFile.LIMIT, hierarchy.version), text)
    return Fraction(int(quota), period)


def limit_text(hierarchy: Hierarchy, group: str, limit: Fraction) -> str:
    """The text for a limit in cores, rounded down, but at least the smallest one that the kernel accepts."""
    period = _period(hierarchy, group)
    quota = max(LEAST_QUOTA_US, limit.numerator * period // limit.denominator)
    return f"{quota}" if hierarchy.version == 1 else f"{quota} {period}"


def identity_file(hierarchy: Hierarchy, group: str) -> ControlFile | None:
    """The file of this kernel for the scheduling class of batch: `cpu.idle` (Linux 5.15), or `cpu.bvt_warp_ns` of some
    vendors' kernels; `None` if it has neither."""
    return next((file for file in BATCH_IDENTITY if hierarchy.has(group, file_name(file, hierarchy.version))), None)


def weight_text(version: int, milli: int) -> str:
    """The text for the weight of a task with this request, by the formula of YARN for its containers.

    A task without a request has the weight of one core, which is the kernel's default.
    """
    milli = milli if milli > 0 else 1000
    if version == 1:
        return f"{max(2, min(milli * 1024 // 1000, 262_144))}"
    return f"{max(1, min(milli // 10, 10_000))}"


def throttled_seconds(hierarchy: Hierarchy, group: str) -> float | None:
    """The total time for which its limit throttled its tasks; `None` if the kernel does not report it."""
    name, per_second = ("throttled_time", 1e9) if hierarchy.version == 1 else ("throttled_usec", 1e6)
    try:
        pairs = [line.split() for line in hierarchy.read(group, "cpu.stat").splitlines()]
        return next((int(pair[1]) / per_second for pair in pairs if pair[0] == name), None)
    except (OSError, ValueError, LookupError):
        return None


def _period(hierarchy: Hierarchy, group: str) -> int:
    name = "cpu.cfs_period_us" if hierarchy.version == 1 else "cpu.max"
    text = hierarchy.read(group, name)
    fields = text.split()
    if not fields or not fields[-1].isdigit() or len(fields[-1]) > _DIGITS or not 0 < int(fields[-1]) <= MOST_PERIOD_US:
        raise _strange(hierarchy, group, name, text)
    return int(fields[-1])


def _strange(hierarchy: Hierarchy, group: str, name: str, found: str) -> CgroupError:
    return CgroupError(f"{hierarchy.path(group, name)}: expected a number of microseconds, found {found[:80]!r}")
