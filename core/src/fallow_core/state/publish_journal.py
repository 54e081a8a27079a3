"""The publish journal: what has to survive a kill, written by changes, one JSON line each.

A change is on the disk before the offers that it tells of are sent. Now and then the file is written anew, as one line.
A last line that was not written whole is left out: its offers were never sent. A file that cannot be read otherwise is
moved aside: then nothing is known to be in flight, so nothing grows for a while, and the sizes found first are lost.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fallow_core.errors import StateError
from fallow_core.ledger.rows import RowKey
from fallow_core.model.policy import SwitchState
from fallow_core.planner.memory import Change, Memory, Original
from fallow_core.planner.switches import Switch
from fallow_core.state import durable
from fallow_hookspecs import Resources

VERSION = 1
FILE_NAME = "published.jsonl"
LOCK_NAME = "lock"
LINES = 1000
"""After so many changes the file is written anew."""


class Journal:
    """The journal as it is on the disk. `lost` says why an older file could not be read."""

    def __init__(self, path: Path, memory: Memory, lost: str = "", *, whole: bool = False) -> None:
        self.path = path
        self.memory = memory
        self.lost = lost
        self._lines = 0 if whole else LINES

    def write(self, change: Change) -> None:
        """Add a change; it is on the disk, and in `memory`, when this returns.

        :raises StateError: it cannot be written; then nothing changes.
        """
        try:
            if self._lines >= LINES or not self._append(_line(change)):
                self._lines = LINES  # whatever happens now, the next write is of the whole
                whole = Memory(**{name: dict(getattr(self.memory, name)) for name in _FIELDS})
                whole.apply(change)
                durable.write(self.path, _line(whole, version=VERSION))
                self._lines = 0
        except OSError as error:
            raise StateError(
                f"cannot write {self.path}: {error.strerror}; sizes only shrink until it can be written"
            ) from error
        self.memory.apply(change)

    def _append(self, line: str) -> bool:
        """Whether the line was added; not if the file is gone. One that was not added whole is cut off again."""
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            size, text = os.fstat(descriptor).st_size, line.encode()
            try:
                if os.write(descriptor, text) == len(text):
                    os.fdatasync(descriptor)
                    self._lines += 1
                    return True
            except OSError:
                with suppress(OSError):
                    os.ftruncate(descriptor, size)
                self._lines = LINES
                raise
            os.ftruncate(descriptor, size)
            return False
        finally:
            os.close(descriptor)


def load(state_dir: Path) -> Journal:
    """The journal in a state directory, which is made if it is missing.

    :raises StateError: the directory cannot be made or read, or a wrong file cannot be moved aside.
    """
    path = state_dir / FILE_NAME
    aside = path.with_suffix(".unreadable")
    try:
        _make(state_dir)
        *lines, rest = path.read_bytes().split(b"\n")
        return Journal(path, _decoded(lines), whole=not rest)
    except FileNotFoundError:
        return Journal(path, Memory())
    except OSError as error:
        raise _unusable(state_dir, error) from error
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
    try:
        path.replace(aside)
    except OSError as error:
        raise _unusable(state_dir, error) from error
    lost = f"{path} was unreadable ({reason}) and is now {aside}: the sizes found first are lost"
    return Journal(path, Memory(), lost)


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


_FIELDS = ("in_flight", "originals", "refreshed", "switches")


def _line(content: Change | Memory, **head: int) -> str:
    """One line: of each field, pairs of a key and a value, which is null where it is forgotten."""
    fields = {name: _pairs(getattr(content, name)) for name in _FIELDS if getattr(content, name)}
    return json.dumps(head | fields) + "\n"


def _pairs(values: Mapping[Any, Any]) -> list[Any]:
    return [[key, _plain(value)] for key, value in values.items()]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [asdict(each) for each in value]
    return value if value is None or isinstance(value, float) else asdict(value)


def _decoded(lines: list[bytes]) -> Memory:
    memory = Memory()
    first = json.loads(lines[0])
    if first["version"] != VERSION:
        raise ValueError(f"version {first['version']!r}, expected {VERSION}")
    for line in lines:
        memory.apply(_change(json.loads(line)))
    return memory


def _change(data: dict[str, Any]) -> Change:
    return Change(
        in_flight={
            RowKey(*key): None if sizes is None else tuple(_resources(size) for size in sizes)
            for key, sizes in data.get("in_flight", ())
        },
        originals={RowKey(*key): _original(value) for key, value in data.get("originals", ())},
        refreshed={RowKey(*key): None if when is None else float(when) for key, when in data.get("refreshed", ())},
        switches={str(scope): _switch(value) for scope, value in data.get("switches", ())},
    )


def _original(data: dict[str, Any] | None) -> Original | None:
    return None if data is None else Original(size=_resources(data["size"]), started=str(data["started"]))


def _switch(data: dict[str, Any] | None) -> Switch | None:
    if data is None:
        return None
    state, who, when, why = SwitchState(data["state"]), str(data["who"]), float(data["when"]), str(data["why"])
    return Switch(state=state, who=who, when=when, why=why)


def _resources(data: dict[str, Any]) -> Resources:
    return Resources(cpu_milli=int(data["cpu_milli"]), memory_bytes=int(data["memory_bytes"]))
