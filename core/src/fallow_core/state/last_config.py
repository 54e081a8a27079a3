"""The last configuration that was right, kept in the state directory: an agent has to start also when there is none.

It is kept as files, just as they were. They are used only when the core file cannot be: a cluster file that is wrong
concerns its own cluster alone.
"""

import logging
from pathlib import Path

from fallow_core.config.settings import CORE_FILE, Config
from fallow_core.log import event
from fallow_core.state import durable

log = logging.getLogger("fallow.run")

FOLDER = "policy"


def keep(config: Config) -> str:
    """Keep the files of a configuration; why they could not be kept, empty if they were."""
    folder, clusters = config.state_dir / FOLDER, below(config.clusters_dir, config.file.parent)
    try:
        _copy(config.file, folder / CORE_FILE)
        if clusters is None:
            return ""  # the copy names the same directory
        wanted = {folder / clusters / cluster.file.name: cluster.file for cluster in config.correct_clusters}
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
    """A path relative to the folder that it is in; `None` if it is elsewhere."""
    return path.relative_to(folder) if path.is_relative_to(folder) else None


def _copy(file: Path, copy: Path) -> None:
    text = file.read_text()
    if not copy.exists() or copy.read_text() != text:
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        durable.write(copy, text)
