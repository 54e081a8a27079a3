"""The terminations under way, saved so that a restart of Fallow neither extends nor forgets a grace period.

Times are those of the kernel's monotonic clock, which continues over a restart of Fallow. After a restart of the host
the tasks are gone, so the file is then ignored.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from fallow_core.model.task import ApplicationKey, TaskKey
from fallow_core.qos.termination import FloorLoss, Hit, Phase, Route, Termination, Terminations
from fallow_core.state import values
from fallow_core.state.boot_file import BootFile
from fallow_core.state.lost_files import LostFile, give_up, name_when_given_up

FILE_NAME = "terminations.json"
EFFECT = "terminations under way are forgotten, so their grace begins anew"


class TerminationsFile:
    """One file in the state directory, written before an order is given."""

    def __init__(self, state_dir: Path, boot_id: str | None = None) -> None:
        self._file = BootFile(state_dir / FILE_NAME, "terminations", boot_id, EFFECT)

    @property
    def lost(self) -> LostFile | None:
        """The file, if it cannot be read and nothing was saved since."""
        return self._file.lost

    def load(self, now: float) -> tuple[Terminations, str]:
        """The terminations of this boot, and an error message if they are lost."""
        found, lost = self._file.load(partial(from_json, now=now), Terminations()), self._file.lost
        return found, "" if lost is None else f"{lost.path} {lost.why}: {lost.effect}"

    def save(self, terminations: Terminations) -> None:
        """Write the terminations; they are on the disk when this returns. A lost file is renamed first: protecting the
        host waits for nobody's decision.

        :raises StateError: they cannot be written.
        """
        if self._file.lost is not None:
            path = self._file.lost.path
            give_up([(path, name_when_given_up(path))])
            self._file.given_up()
        self._file.save(to_json(terminations))


def to_json(terminations: Terminations) -> dict[str, Any]:
    """The terminations as JSON values."""
    return {
        "active": [asdict(termination) for termination in terminations.active],
        "hits": [[*hit.application, hit.at] for hit in terminations.hits],
        "floor_losses": [list(loss) for loss in terminations.floor_losses],
    }


def from_json(data: Mapping[str, Any], now: float) -> Terminations:
    """The terminations from the values of `to_json`. A time in the future becomes `now`: it must not extend a grace.

    :raises ValueError, TypeError, LookupError: these are not values of `to_json`.
    """
    return Terminations(
        active=tuple(_termination(each, now) for each in values.of(list, data["active"])),
        hits=tuple(
            Hit(ApplicationKey(values.text(cluster), values.text(name)), _past(at, now))
            for cluster, name, at in values.of(list, data["hits"])
        ),
        floor_losses=tuple(
            FloorLoss(values.text(cluster), values.text(node), _past(at, now))
            for cluster, node, at in values.of(list, data["floor_losses"])
        ),
    )


def _termination(data: Mapping[str, Any], now: float) -> Termination:
    """A field that is missing has its default, as in a file of an older Fallow; one that is unknown is refused."""
    if unknown := data.keys() - _FIELDS.keys():
        raise ValueError(f"unknown field {min(unknown)!r}")
    return Termination(**{name: _FIELDS[name](value, now) for name, value in data.items()})


def _task(data: Any, _now: float) -> TaskKey:
    return TaskKey(*map(values.text, data))


def _application(data: Any, _now: float) -> ApplicationKey:
    return ApplicationKey(*map(values.text, data))


def _text(data: Any, _now: float) -> str:
    return values.text(data)


def _flag(data: Any, _now: float) -> bool:
    return values.of(bool, data)


def _past(data: Any, now: float) -> float:
    return min(values.seconds(data), now)


def _past_if_any(data: Any, now: float) -> float | None:
    return None if data is None else _past(data, now)


_FIELDS: Mapping[str, Callable[[Any, float], Any]] = {
    "key": _task,
    "application": _application,
    "reason": _text,
    "ordered_at": _past,
    "grace_seconds": lambda data, _now: values.seconds(data),
    "ours": _flag,
    "phase": lambda data, _now: Phase(data),
    "route": lambda data, _now: Route(data),
    "asked_at": _past_if_any,
    "answered": _flag,
    "withdrawn": _flag,
    "forced_at": _past_if_any,
    "failed_at": _past_if_any,
    "note": _text,
    "attempts": lambda data, _now: values.amount(data),
    "floor_of": _text,
    "memory_bytes": lambda data, _now: values.amount(data),
}
"""How the value of each field is read, where the time is `now`."""
