"""A standalone Fallow whose frameworks live in memory, and whose host has the load that a test says."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.tests.fake_framework import CAPACITY, ENFORCE, WHOLE_NODE, Framework, cluster_config, plugin_of

from fallow_core.api.control_socket import ControlServer
from fallow_core.config.models import CoreFile
from fallow_core.config.settings import ClusterSettings, Config
from fallow_core.config.settings_from_models import config_of
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import AccountPolicy
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.node.host_sampler import HostSampler
from fallow_core.runtime.node_process import NodeProcess
from fallow_core.runtime.standalone import Standalone
from fallow_hookspecs import ClusterConfig, Process, ResourceName, Resources

Build = Callable[[ClusterConfig], Any]


class FakeHost(HostSampler):
    """A host whose use is what a test says; `lacks` are the resources that cannot be read, and why."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self.used = Resources(0, 0)
        self.lacks: dict[ResourceName, str] = {}
        self.daemons: list[Process] = []

    @property
    def missing(self) -> Mapping[ResourceName, str]:
        return self.lacks

    def sample(self, daemons: Collection[Process] = ()) -> NodeSample:
        self.daemons = list(daemons)
        at = self._clock()
        cpu = Usage(measured_at=at, capacity=CAPACITY.cpu_milli, used=self.used.cpu_milli, batch_used=0)
        memory = Usage(measured_at=at, capacity=CAPACITY.memory_bytes, used=self.used.memory_bytes, batch_used=0)
        return NodeSample(cpu=None if "cpu" in self.lacks else cpu, memory=None if "memory" in self.lacks else memory)


def cluster_file(name: str, build: Build, folder: Path) -> ClusterSettings:
    return ClusterSettings(
        file=folder / "clusters.d" / f"{name}.yaml",
        plugin=plugin_of(build),
        config=cluster_config(name),
        account=AccountPolicy(),
        node_selector={},
    )


def config(folder: Path, builds: Mapping[str, Build | Framework], **changes: Any) -> Config:
    """Settings for a Fallow below a folder. `builds`: by name of a cluster, its framework or how it is built."""

    def build_of(what: Build | Framework) -> Build:
        return (lambda _: what) if isinstance(what, Framework) else what

    model = CoreFile.model_validate({"apiVersion": "fallow/v1", "kind": "Fallow"})
    settings = replace(
        config_of(model, folder / "fallow.yaml"),
        state_dir=folder / "state",
        control_socket=folder / "control",
        metrics=None,
        node_name="n1",
        policies=NodePolicies(default=WHOLE_NODE),
        publishing=ENFORCE,
        sample_interval_seconds=0.02,
        clusters=tuple(cluster_file(name, build_of(build), folder) for name, build in builds.items()),
    )
    return replace(settings, **changes)


def standalone(config: Config, host: FakeHost | None = None, clock: Callable[[], float] = time.monotonic) -> Standalone:
    """A Fallow with this host."""
    fallow = Standalone(config, clock)
    fallow.sampler = host or FakeHost(clock)
    return fallow


def until(fallow: NodeProcess, condition: Callable[[], object], seconds: float = 10) -> None:
    """Drive a Fallow until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        fallow.step()


@contextmanager
def running(fallow: Standalone) -> Iterator[None]:
    """Drive a Fallow in a thread of its own, which ends with the context."""

    def loop() -> None:
        while not fallow._stopping:
            fallow.step()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        fallow._stopping = True
        fallow.inbox.wake()
        thread.join(5)
        assert not thread.is_alive()


@contextmanager
def serving(fallow: Standalone) -> Iterator[None]:
    """The same, with its control socket."""
    control = ControlServer(fallow.config.control_socket, None, fallow.requests.answer)
    try:
        with running(fallow):
            yield
    finally:
        control.close()
