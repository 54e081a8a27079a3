"""How the files look from outside: what tells without reading them that one was changed, added or removed."""

from collections.abc import Mapping
from pathlib import Path

Stamp = tuple[int, int, int, int]
"""Times of the last change of content and of anything (nanoseconds), size in bytes, inode."""

Look = Mapping[Path, Stamp | None]
"""Each file and what its state is; `None` for one that cannot be seen."""


def look(core_file: Path, clusters_dir: Path) -> Look:
    """How the core file and all that may be a cluster file look now, by absolute path."""
    core_file, clusters_dir = core_file.absolute(), clusters_dir.absolute()
    try:
        files = [entry for entry in clusters_dir.iterdir() if entry.suffix in {".yaml", ".yml"}]
    except OSError:
        return {core_file: stamp(core_file), clusters_dir: None}
    return {file: stamp(file) for file in (core_file, *files)}


def stamp(file: Path) -> Stamp | None:
    """What changes whenever the file does."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


class FileStamps:
    """Says when files have changed and come to rest: one that is being written must not be read half.

    `taken` is how they looked when they were last read; without it, the first look counts as that.
    """

    def __init__(self, taken: Look | None) -> None:
        self.taken = taken
        self._before: Look | None = None

    def settled(self, now: Look) -> bool:
        """Whether the files are not as they were read, and look as they did the last time."""
        if self.taken is None:
            self.taken = now
        rests, self._before = now == self._before, now
        return rests and now != self.taken
