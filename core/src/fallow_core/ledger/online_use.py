"""What pods and host applications count with.

Each one's measured use is no use of the system, whether it is online or batch, or has just ended. Online work counts

    usage     its use; no less than its request while it is not measured, or younger than a window of usage, and for
              CPU if it is pinned
    request   its request
    max       the larger of both
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fallow_core.model.policy import OnlineRule
from fallow_core.model.workload import Workload
from fallow_hookspecs import ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One workload and one resource: what it used, what it counts with as online work, and why that much."""

    name: str
    used: int
    online: int
    why: str
    zones: tuple[str, ...] = ()


def counted(
    workloads: Iterable[Workload], resource: ResourceName, rule: OnlineRule, window_seconds: float
) -> tuple[Counted, ...]:
    """What each workload counts with, by name."""
    return tuple(
        _counted(each, resource, rule, window_seconds) for each in sorted(workloads, key=lambda each: each.name)
    )


def _counted(workload: Workload, resource: ResourceName, rule: OnlineRule, window_seconds: float) -> Counted:
    used, request = workload.used.get(resource), workload.request.amount(resource)
    most = max(request, used or 0)
    if workload.ended:
        online, why = 0, "ended"
    elif workload.batch:
        online, why = 0, "batch"
    elif rule is OnlineRule.REQUEST:
        online, why = request, "request"
    elif rule is OnlineRule.MAX:
        online, why = most, "max"
    elif used is None:
        online, why = request, "not measured"
    elif workload.age_seconds < window_seconds:
        online, why = most, "new"
    elif workload.pinned and resource == "cpu":
        online, why = most, "pinned"
    else:
        online, why = used, "usage"
    return Counted(name=workload.name, used=used or 0, online=online, why=why, zones=workload.zones)


def in_zone(each: Counted, zone: int, names: Sequence[str], weights: Sequence[int]) -> tuple[int, int]:
    """A workload's use and what it counts with in one zone, in proportion to `weights` over the zones it may use.

    Use is rounded down and what counts is rounded up, so that the zones together lend no more than is there.
    """
    own = {i for i, name in enumerate(names) if name in each.zones} or set(range(len(names)))
    if zone not in own:
        return 0, 0
    total = sum(weights[i] for i in own)
    weight, total = (weights[zone], total) if total else (1, len(own))
    return each.used * weight // total, -(-each.online * weight // total)
