"""The last configuration that was right, kept in the state directory: an agent has to start also when there is none.

It is kept as files, just as they were. They are used only when the core file cannot be: a cluster file that is wrong
concerns its own cluster alone.
"""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from fallow_core import durable
from fallow_core.config.document import read
from fallow_core.config.load import CORE_FILE, PluginLoader, load
from fallow_core.config.models import CoreFile
from fallow_core.config.problems import Problem
from fallow_core.config.settings import Config
from fallow_core.errors import ConfigError
from fallow_core.log import event

log = logging.getLogger("fallow.run")

FOLDER = "policy"


def keep(config: Config) -> str:
    """Keep the files of a configuration; why they could not be kept, empty if they were."""
    folder, clusters = config.state_dir / FOLDER, _below(config.clusters_dir, config.file.parent)
    try:
        _copy(config.file, folder / CORE_FILE)
        if clusters is None:
            return ""  # the copy names the same directory
        wanted = {folder / clusters / cluster.file.name: cluster.file for cluster in config.clusters}
        for copy, file in wanted.items():
            _copy(file, copy)
        for copy in (folder / clusters).glob("*.yaml"):
            if copy not in wanted:
                copy.unlink()
    except OSError as error:
        event(log, logging.ERROR, "policy_not_kept", folder=folder, reason=error.strerror)
        return f"the policy cannot be kept in {folder}: {error.strerror}"
    return ""


def load_or_last(path: Path, load_plugin: PluginLoader) -> Config:
    """The configuration at a path, or the last one that was kept, with what is wrong now among its problems.

    :raises ConfigError: it is wrong, and none was kept.
    """
    try:
        return load(path, load_plugin)
    except ConfigError as error:
        file = (path / CORE_FILE if path.is_dir() else path).absolute()
        folder = _state_dir(file) / FOLDER
        try:
            kept = load(folder / CORE_FILE, load_plugin)
        except ConfigError:
            raise error from None
        problem = Problem(file=file, message=f"{' '.join(str(error).split())}; what it said last is in force")
        moved: dict[str, Any] = {
            name: file.parent / below
            for name in ("clusters_dir", "state_dir", "control_socket", "host_root")
            if (below := _below(getattr(kept, name), folder)) is not None
        }
        return replace(kept, file=file, problems=(*kept.problems, problem), seen=None, **moved)


def _state_dir(file: Path) -> Path:
    """Where the state is, as far as the core file can be read."""
    document, _ = read(file)
    named = document.data.get("stateDir") if document is not None else None
    return file.parent / (named if isinstance(named, str) else CoreFile.model_fields["state_dir"].default)


def _below(path: Path, folder: Path) -> Path | None:
    """A path relative to the folder that it is in; `None` if it is elsewhere."""
    return path.relative_to(folder) if path.is_relative_to(folder) else None


def _copy(file: Path, copy: Path) -> None:
    text = file.read_text()
    if not copy.exists() or copy.read_text() != text:
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        durable.write(copy, text)
