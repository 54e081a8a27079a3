"""A Fallow on real files, whose plugin `alpha` builds the framework that `spec.host` names."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.tests.fake_framework import Framework, plugin_of
from core.tests.fake_standalone import FakeHost, until
from pydantic import BaseModel

from fallow_core.config.load import load
from fallow_core.errors import PluginLoadError
from fallow_core.model.plugin import LoadedPlugin
from fallow_core.runtime.agent import AgentProcess
from fallow_core.runtime.standalone import Standalone
from fallow_hookspecs import ClusterConfig, Plugin, Process

CORE = """\
apiVersion: fallow/v1
kind: Fallow
stateDir: state
controlSocket: control
metrics: off
node: {name: n1}
sampleInterval: 100ms
capacity: {cpu: {watermark: 100%}, memory: {watermark: 100%}}
publishing: {mode: enforce, growthDelay: 0s, interval: 1s, reportInterval: 1s}
"""
CLUSTER = """\
apiVersion: fallow/v1
kind: Cluster
metadata: {{name: {name}}}
plugin: alpha
spec: {{host: {host}}}
"""


class Spec(BaseModel, extra="forbid"):
    host: str


class Place:
    """A folder with configuration files, the frameworks that they may name, and a Fallow that follows the files."""

    def __init__(self, folder: Path, **frameworks: Framework) -> None:
        self.folder = folder
        self.frameworks = frameworks
        self.builds: list[str] = []
        self.wait: dict[str, threading.Event] = {}
        self.host = FakeHost()
        for pid, node in enumerate((node for each in frameworks.values() for node in each.nodes.values()), start=5000):
            node.process = Process(pid, 1)
        (folder / "clusters.d").mkdir()
        self.core()
        self.fallow: Standalone

    def core(self, more: str = "", **changes: str) -> None:
        """Write the core file, with lines replaced by the name of their key."""
        lines = [changes.pop(line.split(":")[0], line) for line in CORE.splitlines()]
        assert not changes
        (self.folder / "fallow.yaml").write_text("\n".join([*lines, more]))

    def cluster(self, name: str, more: str = "", host: str = "") -> Path:
        """Write a cluster file."""
        file = self.folder / "clusters.d" / f"{name}.yaml"
        file.write_text(CLUSTER.format(name=name, host=host or name) + more)
        return file

    def start(self) -> Standalone:
        self.fallow = Standalone(load(self.folder, self.load_plugin), load_plugin=self.load_plugin)
        self.fallow.sampler = self.host
        self.fallow.follow_files()
        return self.fallow

    def start_agent(self) -> AgentProcess:
        """An agent instead."""
        agent = AgentProcess(load(self.folder, self.load_plugin), load_plugin=self.load_plugin)
        agent.sampler = self.host
        agent.follow_files()
        return agent

    def load_plugin(self, name: str) -> LoadedPlugin:
        if name != "alpha":
            raise PluginLoadError(f"plugin {name!r} is not installed")
        self._wait(name)

        def build(cluster: ClusterConfig) -> Any:
            self.builds.append(cluster.spec.host)
            self._wait(cluster.spec.host)
            return self.frameworks[cluster.spec.host]

        loaded = plugin_of(build)
        plugin = Plugin(name=name, api_levels=(0, 0), config_model=lambda: Spec, build=build)
        return LoadedPlugin(plugin=plugin, source=loaded.source)

    def _wait(self, name: str) -> None:
        """Loading the plugin, or building the framework, takes until its event is set."""
        if name in self.wait:
            self.wait[name].wait(20)

    def until(self, condition: Callable[[], object]) -> None:
        until(self.fallow, condition)

    def read_again(self) -> None:
        """Drive it until it has read the files once more."""
        assert self.fallow.files is not None
        before = self.fallow.refusals.taken + self.fallow.refusals.refused
        self.fallow.files.ask()
        self.until(lambda: self.fallow.refusals.taken + self.fallow.refusals.refused > before)

    def steps(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= deadline)


def framework(**nodes: Any) -> Framework:
    made = Framework(time.monotonic, **nodes)
    made.delay_seconds = 0.02
    return made
