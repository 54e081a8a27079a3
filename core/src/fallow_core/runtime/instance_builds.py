"""An instance for each cluster file: built in threads of their own, and tried again where that fails.

Of a file that was changed a new instance is built beside the one that runs; that goes on until the new one can take
over, and for ever if it cannot be built.
"""

import logging
from collections.abc import Callable, Iterable

from fallow_core.config.settings import ClusterSettings
from fallow_core.log import event
from fallow_core.plugins.instance import PluginInstance, start_build
from fallow_core.plugins.lanes import Call, Failure

log = logging.getLogger("fallow.run")

TIMEOUT_SECONDS = 30.0
AGAIN_SECONDS = 60.0
CLOSE_SECONDS = 5.0


class Builds:
    """What is being built. `failed` says why a cluster's newest instance could not be built. `running` is what was
    handed out, and for which file; `closing` are the instances that are about to end.
    """

    def __init__(
        self, clusters: Iterable[ClusterSettings], clock: Callable[[], float], wake: Callable[[], None]
    ) -> None:
        self.failed: dict[str, str] = {}
        self.running: dict[str, tuple[ClusterSettings, PluginInstance]] = {}
        self.closing: list[Call[None]] = []
        self._clock = clock
        self._wake = wake
        self._missing = {cluster.name: cluster for cluster in clusters}
        self._calls: dict[str, Call[PluginInstance]] = {}
        self._unwanted: list[Call[PluginInstance]] = []
        self._due_at: dict[str, float] = {}

    @property
    def building(self) -> list[str]:
        """The clusters whose instance is being built and has not failed before."""
        return sorted(self._calls.keys() - self.failed.keys())

    def want(self, cluster: ClusterSettings) -> None:
        """From now on this is the file of the cluster: build an instance, unless one of the same file runs already."""
        name = cluster.name
        running = self.running.get(name)
        if running is not None and running[0].built_from == cluster.built_from:
            self._cancel(name)
            self.running[name] = (cluster, running[1])
            return
        missing = self._missing.get(name)
        if missing is None or missing.built_from != cluster.built_from:
            self._cancel(name)
        self._missing[name] = cluster

    def drop(self, name: str) -> None:
        """The cluster is configured no longer: nothing is built for it. What runs goes on until it is retired."""
        self._cancel(name)

    def retire(self, name: str) -> None:
        """End the instance that runs, after the calls under way."""
        _, instance = self.running.pop(name)
        self._close(instance)

    def step(self, may_hand_out: Callable[[str], bool]) -> list[tuple[ClusterSettings, PluginInstance]]:
        """Start what is due; the instances that are ready, each of them once, when they may be handed out.

        One that succeeds another one is the only one from then on.
        """
        now = self._clock()
        self.closing = [call for call in self.closing if not call.done]
        self._close_unwanted()
        ready = []
        for name, call in [(name, call) for name, call in self._calls.items() if call.done]:
            outcome = call.outcome
            if isinstance(outcome, Failure):
                del self._calls[name]
                self._note_failure(name, outcome, now)
            elif may_hand_out(name):
                del self._calls[name]
                cluster = self._missing.pop(name)
                self._hand_out(cluster, outcome)
                ready.append((cluster, outcome))
        for name, cluster in self._missing.items():
            if name not in self._calls and now >= self._due_at.get(name, now):
                self._calls[name] = self._start(cluster)
        return ready

    def _start(self, cluster: ClusterSettings) -> Call[PluginInstance]:
        return start_build(
            cluster.plugin, cluster.config, timeout_seconds=TIMEOUT_SECONDS, clock=self._clock, wake=self._wake
        )

    def _hand_out(self, cluster: ClusterSettings, instance: PluginInstance) -> None:
        self.failed.pop(cluster.name, None)
        if cluster.name in self.running:
            self.retire(cluster.name)
        self.running[cluster.name] = (cluster, instance)
        event(log, logging.INFO, "cluster_ready", cluster=cluster.name, plugin=instance.source)

    def _note_failure(self, name: str, failure: Failure, now: float) -> None:
        goes_on = "; the instance from before goes on" if name in self.running else ""
        self.failed[name] = failure.reason + goes_on
        self._due_at[name] = now + AGAIN_SECONDS
        event(log, logging.ERROR, "cluster_failed", cluster=name, reason=self.failed[name])

    def _cancel(self, name: str) -> None:
        """What is being built is not wanted any more; it is closed when it comes."""
        if name in self._calls:
            self._unwanted.append(self._calls.pop(name))
        self._missing.pop(name, None)
        self.failed.pop(name, None)
        self._due_at.pop(name, None)

    def _close_unwanted(self) -> None:
        done, self._unwanted = [c for c in self._unwanted if c.done], [c for c in self._unwanted if not c.done]
        for call in done:
            outcome = call.outcome
            if not isinstance(outcome, Failure):
                self._close(outcome)

    def _close(self, instance: PluginInstance) -> None:
        self.closing.append(instance.close(CLOSE_SECONDS))
