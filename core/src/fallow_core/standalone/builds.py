"""An instance for each cluster file: built in threads of their own, and tried again where that fails."""

import logging
from collections.abc import Callable

from fallow_core.config.settings import Cluster
from fallow_core.log import event
from fallow_core.plugins.instance import PluginInstance, start_build
from fallow_core.plugins.lanes import Call, Failure

log = logging.getLogger("fallow.run")

TIMEOUT_SECONDS = 30.0
AGAIN_SECONDS = 60.0


class Builds:
    """What is being built. `failed` says why a cluster has no instance now."""

    def __init__(self, clusters: tuple[Cluster, ...], clock: Callable[[], float], wake: Callable[[], None]) -> None:
        self.failed: dict[str, str] = {}
        self._clock = clock
        self._wake = wake
        self._missing = {cluster.name: cluster for cluster in clusters}
        self._calls: dict[str, Call[PluginInstance]] = {}
        self._due_at: dict[str, float] = {}

    @property
    def building(self) -> list[str]:
        """The clusters whose instance is being built and has not failed before."""
        return sorted(self._calls.keys() - self.failed.keys())

    def step(self) -> list[tuple[Cluster, PluginInstance]]:
        """Start what is due; the instances that are ready, each of them once."""
        now = self._clock()
        ready = []
        for name in [name for name, call in self._calls.items() if call.done]:
            outcome = self._calls.pop(name).outcome
            if isinstance(outcome, Failure):
                self.failed[name] = outcome.reason
                self._due_at[name] = now + AGAIN_SECONDS
                event(log, logging.ERROR, "cluster_failed", cluster=name, reason=outcome.reason)
            else:
                self.failed.pop(name, None)
                ready.append((self._missing.pop(name), outcome))
                event(log, logging.INFO, "cluster_ready", cluster=name, plugin=outcome.source)
        for name, cluster in self._missing.items():
            if name not in self._calls and now >= self._due_at.get(name, now):
                self._calls[name] = start_build(
                    cluster.plugin,
                    cluster.config,
                    timeout_seconds=TIMEOUT_SECONDS,
                    clock=self._clock,
                    wake=self._wake,
                )
        return ready
