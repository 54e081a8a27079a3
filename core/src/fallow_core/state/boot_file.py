"""JSON files whose content is valid until the host restarts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from fallow_core.errors import StateError
from fallow_core.state import durable

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_UNREADABLE = (OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)

_Content = TypeVar("_Content")


class BootFile:
    """One file, written as a whole and synced. Its content is below `key`."""

    def __init__(self, path: Path, key: str, boot_id: str | None) -> None:
        """Remember which boot this is.

        :param boot_id: the kernel's id of this boot; `None` reads it.
        """
        self._path = path
        self._key = key
        self._boot_id = BOOT_ID.read_text().strip() if boot_id is None else boot_id

    def load(self, parse: Callable[[Any], _Content], empty: _Content, lost: str) -> tuple[_Content, str]:
        """The content, and an error message if the file is unreadable.

        :param empty: the content if the file is missing, unreadable, or older than this boot.
        :param lost: the end of the error message: what is lost.
        """
        try:
            values = json.loads(self._path.read_bytes())
            return (parse(values[self._key]) if values["boot_id"] == self._boot_id else empty), ""
        except FileNotFoundError:
            return empty, ""
        except _UNREADABLE as error:
            return empty, f"{self._path} is unreadable ({error}): {lost}"

    def save(self, content: object) -> None:
        """Write the content; it is on the disk when this returns.

        :raises StateError: it cannot be written.
        """
        try:
            durable.write(self._path, json.dumps({"boot_id": self._boot_id, self._key: content}))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise StateError(f"cannot write {self._path}: {reason}") from error
