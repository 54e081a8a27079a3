"""JSON files whose content is valid until the host restarts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from fallow_core.errors import StateError
from fallow_core.state import durable, lost_files
from fallow_core.state.lost_files import LostFile, NotReadableError

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
VERSION = 1
"""Files without a version are older and have the same layout; they get one when they are written anew."""

_Content = TypeVar("_Content")


class BootFile:
    """One file, written as a whole and synced. Its content is below `key`.

    `lost`: the file cannot be read. It is not overwritten before it was given up.
    """

    def __init__(self, path: Path, key: str, boot_id: str | None, effect: str) -> None:
        """Remember which boot this is.

        :param boot_id: the kernel's id of this boot; `None` reads it.
        :param effect: what follows if the file cannot be read.
        """
        self.lost: LostFile | None = None
        self._path = path
        self._key = key
        self._boot_id = BOOT_ID.read_text().strip() if boot_id is None else boot_id
        self._effect = effect

    def load(self, parse: Callable[[Any], _Content], empty: _Content) -> _Content:
        """The content; `empty` if the file is missing, older than this boot, or unreadable, which sets `lost`."""
        self.lost = None
        try:
            with lost_files.reading():
                values = lost_files.decoded(lost_files.text_of(self._path))
                lost_files.check_version(values.get("version", 1), VERSION)
                return parse(values[self._key]) if _is_of(values["boot_id"], self._boot_id) else empty
        except FileNotFoundError:
            return empty
        except NotReadableError as error:
            self.lost = lost_files.lost(self._path, error, self._effect)
            return empty

    def save(self, content: object) -> None:
        """Write the content; it is on the disk when this returns.

        :raises StateError: it cannot be written, or the file before it is lost and not given up.
        """
        if self.lost is not None:
            raise StateError(f"{self._path} {self.lost.why}; nothing is written before it is given up")
        try:
            durable.write(self._path, json.dumps({"version": VERSION, "boot_id": self._boot_id, self._key: content}))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise StateError(f"cannot write {self._path}: {reason}") from error

    def given_up(self) -> None:
        """The lost file was renamed: its content counts as empty from now on."""
        self.lost = None


def _is_of(found: object, boot_id: str) -> bool:
    if not isinstance(found, str):
        raise TypeError(f"boot_id {found!r:.80} is no text")
    return found == boot_id
