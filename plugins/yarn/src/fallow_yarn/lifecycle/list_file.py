"""An exclude or include file: read, and replaced atomically with the same owner and mode.

Only root and the user who runs this may be able to replace the file, or a link to it, or a directory on the way: others
would choose which file is written.
"""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fallow_hookspecs import trusted_path
from fallow_yarn.lifecycle.host_list import HostList, HostListError, PlainList
from fallow_yarn.lifecycle.xml_list import XmlList

MOST_TRIES: Final = 5
LARGEST_BYTES: Final = 16 << 20


class ListFileError(Exception):
    """An exclude or include file cannot be read or written."""


class ListFile:
    """The file at a path, which may be a symbolic link."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kind: HostList = (
            XmlList() if path.name.endswith(".xml") else PlainList()
        )  # as the ResourceManager distinguishes them

    def __str__(self) -> str:
        return str(self.path)

    def read(self) -> str:
        """Its text; ListFileError if it cannot be read."""
        return self._read()[0]

    def hosts(self) -> dict[str, int | None]:
        """Its hosts, with their own graces."""
        try:
            return dict(self.kind.hosts(self.read()))
        except HostListError as error:
            raise ListFileError(f"{self.path}: {error}") from None

    def change(self, edit: Callable[[str], str]) -> bool:
        """Replace its text by the result of `edit`; whether it differs. Retried if another process wrote the file.

        :raises ListFileError: it cannot be read or written; then it is unchanged.
        """
        for _ in range(MOST_TRIES):
            before, seen = self._read()
            try:
                after = edit(before)
            except HostListError as error:
                raise ListFileError(f"{self.path}: {error}") from None
            if after == before:
                return False
            if self._replace(after, seen):
                return True
        raise ListFileError(f"{self.path}: another process keeps writing it; try again")

    def check_writable(self) -> None:
        """ListFileError if it cannot be replaced. Changes nothing."""
        _, seen = self._read()
        self._written("", seen).unlink()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold its lock; ListFileError if another fallow holds it."""
        lock = self.beside("fallow-lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ListFileError(f"{lock} cannot be written: {error.strerror}; run this as {self._owner()}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise ListFileError(f"{self.path}: another fallow is decommissioning with it; wait for its end") from None
        finally:
            os.close(descriptor)

    def beside(self, suffix: str) -> Path:
        """A hidden file of Fallow's own in its directory; ListFileError if others may change what is there."""
        return self._target().with_name(f".{self.path.name}.{suffix}")

    def _target(self) -> Path:
        try:
            return trusted_path.target(self.path)
        except trusted_path.UntrustedPathError as error:
            raise ListFileError(f"{self.path}: {error}, or run this as that user") from None
        except OSError as error:
            raise ListFileError(f"{self.path} cannot be read: {error.strerror}") from None

    def _read(self) -> tuple[str, os.stat_result]:
        try:
            descriptor = trusted_path.open_regular(self._target())
            with os.fdopen(descriptor, encoding="utf-8", newline="") as file:
                status = os.fstat(descriptor)
                if status.st_size > LARGEST_BYTES:
                    raise ListFileError(f"{self.path} has more than {LARGEST_BYTES} bytes")
                return file.read(LARGEST_BYTES), status
        except FileNotFoundError:
            raise ListFileError(
                f"{self.path} does not exist; if the ResourceManager reads it, create it empty"
            ) from None
        except UnicodeDecodeError:
            raise ListFileError(f"{self.path}: it is not UTF-8 text") from None
        except OSError as error:
            raise ListFileError(f"{self.path} cannot be read: {error.strerror}; run this as its owner") from None

    def _replace(self, text: str, seen: os.stat_result) -> bool:
        """Whether it was replaced; false if another process changed it since it was read."""
        new = self._written(text, seen)
        try:
            now = self._target().stat()
            if (now.st_ino, now.st_mtime_ns, now.st_size) != (seen.st_ino, seen.st_mtime_ns, seen.st_size):
                new.unlink()
                return False
            new.replace(self._target())
        except OSError as error:
            new.unlink(missing_ok=True)
            raise ListFileError(f"{self.path} cannot be replaced: {error.strerror}") from None
        return True

    def _written(self, text: str, like: os.stat_result) -> Path:
        """Write the text to a new file beside it, with the same owner and mode."""
        folder = self._target().parent
        new: Path | None = None
        try:
            descriptor, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=folder)
            new = Path(name)
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                if (os.geteuid(), os.getegid()) != (like.st_uid, like.st_gid):
                    os.fchown(file.fileno(), like.st_uid, like.st_gid)
                os.fchmod(file.fileno(), like.st_mode & 0o777)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            if new is not None:
                new.unlink(missing_ok=True)
            raise ListFileError(
                f"{self.path} cannot be replaced in {folder}: {error.strerror}; run this as {self._owner()}"
            ) from None
        return new

    def _owner(self) -> str:
        try:
            return f"{self._target().owner()} or root"
        except (OSError, KeyError, ListFileError):
            return "root"
