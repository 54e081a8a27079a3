"""What wakes the loop from the kernel: pressure on CPUs and on memory, and directories that come and go.

One thread waits for all of it, and costs nothing while nothing happens. Where the kernel lacks something, `missing`
says what and why: then the next look comes by the clock alone.
"""

import ctypes
import os
import select
import struct
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from fallow_core.node.procfs import PROC_ROOT

TRIGGERS = {"cpu": "some 50000 500000", "memory": "some 10000 500000"}
"""So many microseconds of stall within so many: half a second is the shortest window there is. Without
CAP_SYS_RESOURCE the kernel takes none below 2 s; looks by the clock are sooner than that.
"""
_IN_CREATE, _IN_DELETE, _IN_DELETE_SELF = 0x100, 0x200, 0x400
_IN_Q_OVERFLOW, _IN_IGNORED, _IN_ONLYDIR = 0x4000, 0x8000, 0x1000000
_CHANGES = _IN_CREATE | _IN_DELETE | _IN_DELETE_SELF
_WATCHED = _CHANGES | _IN_ONLYDIR
_EVENT = struct.Struct("iIII")
"""Number of the watch, what happened, cookie, length of the name that follows; see inotify(7)."""
_READ_BYTES = 1 << 16


class KernelEvents:
    """`pressure` and `changed` are called in its thread: with `cpu` or `memory`, and when a directory has come or gone.

    Both must be quick and safe from any thread.
    """

    def __init__(
        self, pressure: Callable[[str], None], changed: Callable[[], None], proc_root: Path = PROC_ROOT
    ) -> None:
        self.missing: dict[str, str] = {}
        self._pressure, self._changed = pressure, changed
        self._poll = select.poll()
        self._triggers: dict[int, str] = {}
        self._stop_read, self._stop_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll.register(self._stop_read, select.POLLIN)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._watched: dict[str, int] = {}
        self._gone: set[int] = set()
        self._inotify = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._inotify < 0:
            self.missing["directories"] = os.strerror(ctypes.get_errno())
        else:
            self._poll.register(self._inotify, select.POLLIN)
        for name, trigger in TRIGGERS.items():
            self._trigger(name, proc_root / "pressure" / name, trigger)
        self._thread = threading.Thread(target=self._run, name="wakes", daemon=True)
        self._thread.start()

    def has(self, name: str) -> bool:
        """Whether pressure on `cpu` or `memory` wakes."""
        return name in self._triggers.values()

    def watch(self, folders: Iterable[str]) -> list[str]:
        """From now on these are watched, as far as they are there, and no others. Those that are."""
        if self._inotify < 0:
            return []
        wanted, gone = set(folders), set(self._gone)
        self._gone -= gone
        self._watched = {folder: number for folder, number in self._watched.items() if number not in gone}
        for folder in self._watched.keys() - wanted:
            self._libc.inotify_rm_watch(self._inotify, self._watched.pop(folder))
        for folder in wanted - self._watched.keys():
            number = self._libc.inotify_add_watch(self._inotify, os.fsencode(folder), _WATCHED)
            if number >= 0:
                self._watched[folder] = number
        return list(self._watched)

    def close(self) -> None:
        """End the thread, and close everything."""
        os.write(self._stop_write, b"x")
        self._thread.join()
        for descriptor in (*self._triggers, self._stop_read, self._stop_write):
            os.close(descriptor)
        if self._inotify >= 0:
            os.close(self._inotify)

    def _trigger(self, name: str, path: Path, trigger: str) -> None:
        descriptor = -1
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
            os.write(descriptor, trigger.encode() + b"\0")
        except OSError as error:
            self.missing[f"pressure of {name}"] = f"{path}: {error.strerror}"
            if descriptor >= 0:
                os.close(descriptor)
            return
        self._triggers[descriptor] = name
        self._poll.register(descriptor, select.POLLPRI)

    def _run(self) -> None:
        while True:
            changed = False
            for descriptor, events in self._poll.poll():
                if descriptor == self._stop_read:
                    return
                if descriptor == self._inotify:
                    changed = self._drain()
                elif events & select.POLLERR:
                    self._poll.unregister(descriptor)  # it comes no more
                else:
                    self._pressure(self._triggers[descriptor])
            if changed:
                self._changed()

    def _drain(self) -> bool:
        """Read what is there; whether a directory has come or gone."""
        changed = False
        with suppress(BlockingIOError):
            while content := os.read(self._inotify, _READ_BYTES):
                at = 0
                while at < len(content):
                    number, mask, _, length = _EVENT.unpack_from(content, at)
                    at += _EVENT.size + length
                    changed |= bool(mask & (_CHANGES | _IN_Q_OVERFLOW))
                    if mask & _IN_IGNORED:
                        self._gone.add(number)
        return changed
