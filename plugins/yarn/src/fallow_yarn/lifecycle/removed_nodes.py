"""Remembers which nodes were removed because they were empty: only these are recommissioned automatically.

Their ids are in a file of Fallow's own beside the exclude file, one a line, so that they survive a restart.
"""

import os
import tempfile
from collections.abc import Collection
from pathlib import Path

from fallow_yarn.lifecycle.list_file import ListFileError


class RemovedNodes:
    """The file at a path beside the exclude file. Change it under the lock of that file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> frozenset[str]:
        """The ids; none without a file."""
        try:
            return frozenset(self.path.read_text().split())
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise ListFileError(f"{self.path} cannot be read: {error.strerror}") from None

    def add(self, node_ids: Collection[str]) -> None:
        """Add nodes that were removed because they were empty."""
        self._write(self.read() | set(node_ids))

    def discard_hosts(self, hosts: Collection[str]) -> None:
        """Forget the nodes of these hosts."""
        self._write({node_id for node_id in self.read() if node_id.rpartition(":")[0] not in hosts})

    def _write(self, node_ids: Collection[str]) -> None:
        if set(node_ids) == self.read():
            return
        try:
            descriptor, name = tempfile.mkstemp(prefix=f"{self.path.name}.", dir=self.path.parent)
            with os.fdopen(descriptor, "w") as file:
                file.write("".join(f"{node_id}\n" for node_id in sorted(node_ids)))
            Path(name).replace(self.path)
        except OSError as error:
            raise ListFileError(f"{self.path} cannot be written: {error.strerror}") from None
