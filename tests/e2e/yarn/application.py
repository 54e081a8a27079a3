"""A running application: what its master was told."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """`events` is the file in which the application master notes what it is told (SleepAM.java).

    In the folder `begun`, each container leaves a file with its id as name when its command begins.
    """

    app_id: str
    events: Path
    begun: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of the events file: `seconds` since the epoch, `subject` a container, a node, or "-"."""

    seconds: float
    kind: str
    subject: str
    details: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A container that has ended. YARN's own ends have negative codes: -100 lost, -102 preempted."""

    seconds: float
    container: str
    exit_code: int
    diagnostics: str


def events(app: Application) -> list[Event]:
    """All that the application master has noted so far; nothing before it has started."""
    if not app.events.exists():
        return []
    found = []
    for line in app.events.read_text().splitlines():
        seconds, kind, subject, *details = line.split(" ", 3)
        found.append(Event(seconds=float(seconds), kind=kind, subject=subject, details="".join(details)))
    return found


def containers_ended(app: Application) -> list[Ended]:
    """The containers that have ended, in the order in which the application master was told."""
    found = []
    for event in events(app):
        if event.kind == "ended":
            code, _, why = event.details.partition(" ")
            found.append(Ended(seconds=event.seconds, container=event.subject, exit_code=int(code), diagnostics=why))
    return found


def containers_running(app: Application) -> set[str]:
    """The ids of the containers whose command has begun and whose end was not told, without the master's own.

    A NodeManager killed before a command begins loses the container, so wait for this before you kill one.
    """
    begun = {file.name for file in app.begun.iterdir()}
    return begun - {ended.container for ended in containers_ended(app)}
