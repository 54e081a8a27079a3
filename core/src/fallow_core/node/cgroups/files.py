"""The calls to the kernel's file systems; tests replace them by a fake kernel."""

import contextlib
import os

_READ_BYTES = 1 << 20
_LEAF_LINKS = 2
"""The link count of a directory without subdirectories on cgroupfs; file systems that count no links report 1."""


class Files:
    """Every call may raise the `OSError` of the kernel."""

    def read(self, path: str) -> str:
        """The content of a file."""
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            while part := os.read(file, _READ_BYTES):
                parts.append(part)
        finally:
            os.close(file)
        return b"".join(parts).decode(errors="surrogateescape")

    def write(self, path: str, text: str) -> None:
        """Write a value in one call, so that the kernel accepts or refuses it as a whole."""
        file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, text.encode(errors="surrogateescape"))
        finally:
            os.close(file)

    def folders(self, path: str) -> list[str]:
        """The names of the directories in a directory."""
        if os.stat(path).st_nlink == _LEAF_LINKS:  # noqa: PTH116 - one kind of path in all calls
            return []
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]

    def make(self, path: str) -> None:
        """Create a directory, unless it exists."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o755)  # noqa: PTH102 - one kind of path in all calls

    def remove(self, path: str) -> None:
        """Remove a directory."""
        os.rmdir(path)  # noqa: PTH106 - one kind of path in all calls

    def identity(self, path: str) -> int:
        """A number that is unique for a directory, even if another one had the same path before."""
        return os.stat(path).st_ino  # noqa: PTH116 - one kind of path in all calls
