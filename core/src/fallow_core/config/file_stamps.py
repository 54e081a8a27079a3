"""Detecting that a configuration file was changed, added or removed, without reading it."""

from collections.abc import Mapping
from pathlib import Path

Stamp = tuple[int, int, int, int]
"""mtime and ctime in nanoseconds, size in bytes, inode."""

Stamps = Mapping[Path, Stamp | None]
"""The stamp of each file, by absolute path; `None` if the file cannot be examined."""


def stamps(core_file: Path, clusters_dir: Path) -> Stamps:
    """The stamps now of the core file and of every possible cluster file."""
    core_file, clusters_dir = core_file.absolute(), clusters_dir.absolute()
    try:
        files = [entry for entry in clusters_dir.iterdir() if entry.suffix in {".yaml", ".yml"}]
    except OSError:
        return {core_file: stamp(core_file), clusters_dir: None}
    return {file: stamp(file) for file in (core_file, *files)}


def stamp(file: Path) -> Stamp | None:
    """A value that changes whenever the file changes."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


class FileChanges:
    """Detects that files have changed and are stable again: a file that is being written must not be read.

    `read` has the stamps of the files when they were last read. If it is None, the first call of `settled` sets it.
    """

    def __init__(self, read: Stamps | None) -> None:
        self.read = read
        self._before: Stamps | None = None

    def settled(self, now: Stamps) -> bool:
        """Whether the files differ from those that were read, and have not changed since the last call."""
        if self.read is None:
            self.read = now
        stable, self._before = now == self._before, now
        return stable and now != self.read
