"""A copilot's process for tests, and instances of core's plugin host to call it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from fallow_core.model.plugin import LoadedPlugin
from fallow_core.plugins import discovery
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Call
from fallow_hookspecs import ClusterConfig, Role

ROOT = Path(__file__).resolve().parents[2]
_T = TypeVar("_T")


def lay_out(folder: Path, name: str, target: str) -> Path:
    """A folder that, on the Python path, is an installed distribution with one plugin."""
    info = folder / f"fallow_{name}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fallow-{name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[fallow.plugins]\n{name} = {target}\n")
    return folder


class Copilot:
    """`fallow-copilot serve` for one plugin; it may be started again."""

    def __init__(self, folder: Path, plugin: str, spec: Mapping[str, Any], *, path: Iterable[Path] = ()) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.socket = folder / "run" / "socket"
        self.config = folder / f"{plugin}.yaml"
        self.output = folder / "output.txt"
        document = {
            "apiVersion": "fallow/v1",
            "kind": "Cluster",
            "metadata": {"name": "batch"},
            "plugin": plugin,
            "spec": dict(spec),
        }
        self.config.write_text(yaml.safe_dump(document))
        self._command = [
            *(sys.executable, "-m", "fallow_hookspecs.copilot", "serve", plugin),
            *("--config", str(self.config), "--socket", str(self.socket)),
        ]
        self._environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT)))}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        wait_for(lambda: b"serving" in self.output.read_bytes() or self.process_has_ended())
        assert not self.process_has_ended(), self.output.read_text()

    def process_has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)

    def terminate(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(10)


def wait_for(test: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.01)


def build(loaded: LoadedPlugin, spec: Any, wake: Callable[[], None] | None = None) -> PluginInstance:
    """An instance as core builds it, with both roles."""
    validated = loaded.plugin.config_model().model_validate(spec)
    config = ClusterConfig(name="batch", roles=frozenset(Role), spec=validated)
    return PluginInstance(loaded, config, clock=time.monotonic, wake=wake)


def through(copilot: Copilot, wake: Callable[[], None] | None = None) -> PluginInstance:
    """An instance that a copilot answers for."""
    return build(discovery.load("copilot"), {"socket": str(copilot.socket)}, wake)


def outcome(call: Call[_T] | None) -> Any:
    """The answer of a call, or its failure."""
    assert call is not None, "the lane is busy, or backs off"
    wait_for(lambda: call.done)
    return call.outcome
