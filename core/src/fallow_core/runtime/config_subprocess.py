"""Reading an agent's files in a process of its own: what checks them takes a quarter of the memory that an agent needs.

The process reads, hands the settings over and ends. Plugins are named in what it hands over, and imported by the agent.
Where any of that cannot be, the files are read in this process.
"""

import logging
import os
import pickle
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from fallow_core.config.settings import Config, PluginLoader
from fallow_core.errors import ConfigError
from fallow_core.log import event
from fallow_core.plugins import discovery
from fallow_hookspecs import Plugin

log = logging.getLogger("fallow.run")

READ_SECONDS = 25.0

Read = Path | Config
"""What is to be read: the files at a path, or again those of a configuration."""


class Reading:
    """Begins at once; `result` waits for the end."""

    def __init__(self, read: Read, load_plugin: PluginLoader = discovery.load) -> None:
        self._read, self._load_plugin = read, load_plugin
        self._process: subprocess.Popen[bytes] | None = None
        self._why = ""
        try:
            self._process = _started(_pickled(read))
        except Exception as error:  # no memory, no process, or a plugin's value that cannot be handed over
            self._why = f"{type(error).__name__}: {error}"

    def result(self) -> Config:
        """The settings.

        :raises ConfigError: the core file is wrong, and no earlier one was kept; never where they are read again.
        """
        found = None if self._process is None else self._answer(self._process)
        if isinstance(found, ConfigError):
            raise found
        if isinstance(found, Config):
            return found
        self._why = self._why or str(found)
        event(log, logging.WARNING, "files_read_here", reason=self._why)
        return read_here(self._read, self._load_plugin)

    def _answer(self, process: "subprocess.Popen[bytes]") -> object:
        try:
            answer, _ = process.communicate(timeout=READ_SECONDS)
            return _Unpickler(BytesIO(answer), self._load_plugin).load()
        except Exception as error:
            self._why = f"{type(error).__name__}: {error}"
            process.kill()
            process.wait()
            return None


def read_again(config: Config) -> Config:
    """What the files of a configuration say now."""
    return Reading(config).result()


def read_here(read: Read, load_plugin: PluginLoader) -> Config:
    """Read in this process.

    :raises ConfigError: as `Reading.result`.
    """
    from fallow_core.config.load import load_again  # with the models of files
    from fallow_core.runtime.agent_config import load_or_last

    if isinstance(read, Config):
        return load_again(read, load_plugin, as_agent=True)
    return load_or_last(read, load_plugin)


def main() -> None:
    """Read what the standard input says, and write the settings, or the error, to the standard output."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a plugin prints when it is imported is no part of the answer
    read = _Unpickler(sys.stdin.buffer, discovery.load).load()
    found: Config | ConfigError
    try:
        found = read_here(read, discovery.load)
    except ConfigError as error:
        found = error
    try:
        answer.write(_pickled(found))
    except Exception as error:  # a plugin's value that cannot be handed over
        answer.write(_pickled(f"{type(error).__name__}: {error}"))
    answer.close()


def _started(request: bytes) -> "subprocess.Popen[bytes]":
    file = os.memfd_create("fallow-files")
    try:
        os.write(file, request)
        os.lseek(file, 0, os.SEEK_SET)
        command = [sys.executable, "-P", "-c", f"from {__name__} import main; main()"]
        return subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE)  # noqa: S603 - itself
    finally:
        os.close(file)


class _Pickler(pickle.Pickler):
    """Plugins go by their names: what they name may be anything."""

    def persistent_id(self, obj: Any) -> str | None:
        return obj.name if isinstance(obj, Plugin) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], load_plugin: PluginLoader) -> None:
        super().__init__(file)
        self._load_plugin = load_plugin

    def persistent_load(self, pid: Any) -> Plugin:
        return self._load_plugin(pid).plugin


def _pickled(value: Read | ConfigError | str) -> bytes:
    file = BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()
