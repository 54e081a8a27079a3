"""Reads an agent's configuration: its files, or the copy of the last good ones if the core file is wrong."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from fallow_core.config.document import read
from fallow_core.config.load import load
from fallow_core.config.models import CoreFile
from fallow_core.config.problems import Problem
from fallow_core.config.settings import CORE_FILE, Config, PluginLoader
from fallow_core.errors import ConfigError
from fallow_core.state.last_config import CORE_COPY, FOLDER, below
from fallow_hookspecs import trusted_path


def load_or_last(path: Path, load_plugin: PluginLoader) -> Config:
    """An agent's configuration at a path, or the last good one, with the present mistake among its problems.

    :raises ConfigError: it is wrong, and no good one was kept, or other users can change that.
    """
    try:
        return load(path, load_plugin, as_agent=True)
    except ConfigError as error:
        file = (path / CORE_FILE if path.is_dir() else path).absolute()
        folder = _state_dir(file) / FOLDER
        try:
            trusted_path.check_folder(folder)  # it says which plugins are loaded, and what is terminated
            kept = load(folder / CORE_COPY, load_plugin, as_agent=True)
        except (ConfigError, OSError):
            raise error from None
        problem = Problem(file=file, message=f"{' '.join(str(error).split())}; the last good version is in force")
        moved: dict[str, Any] = {
            name: file.parent / inside
            for name in ("clusters_dir", "state_dir", "control_socket", "host_root")
            if (inside := below(getattr(kept, name), folder)) is not None
        }
        return replace(kept, file=file, problems=(*kept.problems, problem), stamps=None, **moved)


def _state_dir(file: Path) -> Path:
    """The state directory that the core file names, or the default one if it cannot be read."""
    document, _ = read(file)
    named = document.data.get("stateDir") if document is not None else None
    return file.parent / (named if isinstance(named, str) else CoreFile.model_fields["state_dir"].default)
