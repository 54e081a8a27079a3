"""Models of `capacity`, `pools` and `nodes`: how much may be lent, on which nodes, and when."""

import re
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, StringConstraints

from fallow_core.config.fields import Model, Percent, made, section, within, written
from fallow_core.model import quantities
from fallow_core.model.policy import Limit, NodePolicy, OnlineRule

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_NODE = NodePolicy()
_NOTHING = Limit(amount=0)


def _day(value: object) -> int:
    if not isinstance(value, str) or value not in DAYS:
        raise ValueError(f"expected one of {', '.join(DAYS)}")
    return DAYS.index(value)


def _minute(value: object) -> int:
    match = re.fullmatch(r"(\d\d):(\d\d)", value, re.ASCII) if isinstance(value, str) else None
    hour, minute = (int(match[1]), int(match[2])) if match is not None else (99, 0)
    if minute > 59 or hour * 60 + minute > 24 * 60:
        raise ValueError("expected a time of the day from 00:00 to 24:00")
    return hour * 60 + minute


def _time_zone(value: object) -> str:
    try:
        return ZoneInfo(value if isinstance(value, str) else "").key
    except (KeyError, ValueError, OSError):
        raise ValueError("expected a time zone that this host knows, such as UTC or Europe/Berlin") from None


Ratio = Annotated[int, written(quantities.ratio_percent)]
Cpu = Annotated[int, written(quantities.cpu_milli)]
Memory = Annotated[int, written(quantities.memory_bytes)]
CpuReserved = Annotated[Limit, made(quantities.cpu_reserved)]
MemoryReserved = Annotated[Limit, made(quantities.memory_reserved)]
Rule = Annotated[OnlineRule, Field(strict=False)]
Minute = Annotated[int, written(_minute)]
NotEmpty = Annotated[str, StringConstraints(min_length=1)]


class WindowChange(Model):
    """The values for one resource in a window of a schedule."""

    watermark_percent: Percent | None = None
    overcommit_percent: Ratio | None = None


class WindowModel(Model):
    """A part of some days. `from_` and `to` are minutes of the day; `days` are numbers, Monday is 0."""

    days: Annotated[list[Annotated[int, written(_day)]], Field(min_length=1)] = Field(
        default_factory=lambda: list(range(len(DAYS)))
    )
    from_: Annotated[Minute, Field(alias="from")]
    to: Minute
    cpu: WindowChange = section()
    memory: WindowChange = section()


class ScheduleModel(Model):
    """The times when another share may be lent."""

    time_zone: Annotated[str, BeforeValidator(_time_zone)] = "UTC"
    ramp_seconds: Annotated[float, written(within("0s", "4h"))] = 900.0
    windows: Annotated[list[WindowModel], Field(min_length=1)]


class CpuChange(Model):
    """How much of the CPU of some nodes may be lent. Keys that are missing are as for all nodes."""

    watermark_percent: Percent | None = None
    rule: Annotated[Rule | None, Field(alias="policy")] = None
    reserved: CpuReserved | None = None
    reserved_per_daemon: Cpu | None = None
    cap_percent: Percent | None = None
    overcommit_percent: Ratio | None = None


class MemoryChange(Model):
    """How much of the memory of some nodes may be lent. Keys that are missing are as for all nodes."""

    watermark_percent: Percent | None = None
    rule: Annotated[Rule | None, Field(alias="policy")] = None
    reserved: MemoryReserved | None = None
    reserved_per_daemon: Memory | None = None
    cap_percent: Percent | None = None
    overcommit_percent: Ratio | None = None


class CapacityChange(Model):
    """How much of some nodes may be lent where that differs from all nodes."""

    cpu: CpuChange = section()
    memory: MemoryChange = section()
    schedule: ScheduleModel | None = None


class CpuCapacity(Model):
    """How much of a node's CPU may be lent."""

    watermark_percent: Percent = _NODE.cpu.watermark_percent
    rule: Annotated[Rule, Field(alias="policy")] = _NODE.cpu.rule
    reserved: CpuReserved = _NOTHING
    reserved_per_daemon: Cpu = _NODE.cpu.reserved_per_daemon
    cap_percent: Percent = _NODE.cpu.cap_percent
    overcommit_percent: Ratio = _NODE.cpu.overcommit_percent


class MemoryCapacity(Model):
    """How much of a node's memory may be lent."""

    watermark_percent: Percent = _NODE.memory.watermark_percent
    rule: Annotated[Rule, Field(alias="policy")] = _NODE.memory.rule
    reserved: MemoryReserved = _NOTHING
    reserved_per_daemon: Memory = _NODE.memory.reserved_per_daemon
    cap_percent: Percent = _NODE.memory.cap_percent
    overcommit_percent: Ratio = _NODE.memory.overcommit_percent


class Capacity(Model):
    """How much of a node may be lent."""

    cpu: CpuCapacity = section()
    memory: MemoryCapacity = section()
    schedule: ScheduleModel | None = None


class PoolModel(Model):
    """A pool: the nodes with all these labels."""

    name: NotEmpty
    node_selector: Annotated[dict[str, str], Field(min_length=1)]
    capacity: CapacityChange


class NodeModel(Model):
    """One node, by name."""

    name: NotEmpty
    capacity: CapacityChange


def pools_problem(pools: list[PoolModel]) -> tuple[tuple[int, str], str] | None:
    """The first pool, and its key, that no node can belong to or whose name is taken; and why."""
    for index, pool in enumerate(pools):
        for earlier in pools[:index]:
            if pool.name == earlier.name:
                return (index, "name"), f"there is already a pool {pool.name!r}; give each a name of its own"
            if earlier.node_selector.items() <= pool.node_selector.items():
                text = f"every node with these labels is in the pool {earlier.name!r}; the first pool counts, so move"
                return (index, "nodeSelector"), f"{text} this one before it"
    return None


def double_node(nodes: list[NodeModel]) -> tuple[int, str] | None:
    """The first node that is listed twice: its index and its name."""
    names: list[Any] = [node.name for node in nodes]
    return next(((i, name) for i, name in enumerate(names) if name in names[:i]), None)
