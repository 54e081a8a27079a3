"""What the logs tell afterwards: the containers of the ResourceManager, and the events of Fallow."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.benchmarks.take_back.judge import Container
from tests.e2e.yarn.application import Ended

ALLOCATED = re.compile(r"^(\S+ \S+) .*AM Allocated Container.*CONTAINERID=(\S+)\s+RESOURCE=<memory:(\d+),")
OVER = re.compile(
    r"^(\S+ \S+) .* (container_\S+) Container Transitioned from \S+ to (?:COMPLETED|KILLED|RELEASED|EXPIRED)"
)
EVENT = re.compile(r"^(\S+ \S+) \S+ fallow\.\S+ (\S+) ?(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of Fallow's log. `at`: seconds since the epoch; `details`: its fields as text."""

    at: float
    name: str
    details: str


def containers_of(log: Sequence[str], told: Iterable[Ended]) -> list[Container]:
    """All containers that the log of a ResourceManager knows, with the exit codes that application masters were told.

    One that ended while the ResourceManager was away ends when its application master was told.
    """
    ends: dict[str, float] = {}
    codes: dict[str, int] = {}
    for end in told:
        ends[end.container], codes[end.container] = end.seconds, end.exit_code
    for at, name in (found.groups() for found in map(OVER.match, log) if found):
        ends[name] = min(_seconds(at), ends.get(name, _seconds(at)))
    return [
        Container(
            name=name,
            memory_mb=int(memory_mb),
            started=_seconds(at),
            end=ends.get(name, math.inf),
            exit_code=codes.get(name),
        )
        for at, name, memory_mb in (found.groups() for found in map(ALLOCATED.match, log) if found)
    ]


def events_of(log: Iterable[str]) -> list[Event]:
    """The events in a log of Fallow, in their order."""
    matches = (found.groups() for found in map(EVENT.match, log) if found)
    return [Event(at=_seconds(at), name=name, details=details) for at, name, details in matches]


def _seconds(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f").timestamp()
