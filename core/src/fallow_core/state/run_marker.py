"""A file that is there while a Fallow runs. If the next run finds it, the last one did not stop in order."""

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fallow_core.errors import StateError
from fallow_core.state import durable, lost_files, values
from fallow_core.state.lost_files import NotReadableError

FILE_NAME = "running.json"
BOOT_ID, VMSTAT = "sys/kernel/random/boot_id", "vmstat"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """A run that did not stop in order. `since`: when it began, in local time; empty if it is not known, as `pid`."""

    pid: str = ""
    since: str = ""
    why: str


class RunMarker:
    """The marker in one state directory. Only the Fallow that has locked the directory may call `begin` and `end`."""

    def __init__(self, state_dir: Path, proc_root: Path = Path("/proc")) -> None:
        self._path = state_dir / FILE_NAME
        self._proc_root = proc_root

    def last_run(self) -> LastRun | None:
        """The run whose marker is there; `None` if the last one stopped in order, or this user may not read it."""
        try:
            with lost_files.reading():
                found = lost_files.decoded(lost_files.text_of(self._path))
                pid, begun_at = values.amount(found["pid"]), values.seconds(found["since"])
                boot_id, oom_kills = values.text(found["boot_id"]), values.amount(found["oom_kills"])
                since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(begun_at))
        except FileNotFoundError:
            return None
        except NotReadableError as error:
            if isinstance(error.__cause__, PermissionError):
                return None
            return LastRun(why=f"its marker {self._path} is unreadable: it {error}")
        return LastRun(pid=f"{pid}", since=since, why=self._why(boot_id, oom_kills))

    def begin(self, wall_now: float) -> None:
        """A run begins, at a time in seconds since 1970.

        :raises StateError: the marker cannot be written.
        """
        content = {
            "pid": os.getpid(),
            "since": wall_now,
            "boot_id": self._boot_id(),
            "oom_kills": self._oom_kills(),
        }
        try:
            durable.write(self._path, json.dumps(content))
        except OSError as error:
            raise StateError(f"cannot write {self._path}: {error.strerror}") from error

    def end(self) -> None:
        """The run stops in order."""
        with suppress(OSError):
            self._path.unlink()

    def _why(self, boot_id: str, oom_kills: int) -> str:
        """What is known of the end of a run that began on that boot, with that many kills for memory before it."""
        if boot_id != self._boot_id():
            return "the host has restarted since"
        killed = self._oom_kills() - oom_kills
        if killed <= 0:
            return "it was killed, or it failed; not for lack of memory, as the kernel counts no such kill since"
        return f"it was killed, or it failed; the kernel counts {killed} processes killed for lack of memory since"

    def _boot_id(self) -> str:
        with suppress(OSError):
            return (self._proc_root / BOOT_ID).read_text().strip()
        return ""

    def _oom_kills(self) -> int:
        """The processes that the kernel has killed for lack of memory since it started, in groups and on the host."""
        with suppress(OSError):
            for line in (self._proc_root / VMSTAT).read_text().splitlines():
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    return int(number)
        return 0
