"""What has to survive a kill: sizes in flight, the sizes found first, switches. One JSON file.

It is written whole, synced and renamed before the update that it tells of is sent. A file that cannot be read is moved
aside: then nothing is known to be in flight, so nothing grows for a while, and the sizes found first are lost.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fallow_core.errors import StateError
from fallow_core.ledger.rows import RowKey
from fallow_core.model.policy import SwitchState
from fallow_core.state import durable
from fallow_hookspecs import Resources

VERSION = 1
FILE_NAME = "ledger.json"
LOCK_NAME = "lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """The size that a row had before Fallow first changed it. `started` tells one start of its daemon from another."""

    size: Resources
    started: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """What the operator wants of one cluster, and who wanted it, when (seconds since 1970) and why."""

    state: SwitchState = SwitchState.LEND
    who: str = ""
    when: float = 0.0
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What the journal says. `refreshed` is when a row was last sent a size, in seconds since 1970."""

    in_flight: Mapping[RowKey, tuple[Resources, ...]] = field(default_factory=dict)
    originals: Mapping[RowKey, Original] = field(default_factory=dict)
    refreshed: Mapping[RowKey, float] = field(default_factory=dict)
    switches: Mapping[str, Switch] = field(default_factory=dict)


class Journal:
    """The journal as it is on the disk. `lost` says why an older file could not be read."""

    def __init__(self, path: Path, content: Content, lost: str = "") -> None:
        self.path = path
        self.content = content
        self.lost = lost

    def write(self, content: Content) -> None:
        """Replace the content; it is on the disk when this returns.

        :raises StateError: it cannot be written; then the old content stays.
        """
        try:
            durable.write(self.path, json.dumps(_encoded(content), indent=1))
        except OSError as error:
            raise StateError(
                f"cannot write {self.path}: {error.strerror}; sizes only shrink until it can be written"
            ) from error
        self.content = content


def load(state_dir: Path) -> Journal:
    """The journal in a state directory, which is made if it is missing.

    :raises StateError: the directory cannot be made or read, or a wrong file cannot be moved aside.
    """
    path = state_dir / FILE_NAME
    aside = path.with_suffix(".unreadable")
    try:
        _make(state_dir)
        text = path.read_bytes()
        return Journal(path, _decoded(json.loads(text)))
    except FileNotFoundError:
        return Journal(path, Content())
    except OSError as error:
        raise _unusable(state_dir, error) from error
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
    try:
        path.replace(aside)
    except OSError as error:
        raise _unusable(state_dir, error) from error
    lost = f"{path} was unreadable ({reason}) and is now {aside}: the sizes found first are lost"
    return Journal(path, Content(), lost)


def lock(state_dir: Path) -> int:
    """Keep every other Fallow away from a state directory; it is free again when the descriptor is closed.

    :raises StateError: another process has it, or it cannot be used.
    """
    try:
        _make(state_dir)
        descriptor = os.open(state_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unusable(state_dir, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise StateError(f"a Fallow is running already: it uses the state directory {state_dir}") from None
        raise _unusable(state_dir, error) from error
    return descriptor


def _make(state_dir: Path) -> None:
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)


def _unusable(state_dir: Path, error: OSError) -> StateError:
    return StateError(f"cannot use the state directory {state_dir}: {error.strerror}; set stateDir")


def _encoded(content: Content) -> dict[str, Any]:
    return {
        "version": VERSION,
        "in_flight": [[*key, [asdict(size) for size in sizes]] for key, sizes in content.in_flight.items()],
        "originals": [[*key, asdict(original)] for key, original in content.originals.items()],
        "refreshed": [[*key, when] for key, when in content.refreshed.items()],
        "switches": {name: asdict(switch) for name, switch in content.switches.items()},
    }


def _decoded(data: dict[str, Any]) -> Content:
    if data["version"] != VERSION:
        raise ValueError(f"version {data['version']!r}, expected {VERSION}")
    return Content(
        in_flight={RowKey(*key): tuple(_resources(size) for size in sizes) for *key, sizes in data["in_flight"]},
        originals={
            RowKey(*key): Original(size=_resources(original["size"]), started=str(original["started"]))
            for *key, original in data["originals"]
        },
        refreshed={RowKey(*key): float(when) for *key, when in data["refreshed"]},
        switches={
            str(name): Switch(
                state=SwitchState(switch["state"]),
                who=str(switch["who"]),
                when=float(switch["when"]),
                why=str(switch["why"]),
            )
            for name, switch in data["switches"].items()
        },
    )


def _resources(data: dict[str, Any]) -> Resources:
    return Resources(cpu_milli=int(data["cpu_milli"]), memory_bytes=int(data["memory_bytes"]))
