"""Files that are whole and on the disk, whatever happens while they are written."""

import os
from pathlib import Path

from fallow_hookspecs import trusted_path


def write(path: Path, text: str) -> None:
    """Replace a file: its new content is on the disk when this returns, and until then the old one is. A link with its
    name is replaced too, and what it leads to stays.

    :raises OSError: it cannot be written; then the old content stays.
    """
    part = path.with_suffix(".part")
    with os.fdopen(trusted_path.create(part), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
