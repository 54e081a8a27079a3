"""The publish journal: what has to survive a kill, written by changes, one JSON line each.

A change is on the disk before the offers that it tells of are sent. Now and then the file is written anew, as one line;
so is every change of a switch or of a size found first, as a file that was cut off must not lack one of these without
being noticed. A last line that was not written whole is left out: its offers were never sent.

A journal that cannot be read stays where it is, and what it knew is unknown until a person decides: `lost_files`. What
is new meanwhile goes to a numbered file beside it. Files that can be read are put together: what the lowest number
knows of sizes found first counts, as it is older, and of everything else what the highest knows.
"""

import fcntl
import json
import os
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fallow_core.errors import StateError
from fallow_core.ledger.rows import RowKey
from fallow_core.model.policy import SwitchState
from fallow_core.planner.memory import Acceptance, Change, Memory, Original
from fallow_core.planner.switches import Switch
from fallow_core.state import directory, durable, lost_files, values
from fallow_core.state.lost_files import LostFile, NotReadableError
from fallow_hookspecs import Resources

VERSION = 1
FILE_NAME = "published.jsonl"
NUMBERED = re.compile(r"published\.([1-9][0-9]{0,8})\.jsonl")
LOCK_NAME = "lock"
LINES = 1000
"""After so many changes the file is written anew."""
EFFECT = "the switches, the sizes found first and the sizes on their way are unknown, so no size grows"


class Journal:
    """The journal as it is on the disk, with what all its readable files say.

    `lost`: the files that cannot be read. `cut_off`: the last line was not whole, so sizes may be on their way that the
    journal does not know.
    """

    def __init__(
        self,
        path: Path,
        memory: Memory,
        lost: tuple[LostFile, ...] = (),
        *,
        whole: bool = False,
        cut_off: bool = False,
        others: Collection[Path] = (),
    ) -> None:
        """Take over what was read.

        :param path: the file to write.
        :param whole: this file has all of `memory`, and may be appended to.
        :param others: readable files that are removed once `path` has their content.
        """
        self.path = path
        self.memory = memory
        self.lost = lost
        self.cut_off = cut_off
        self._lines = 0 if whole else LINES
        self._others = tuple(others)

    def write(self, change: Change) -> None:
        """Add a change; it is on the disk, and in `memory`, when this returns.

        :raises StateError: it cannot be written; then nothing changes.
        """
        must_not_lack = change.switches or change.originals or change.accepted
        try:
            if self._others:  # before the change: until they are gone they count as newer than this file
                durable.write(self.path, _line(self.memory, version=VERSION))
                while self._others:
                    self._others[0].unlink(missing_ok=True)
                    self._others = self._others[1:]
            if must_not_lack or self._lines >= LINES or not self._append(_line(change)):
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

    def accept(self, lost: Collection[LostFile], acceptance: Acceptance) -> dict[Path, Path]:
        """Give up lost files, also such that are not of the journal: write down who does, then rename them.

        :returns: the new name of each file.
        :raises StateError: it cannot be written down, or a file cannot be renamed; then it is still lost.
        """
        names = {each.path: lost_files.name_when_given_up(each.path) for each in lost}
        self.write(Change(accepted={kept.name: acceptance for kept in names.values()}))
        lost_files.give_up(names.items())
        self.lost = tuple(each for each in self.lost if each.path not in names)
        return names

    def _append(self, line: str) -> bool:
        """Whether the line was added; not if the file is gone. One that was not added whole is cut off again."""
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
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
    """The journal in a state directory, which is empty if that is missing. No file is changed.

    :raises StateError: the directory cannot be read.
    """
    memory, lost, cut_off = Memory(), list[LostFile](), False
    readable: list[Path] = []
    try:
        paths = _files(state_dir)
    except FileNotFoundError:
        paths = []
    except OSError as error:
        raise directory.unusable(state_dir, error) from error
    for path in paths:
        try:
            with lost_files.reading():
                *lines, rest = lost_files.text_of(path).split(b"\n")
                found = _decoded(lines or [rest])
        except FileNotFoundError:
            continue
        except NotReadableError as error:
            lost.append(lost_files.lost(path, error, EFFECT))
            continue
        _put_together(memory, found)
        readable.append(path)
        cut_off = cut_off or bool(rest)
    path = _to_write(state_dir, readable, lost)
    others = [each for each in readable if each != path]
    whole = readable == [path] and not cut_off
    return Journal(path, memory, tuple(lost), whole=whole, cut_off=cut_off, others=others)


def _files(state_dir: Path) -> list[Path]:
    """The names that a journal may have: the first one, and the numbered ones that are there, in their order."""
    numbers = sorted(int(found[1]) for each in state_dir.iterdir() if (found := NUMBERED.fullmatch(each.name)))
    return [state_dir / FILE_NAME, *(_numbered(state_dir, number) for number in numbers)]


def _numbered(state_dir: Path, number: int) -> Path:
    return state_dir / f"published.{number}.jsonl"


def _to_write(state_dir: Path, readable: list[Path], lost: list[LostFile]) -> Path:
    """The first file if none is lost. Otherwise the newest that can be read, or a new one."""
    if not lost:
        return state_dir / FILE_NAME
    if readable:
        return readable[-1]
    names = (_numbered(state_dir, number) for number in range(1, 10**9))
    return next(name for name in names if not os.path.lexists(name))


def _put_together(memory: Memory, newer: Memory) -> None:
    """Add what a newer file knows. The sizes that it found are not those found first."""
    originals = {**newer.originals, **memory.originals}
    memory.apply(Change(**{name: getattr(newer, name) for name in _FIELDS}))
    memory.originals = originals


def lock(state_dir: Path, user: int | None = None) -> int:
    """Keep every other Fallow away from a state directory, which is made if it is missing; it is free again when the
    descriptor is closed.

    :param user: whose state it is; `None`: that of the user of this process.
    :raises StateError: another process has it, or it cannot be used, or other users can change it.
    """
    directory.prepare(state_dir, user)
    try:
        descriptor = os.open(state_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise directory.unusable(state_dir, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise StateError(f"a Fallow is running already: it uses the state directory {state_dir}") from None
        raise directory.unusable(state_dir, error) from error
    return descriptor


_FIELDS = ("known", "in_flight", "originals", "refreshed", "switches", "accepted")


def _line(content: Change | Memory, **head: int) -> str:
    """One line: of each field, pairs of a key and a value, which is null where it is forgotten."""
    fields = {name: _pairs(getattr(content, name)) for name in _FIELDS if getattr(content, name)}
    return json.dumps(head | fields) + "\n"


def _pairs(values: Mapping[Any, Any]) -> list[Any]:
    return [[key, _plain(value)] for key, value in values.items()]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [asdict(each) for each in value]
    return value if value is None or isinstance(value, bool | float) else asdict(value)


def _decoded(lines: list[bytes]) -> Memory:
    """What the lines of a file say.

    :raises NotReadableError: one makes no sense; with its number.
    """
    memory = Memory()
    for number, line in enumerate(lines, start=1):
        data = lost_files.decoded(line, f" in line {number}")
        if number == 1:
            lost_files.check_version(data.pop("version", None), VERSION)
        try:
            memory.apply(_change(data))
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"line {number}: {error}") from error
    return memory


def _change(data: dict[str, Any]) -> Change:
    if unknown := data.keys() - _KINDS.keys():
        raise ValueError(f"unknown field {min(unknown)!r}")
    fields: dict[str, dict[Any, Any]] = {}
    for name, pairs in data.items():
        key_of, value_of = _KINDS[name]
        fields[name] = {key_of(key): None if value is None else value_of(value) for key, value in pairs}
    return Change(**fields)


def _row_key(data: Any) -> RowKey:
    node, cluster, framework_node = map(values.text, values.of(list, data))
    return RowKey(node, cluster, framework_node)


def _sizes(data: Any) -> tuple[Resources, ...]:
    return tuple(map(_resources, values.of(list, data)))


def _original(data: Any) -> Original:
    return Original(size=_resources(data["size"]), started=values.text(data["started"]))


def _switch(data: Any) -> Switch:
    who, why = values.text(data["who"]), values.text(data["why"])
    return Switch(state=SwitchState(data["state"]), who=who, when=values.seconds(data["when"]), why=why)


def _acceptance(data: Any) -> Acceptance:
    return Acceptance(who=values.text(data["who"]), when=values.seconds(data["when"]), why=values.text(data["why"]))


def _flag(data: Any) -> bool:
    return values.of(bool, data)


def _resources(data: Any) -> Resources:
    return Resources(cpu_milli=values.amount(data["cpu_milli"]), memory_bytes=values.amount(data["memory_bytes"]))


_KINDS: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "known": (_row_key, _flag),
    "in_flight": (_row_key, _sizes),
    "originals": (_row_key, _original),
    "refreshed": (_row_key, values.seconds),
    "switches": (values.text, _switch),
    "accepted": (values.text, _acceptance),
}
"""How the keys and the values of each field are read."""
