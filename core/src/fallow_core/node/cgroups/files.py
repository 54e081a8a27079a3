"""The calls to the kernel's file systems; a test puts a fake kernel in their place."""

import contextlib
import os

_READ_BYTES = 1 << 20
_LEAF_LINKS = 2
"""Of a directory without directories in it, where they are counted as links: cgroupfs does, others say 1 for all."""


class Files:
    """Every call raises `OSError`, as the kernel says it."""

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
        """Write a value in one call: the kernel takes it as a whole or not at all."""
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
        """Make a directory; one that is there already will do."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o755)  # noqa: PTH102 - one kind of path in all calls

    def remove(self, path: str) -> None:
        """Remove a directory."""
        os.rmdir(path)  # noqa: PTH106 - one kind of path in all calls

    def identity(self, path: str) -> int:
        """A number that no other directory of this kind has or had, also one that had the same path."""
        return os.stat(path).st_ino  # noqa: PTH116 - one kind of path in all calls
