"""Terminations as plain JSON values, so that they survive Fallow.

Times are the caller's; `offset` is what has to be added to its clock to get one that goes on over a restart (seconds
since 1970, or since boot). A time in the future is taken as now: a clock that was set back makes no grace longer.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fallow_core.model.task import ApplicationKey, TaskKey
from fallow_core.qos.termination import FloorLoss, Hit, Phase, Route, Termination, Terminations

_TIMES = ("ordered_at", "asked_at", "forced_at", "failed_at")


def to_json(terminations: Terminations, offset: float) -> dict[str, Any]:
    """The terminations as JSON values."""
    active = [asdict(termination) for termination in terminations.active]
    return {
        "active": [values | {name: _moved(values[name], offset) for name in _TIMES} for values in active],
        "hits": [[*hit.application, hit.at + offset] for hit in terminations.hits],
        "floor_losses": [[*loss[:2], loss.at + offset] for loss in terminations.floor_losses],
    }


def from_json(values: Mapping[str, Any], offset: float, now: float) -> Terminations:
    """What `to_json` was given; `offset` and `now` are those of this process.

    :raises ValueError, TypeError, LookupError: it is not what `to_json` gave.
    """
    return Terminations(
        active=tuple(_termination(each, offset, now) for each in values["active"]),
        hits=tuple(
            Hit(ApplicationKey(str(cluster), str(name)), min(float(at) - offset, now))
            for cluster, name, at in values["hits"]
        ),
        floor_losses=tuple(
            FloorLoss(str(cluster), str(node), min(float(at) - offset, now))
            for cluster, node, at in values.get("floor_losses", ())
        ),
    )


def _termination(values: Mapping[str, Any], offset: float, now: float) -> Termination:
    times = {name: None if values[name] is None else min(float(values[name]) - offset, now) for name in _TIMES}
    typed = {
        "key": TaskKey(*values["key"]),
        "application": ApplicationKey(*values["application"]),
        "phase": Phase(values["phase"]),
        "route": Route(values["route"]),
        "grace_seconds": float(values["grace_seconds"]),
    }
    return Termination(**{**values, **typed, **times})


def _moved(time: float | None, offset: float) -> float | None:
    return None if time is None else time + offset
