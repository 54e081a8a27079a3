"""The policy of a node at a time of the week. Pure: the time is seconds since 1970.

A window lies between two instants: the times of its day as its time zone has them there. A time that is there twice,
when clocks are put back, is the first one; one that is left out, when they are put forward, is as much later.

With a ramp the policy is the mean over the time that the ramp takes, rounded down: so a change begins at its time and
is complete one ramp later, whatever else changes meanwhile.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

from fallow_core.model.node_policies import NodeChange, Schedule
from fallow_core.model.policy import NodePolicy, ResourcePolicy

_DAY = timedelta(days=1)


class _Span(NamedTuple):
    """A window on one day: its instants, in seconds since 1970, and what is different."""

    begin: int
    end: int
    change: NodeChange


def scheduled(policy: NodePolicy, schedule: Schedule, wall_now: float) -> NodePolicy:
    """The policy as the schedule has it now."""
    end = int(wall_now // 1)
    begin = end - schedule.ramp_seconds
    spans = list(_spans(schedule, begin, end))
    if begin == end:
        return _at(policy, spans, end)
    cuts = sorted({begin, end, *(at for span in spans for at in span[:2] if begin < at < end)})
    parts = [(_at(policy, spans, since), until - since) for since, until in pairwise(cuts)]
    return replace(
        policy,
        cpu=_mean([(part.cpu, seconds) for part, seconds in parts]),
        memory=_mean([(part.memory, seconds) for part, seconds in parts]),
    )


def _spans(schedule: Schedule, begin: int, end: int) -> Iterator[_Span]:
    """The windows that may lie between the two instants, in the order in which they count."""
    zone = ZoneInfo(schedule.time_zone)
    first = datetime.fromtimestamp(begin, zone).date() - _DAY
    days = [first + n * _DAY for n in range((datetime.fromtimestamp(end, zone).date() - first).days + 1)]
    for window in schedule.windows:
        minutes = window.to_minute - window.from_minute
        length = minutes if minutes > 0 else minutes + 24 * 60
        for day in days:
            if day.weekday() in window.days:
                until = window.from_minute + length
                yield _Span(_instant(day, window.from_minute, zone), _instant(day, until, zone), window.change)


def _instant(day: date, minute: int, zone: ZoneInfo) -> int:
    local = datetime(day.year, day.month, day.day) + timedelta(minutes=minute)
    return int(local.replace(tzinfo=zone).timestamp())


def _at(policy: NodePolicy, spans: list[_Span], instant: int) -> NodePolicy:
    return next((span.change.applied(policy) for span in spans if span.begin <= instant < span.end), policy)


def _mean(parts: list[tuple[ResourcePolicy, int]]) -> ResourcePolicy:
    total = sum(seconds for _, seconds in parts)
    return replace(
        parts[-1][0],
        watermark_percent=sum(part.watermark_percent * seconds for part, seconds in parts) // total,
        overcommit_percent=sum(part.overcommit_percent * seconds for part, seconds in parts) // total,
    )
