"""The last good configuration, kept in the state directory, so that an agent can start when its files are wrong.

It is a copy of the files. It is used only when the core file is wrong: a wrong cluster file affects its cluster alone.
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from fallow_core.log import event
from fallow_core.state import directory, durable
from fallow_hookspecs import trusted_path

log = logging.getLogger("fallow.run")

FOLDER = "policy"
CORE_COPY = "fallow.yaml"


def keep(state_dir: Path, core_file: Path, clusters_dir: Path, cluster_files: Iterable[Path]) -> str:
    """Copy the files of a configuration. Return why they could not be copied; empty if they were.

    Cluster files are copied if their directory is below that of the core file; otherwise the copy of the core file
    names the same directory.
    """
    folder, clusters = state_dir / FOLDER, below(clusters_dir, core_file.parent)
    try:
        _copy(core_file, folder / CORE_COPY)
        if clusters is None:
            return ""
        wanted = {folder / clusters / file.name: file for file in cluster_files}
        for copy, file in wanted.items():
            _copy(file, copy)
        for copy in (folder / clusters).glob("*.yaml"):
            if copy not in wanted:
                copy.unlink()
    except OSError as error:
        event(log, logging.ERROR, "policy_not_kept", folder=folder, reason=error.strerror)
        return f"the policy cannot be kept in {folder}: {error.strerror}"
    return ""


def below(path: Path, folder: Path) -> Path | None:
    """A path relative to a folder; `None` if it is, or may be, outside of the folder."""
    inside = path.relative_to(folder) if path.is_relative_to(folder) else None
    return None if inside is None or ".." in inside.parts else inside


def _copy(file: Path, copy: Path) -> None:
    text = file.read_text()
    if not copy.exists() or copy.read_bytes() != text.encode():  # a damaged copy need not be a text
        trusted_path.make_folder(copy.parent, directory.MODE)
        durable.write(copy, text)
