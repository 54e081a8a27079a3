"""What has to survive a kill: sizes in flight, the sizes found first, switches. One JSON file.

It is written whole, synced and renamed before the update that it tells of is sent. A file that cannot be read is moved
aside: then nothing is known to be in flight and nothing grows for a while, and the sizes found first are lost.
"""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fallow_core.errors import StateError
from fallow_core.ledger.rows import RowKey
from fallow_core.model.policy import SwitchState
from fallow_hookspecs import Resources

VERSION = 1
FILE_NAME = "ledger.json"


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


@dataclass(slots=True)
class Journal:
    """The content of the journal; `save` writes it.

    `refreshed` is when a row was last sent a size, in seconds since 1970. `lost` says why an older file could not be
    read.
    """

    path: Path
    in_flight: dict[RowKey, tuple[Resources, ...]] = field(default_factory=dict)
    originals: dict[RowKey, Original] = field(default_factory=dict)
    refreshed: dict[RowKey, float] = field(default_factory=dict)
    switches: dict[str, Switch] = field(default_factory=dict)
    lost: str = ""

    def save(self) -> None:
        """Write the journal so that it is on the disk when this returns.

        :raises StateError: it cannot be written.
        """
        data = {
            "version": VERSION,
            "in_flight": [[*key, [asdict(size) for size in sizes]] for key, sizes in self.in_flight.items()],
            "originals": [[*key, asdict(original)] for key, original in self.originals.items()],
            "refreshed": [[*key, when] for key, when in self.refreshed.items()],
            "switches": {name: asdict(switch) for name, switch in self.switches.items()},
        }
        part = self.path.with_suffix(".part")
        try:
            with part.open("w") as file:
                json.dump(data, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path)
            _sync_directory(self.path.parent)
        except OSError as error:
            raise StateError(
                f"cannot write {self.path}: {error.strerror}; sizes only shrink until it can be written"
            ) from error


def load(state_dir: Path) -> Journal:
    """The journal in a state directory, which is made if it is missing.

    :raises StateError: the directory cannot be made or read.
    """
    path = state_dir / FILE_NAME
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise StateError(f"cannot use the state directory {state_dir}: {error.strerror}; set stateDir") from error
    if not text:
        return Journal(path)
    try:
        return _decoded(path, json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        aside = path.with_suffix(".unreadable")
        path.replace(aside)
        return Journal(path, lost=f"{path} was unreadable ({error}) and is now {aside}: the sizes found first are lost")


def _decoded(path: Path, data: dict[str, Any]) -> Journal:
    if data["version"] != VERSION:
        raise ValueError(f"version {data['version']!r}, expected {VERSION}")
    return Journal(
        path,
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


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
