"""What a controller tells the agent of its node's ledger: one small JSON file, which expires.

Only terminating tasks for overdraft needs it. A row that is missing, expired, of a time to come, of another node or not
well-formed is no row: then nobody is terminated for overdraft, and everything that goes by what is measured here goes
on.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fallow_core.errors import StateError
from fallow_hookspecs import trusted_path

FILE_NAME = "node_grant.json"
VERSION = 1
LONGEST_SECONDS = 60.0
"""No row lasts longer, whatever it says: what tasks hold changes faster than that."""
SKEW_SECONDS = 2.0
"""By so much the clock of who wrote it may be ahead."""
LARGEST_BYTES = 1 << 20
"""What is longer is cut, and no JSON any more."""
LARGEST_AMOUNT = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountGrant:
    """One account of the node, memory in bytes: what it has promised to tasks, its target and floor, and what tasks of
    it may still be terminated for. `stopped`: nothing of it is to run.
    """

    allocated: int
    target: int
    floor: int
    may_pay: int
    stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGrant:
    """The memory ledger of one node. `to_take_back`: allocations above what it can lend, none where that is meant.

    `written_at`: seconds since 1970, by the clock of who wrote it; it counts for `lasts_seconds` from then. `restored`:
    clusters of which nothing is changed or terminated; this alone does not expire.
    """

    node: str
    written_at: float
    lasts_seconds: float
    to_take_back: int
    accounts: Mapping[str, AccountGrant]
    restored: tuple[str, ...] = ()


def encoded(row: NodeGrant) -> str:
    """The file's text."""
    return json.dumps({"version": VERSION, **asdict(row)})


def decoded(text: bytes, node: str) -> NodeGrant:
    """The row in a file's text.

    :raises StateError: it is not one of this version, or of another node; with what is wrong.
    """
    try:
        data = _is(dict, json.loads(text), "the file")
        _is_version(data["version"])
        row = NodeGrant(
            node=_is(str, data["node"], "node"),
            written_at=_seconds(data["written_at"], "written_at"),
            lasts_seconds=_seconds(data["lasts_seconds"], "lasts_seconds"),
            to_take_back=_bytes(data["to_take_back"], "to_take_back"),
            accounts={name: _account(name, each) for name, each in _is(dict, data["accounts"], "accounts").items()},
            restored=tuple(_is(str, name, "restored") for name in _is(list, data["restored"], "restored")),
        )
    except KeyError as error:
        raise StateError(f"it lacks {error}") from None
    except (ValueError, RecursionError) as error:
        raise StateError(str(error)) from None
    if row.node != node:
        raise StateError(f"it is of the node {row.node!r}, and this is {node!r}")
    return row


def _account(name: str, data: Any) -> AccountGrant:
    found = _is(dict, data, name)
    amounts = {key: _bytes(found[key], f"{name}.{key}") for key in ("allocated", "target", "floor", "may_pay")}
    return AccountGrant(**amounts, stopped=_is(bool, found["stopped"], f"{name}.stopped"))


def _is_version(value: Any) -> None:
    if value != VERSION:
        raise ValueError(f"its version is {value!r:.80}, expected {VERSION}")


def _is(kind: type, value: Any, name: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {value!r:.80}, expected a {kind.__name__}")  # noqa: TRY004 - all mistakes are one
    return value


def _bytes(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_AMOUNT:
        raise ValueError(f"{name} is {value!r:.80}, expected a number of bytes")
    return value


def _seconds(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        raise ValueError(f"{name} is {value!r:.80}, expected a number of seconds")
    return float(value)


class GrantFile:
    """Reads the file when it has changed, and says whether it still counts. Belongs to one thread.

    Two clocks watch over a row, and the stricter one counts: the one on the wall, by which it was written, may be set;
    the monotonic one runs from when this process first saw it. `why` says why there is no row; empty if there is one.
    `restored`: the clusters that the newest well-formed row names, also after it expired or is gone: a controller that
    is silent has not switched them to anything else.
    """

    def __init__(self, path: Path, node: str) -> None:
        self.path = path
        self.why = "there was no look at it yet"
        self.restored: frozenset[str] = frozenset()
        self._node = node
        self._stamp: tuple[int, int, int] | None = None
        self._row: NodeGrant | None = None
        self._wrong = ""
        self._seen_at = 0.0
        self._spent_at = 0.0

    def row(self, now: float, wall_now: float) -> NodeGrant | None:
        """The row that counts now, if any."""
        try:
            found = self.path.stat()
        except OSError as error:
            self._stamp, self._row, self._wrong = None, None, ""
            self.why = f"{self.path}: {error.strerror}"
            return None
        stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
        if stamp != self._stamp:
            self._read(now)
            self._stamp = stamp
        self.why = self._wrong or (self._age(self._row, now, wall_now) if self._row is not None else "")
        return None if self.why else self._row

    def spend(self) -> None:
        """Tasks are terminated by the row that counts: only a newer one knows what is allocated after that."""
        self._spent_at = self._row.written_at if self._row is not None else 0.0

    def _read(self, now: float) -> None:
        before, self._row, self._wrong = self._row, None, ""
        try:
            with os.fdopen(trusted_path.open_regular(self.path, follow_link=True), "rb") as file:
                self._row = decoded(file.read(LARGEST_BYTES), self._node)
        except OSError as error:
            self._wrong = f"{self.path}: {error.strerror}"
        except StateError as error:
            self._wrong = f"{self.path}: {error}"
        if self._row is not None:
            self.restored = frozenset(self._row.restored)
        if self._row is not None and (before is None or before.written_at != self._row.written_at):
            self._seen_at = now

    def _age(self, row: NodeGrant, now: float, wall_now: float) -> str:
        """Why a row does not count; empty if it does."""
        lasts = min(row.lasts_seconds, LONGEST_SECONDS)
        if row.written_at <= self._spent_at:
            return f"{self.path}: tasks were terminated by it, and there is none that was written later"
        if row.written_at - wall_now > SKEW_SECONDS:
            return f"{self.path}: it is {row.written_at - wall_now:.0f} s from the future"
        age = max(wall_now - row.written_at, now - self._seen_at)
        return f"{self.path}: it expired {age - lasts:.0f} s ago" if age >= lasts else ""
