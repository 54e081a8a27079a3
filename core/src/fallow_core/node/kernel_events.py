"""Events from the kernel: pressure on CPUs and on memory, and directories that appear or disappear.

One thread waits for all events, at no cost while nothing happens. `missing` names the events that this kernel lacks,
with the reason; the next probe then notices the changes.
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
"""Microseconds of stall within a window; half a second is the shortest window. Without CAP_SYS_RESOURCE the kernel
accepts only windows from 2 s on, which is longer than the interval of probes.
"""
_IN_CREATE, _IN_DELETE, _IN_DELETE_SELF = 0x100, 0x200, 0x400
_IN_Q_OVERFLOW, _IN_IGNORED, _IN_ONLYDIR = 0x4000, 0x8000, 0x1000000
_CHANGES = _IN_CREATE | _IN_DELETE | _IN_DELETE_SELF
_WATCHED = _CHANGES | _IN_ONLYDIR
_EVENT = struct.Struct("iIII")
"""The watch, the mask of events, a cookie, and the length of the name that follows; see inotify(7)."""
_READ_BYTES = 1 << 16


class KernelEvents:
    """Calls `pressure` with `cpu` or `memory`, and `changed` after a directory has appeared or disappeared.

    Both are called in its thread, and must return quickly.
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
        self._thread = threading.Thread(target=self._run, name="kernel-events", daemon=True)
        self._thread.start()

    def has(self, name: str) -> bool:
        """Whether there are events for pressure on `cpu` or `memory`."""
        return name in self._triggers.values()

    def watch(self, folders: Iterable[str]) -> list[str]:
        """Watch these directories and no others; those that exist, which are watched now."""
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
        """Stop the thread, and close all files."""
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
                    self._poll.unregister(descriptor)  # no further events
                else:
                    self._pressure(self._triggers[descriptor])
            if changed:
                self._changed()

    def _drain(self) -> bool:
        """Read all events; whether a directory has appeared or disappeared."""
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
