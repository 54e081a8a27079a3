"""The text output of `fallow watch`: plain lines, JSON lines, and the summary at its end."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from fallow_core.ledger.capacity import BatchCapacity
from fallow_hookspecs import RESOURCE_NAMES, ResourceName

NAMES: Mapping[ResourceName, str] = {"cpu": "CPU", "memory": "Memory"}
UNITS: Mapping[ResourceName, str] = {"cpu": "cores", "memory": "GiB"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One sample: what each resource could lend, or the reason why that is unknown.

    `elapsed_seconds`: since the start. `time`: for people.
    """

    time: datetime
    elapsed_seconds: float
    resources: Mapping[ResourceName, BatchCapacity]
    missing: Mapping[ResourceName, str]


def amount(resource: ResourceName, value: float) -> str:
    """Milli-cores as cores, bytes as GiB."""
    return f"{value / 1000:.2f}" if resource == "cpu" else f"{value / 2**30:.1f}"


def plain_line(reading: Reading) -> str:
    """One line for people and for grep."""
    parts = [f"{reading.time:%H:%M:%S}"]
    for resource in RESOURCE_NAMES:
        now = reading.resources.get(resource)
        if now is None:
            parts.append(f"{NAMES[resource]} unknown: {reading.missing.get(resource)}")
        else:
            used, capacity, lendable = (amount(resource, value) for value in (now.used, now.capacity, now.batch))
            parts.append(f"{NAMES[resource]} {used} of {capacity} {UNITS[resource]} in use, could lend {lendable}")
    return "   ".join(parts)


def json_line(reading: Reading) -> str:
    """One JSON object; the name of an amount has its unit, and an unknown resource is null."""

    def of(resource: ResourceName) -> dict[str, int] | None:
        now = reading.resources.get(resource)
        if now is None:
            return None
        unit = "milli" if resource == "cpu" else "bytes"
        return {
            f"capacity_{unit}": now.capacity,
            f"used_{unit}": now.used,
            f"lendable_{unit}": now.batch,
            "watermark_percent": now.watermark_percent,
        }

    return json.dumps(
        {
            "time": reading.time.isoformat(timespec="milliseconds"),
            "elapsed_seconds": round(reading.elapsed_seconds, 3),
            "cpu": of("cpu"),
            "memory": of("memory"),
            "missing": dict(reading.missing),
        }
    )


class Summary:
    """Means over time, and the least that could be lent."""

    def __init__(self) -> None:
        self._last_seconds = 0.0
        self._sums: dict[ResourceName, tuple[float, float, float]] = {}
        self._least: dict[ResourceName, int] = {}
        self._capacity: dict[ResourceName, int] = {}

    def add(self, reading: Reading) -> None:
        """Add a reading; it counts for the time since the previous one."""
        seconds, self._last_seconds = reading.elapsed_seconds - self._last_seconds, reading.elapsed_seconds
        for name, now in reading.resources.items():
            total, used, lendable = self._sums.get(name, (0.0, 0.0, 0.0))
            self._sums[name] = (total + seconds, used + seconds * now.used, lendable + seconds * now.batch)
            self._least[name] = min(self._least.get(name, now.batch), now.batch)
            self._capacity[name] = now.capacity

    def lines(self) -> list[str]:
        """One line for each resource that was known at least once."""
        return [self._line(name, *self._sums[name]) for name in RESOURCE_NAMES if name in self._sums]

    def _line(self, name: ResourceName, seconds: float, used: float, lendable: float) -> str:
        return (
            f"{NAMES[name]}: on average {amount(name, used / seconds)} of {amount(name, self._capacity[name])} "
            f"{UNITS[name]} in use, {amount(name, lendable / seconds)} to lend "
            f"(never below {amount(name, self._least[name])})"
        )
