"""The CPU knobs of a group: how much it may use, its scheduling class, and its weight against others.

A limit is a fraction of cores: the kernel takes a quota of microseconds in each period. v1: `cpu.cfs_quota_us` (−1: no
limit) with `cpu.cfs_period_us`; v2: `cpu.max`, both in one line. The period stays as it is found.
"""

from fractions import Fraction

from fallow_core.errors import CgroupError
from fallow_core.model.control_file import ControlFile, file_name
from fallow_core.node.cgroups.hierarchy import Hierarchy

LEAST_QUOTA_US = 1000
"""The kernel refuses less."""
LEAST_WEIGHT = {1: "2", 2: "1"}
"""The smallest weight by version: `cpu.shares` and `cpu.weight`."""
BATCH_IDENTITY = {ControlFile.IDLE: "1", ControlFile.IDENTITY: "-1"}
"""What makes a group one of batch: it runs when nobody else wants to."""
NO_IDENTITY = "this kernel has neither cpu.idle (Linux 5.15) nor cpu.bvt_warp_ns; the smallest weight has to do"


def limit_of(hierarchy: Hierarchy, group: str, text: str) -> Fraction | None:
    """The limit that a text of the limit's file means for a group, in cores; `None`: no limit.

    :raises CgroupError: the text is not one that a kernel writes.
    :raises OSError: the period cannot be read.
    """
    quota = text.split()[0] if text else text
    if quota in ("max", "-1"):
        return None
    period = _period(hierarchy, group)
    if not quota.isdigit() or int(quota) == 0:
        raise _strange(hierarchy, group, file_name(ControlFile.LIMIT, hierarchy.version), text)
    return Fraction(int(quota), period)


def limit_text(hierarchy: Hierarchy, group: str, limit: Fraction) -> str:
    """What to write for a limit in cores: rounded down, and no less than the kernel takes."""
    period = _period(hierarchy, group)
    quota = max(LEAST_QUOTA_US, limit.numerator * period // limit.denominator)
    return f"{quota}" if hierarchy.version == 1 else f"{quota} {period}"


def identity_file(hierarchy: Hierarchy, group: str) -> ControlFile | None:
    """What this kernel has to tell batch from online: `cpu.idle` (Linux 5.15), or the `cpu.bvt_warp_ns` of some
    vendors' kernels; `None` if it has neither."""
    return next((knob for knob in BATCH_IDENTITY if hierarchy.has(group, file_name(knob, hierarchy.version))), None)


def weight_text(version: int, milli: int) -> str:
    """What to write for the weight of a task that requested so many milli-cores, as YARN does it for its containers."""
    if version == 1:
        return f"{max(2, min(milli * 1024 // 1000, 262_144))}"
    return f"{max(1, min(milli // 10, 10_000))}"


def throttled_seconds(hierarchy: Hierarchy, group: str) -> float | None:
    """For how long, in all, its tasks were kept waiting by its limit; `None` if the kernel does not tell."""
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
    if not fields or not fields[-1].isdigit() or int(fields[-1]) == 0:
        raise _strange(hierarchy, group, name, text)
    return int(fields[-1])


def _strange(hierarchy: Hierarchy, group: str, name: str, found: str) -> CgroupError:
    return CgroupError(f"{hierarchy.path(group, name)}: expected a number of microseconds, found {found[:80]!r}")
