"""The process behind `fallow run`: one loop that samples, ticks the controller, and serves requests between ticks."""

import logging
import queue
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from types import FrameType
from typing import Any, TypeVar

from prometheus_client.core import Metric

from fallow_core.config.settings import Config
from fallow_core.controller.cluster import Cluster
from fallow_core.controller.controller import Controller
from fallow_core.controller.journal import load as load_journal
from fallow_core.errors import ControlError
from fallow_core.log import event
from fallow_core.model.policy import ExitMode, PublishingMode
from fallow_core.model.sample import NodeSample
from fallow_core.node.addresses import host_addresses
from fallow_core.node.host_sampler import HostSampler
from fallow_core.plugins.instance import PluginInstance, start_build
from fallow_core.plugins.lanes import Call, Failure
from fallow_core.standalone import metrics, requests
from fallow_core.standalone.control import ControlServer, Peer
from fallow_hookspecs import Node

log = logging.getLogger("fallow.run")

BUILD_TIMEOUT_SECONDS = 30.0
LEAVE_SECONDS = 15.0
CLOSE_SECONDS = 5.0
REQUEST_SECONDS = 20.0

_T = TypeVar("_T")


def this_host(config: Config) -> Node:
    """The node that a plugin is told of: this host by all its names and addresses."""
    return Node(name=config.node_name, addresses=tuple(sorted({*host_addresses(), *config.node_addresses})))


class Standalone:
    """One Fallow on one host. `run` returns when the process was asked to stop."""

    def __init__(self, config: Config, clock: Callable[[], float] = time.monotonic) -> None:
        self.config = config
        self.clock = clock
        self.node = this_host(config)
        self.controller = Controller(
            (self.node,),
            config.node_policy,
            config.publishing,
            load_journal(config.state_dir),
            clock=clock,
            wall_clock=time.time,
        )
        self.sampler = HostSampler(clock)
        self.sample = NodeSample()
        self.failed_builds: dict[str, str] = {}
        self.started_at = clock()
        self._building: dict[str, Call[PluginInstance]] = {}
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._woken = threading.Event()
        self._stopping = False

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; a second signal ends the process at once.

        :raises FallowError: the control socket or the metrics address cannot be used.
        """
        control = ControlServer(self.config.control_socket, self.config.control_group, self._handle)
        stop_metrics = self._serve_metrics()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        event(
            log, logging.INFO, "started", node=self.node.name, mode=self.config.publishing.mode, file=self.config.file
        )
        if self.controller.journal.lost:
            event(log, logging.ERROR, "journal_lost", reason=self.controller.journal.lost)
        for problem in self.config.problems:
            event(log, logging.ERROR, "cluster_file_refused", problem=problem)
        try:
            self.start_building()
            while not self._stopping:
                self.step()
            self._leave()
        finally:
            stop_metrics()
            control.close()
            self._close()
            event(log, logging.INFO, "stopped")

    def start_building(self) -> None:
        """Start to build an instance for each good cluster file."""
        for cluster in self.config.clusters:
            self._building[cluster.name] = start_build(
                cluster.plugin, cluster.config, timeout_seconds=BUILD_TIMEOUT_SECONDS, clock=self.clock, wake=self.wake
            )

    def wake(self) -> None:
        """Let the loop look at once; safe from any thread."""
        self._woken.set()

    def step(self) -> None:
        """One round of the loop: sample, tick, then serve and wait until the next sample is due."""
        began = self.clock()
        self._take_sample()
        self._take_built()
        self.controller.tick({self.node.name: self.sample})
        next_at = began + self.config.sample_interval_seconds
        while (left := next_at - self.clock()) > 0 and not self._stopping:
            if not self._woken.wait(left):
                return
            self._woken.clear()
            self._serve()
            self._take_built()
            self.controller.tick({self.node.name: self.sample})

    @property
    def building(self) -> list[str]:
        """The clusters whose instance is still being built."""
        return sorted(self._building)

    def _take_sample(self) -> None:
        daemons = [d.process for c in self.controller.clusters.values() for d in c.daemons.get(self.node.name, ())]
        newest = self.sampler.sample(daemons)
        for resource, reason in self.sampler.missing.items():
            if self.sample.of(resource) is not None:
                event(log, logging.WARNING, "sample_failed", resource=resource, reason=reason)
        self.sample = NodeSample(cpu=newest.cpu or self.sample.cpu, memory=newest.memory or self.sample.memory)

    def _take_built(self) -> None:
        for name in [name for name, call in self._building.items() if call.done]:
            outcome = self._building.pop(name).outcome
            if isinstance(outcome, Failure):
                self.failed_builds[name] = outcome.reason
                event(log, logging.ERROR, "cluster_failed", cluster=name, reason=outcome.reason)
                continue
            account = next(cluster.account for cluster in self.config.clusters if cluster.name == name)
            self.controller.add(Cluster(outcome, account, self.config.publishing))
            event(log, logging.INFO, "cluster_ready", cluster=name, plugin=outcome.source)

    def _serve_metrics(self) -> Callable[[], None]:
        if self.config.metrics is None:
            return lambda: None
        address, port = self.config.metrics

        def collect() -> list[Metric]:
            return self.ask(lambda: metrics.families(self.controller, self.clock()))

        return metrics.serve(address, port, collect)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        self._stopping = True
        self.wake()
        signal.signal(number, signal.SIG_DFL)

    def _handle(self, peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
        return requests.answer(self, peer, request)

    def ask(self, function: Callable[[], _T]) -> _T:
        """Call a function in the loop's thread and wait for its result.

        :raises ControlError: the loop did not answer in time.
        """
        future: Future[_T] = Future()

        def job() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        self._jobs.put(job)
        self.wake()
        try:
            return future.result(REQUEST_SECONDS)
        except FutureTimeoutError:
            raise ControlError(f"Fallow is busy or stopping: no answer within {REQUEST_SECONDS:.0f} s") from None

    def _serve(self) -> None:
        while not self._jobs.empty():
            self._jobs.get()()

    def _leave(self) -> None:
        """Leave the node as `onExit` says. Nothing is sent in observe mode."""
        mode = self.config.on_exit
        if self.config.publishing.mode is PublishingMode.OBSERVE or mode is ExitMode.HOLD:
            return
        event(log, logging.INFO, "leaving", mode=mode)
        deadline = self.clock() + LEAVE_SECONDS
        self.controller.leave(mode)
        while self.clock() < deadline:
            self.controller.tick({self.node.name: self.sample})
            if self.controller.left:
                return
            self._woken.wait(0.2)
            self._woken.clear()
        event(log, logging.WARNING, "left_without_answer", seconds=LEAVE_SECONDS)

    def _close(self) -> None:
        calls = [cluster.instance.close(CLOSE_SECONDS) for cluster in self.controller.clusters.values()]
        deadline = self.clock() + CLOSE_SECONDS
        while not all(call.done for call in calls) and self.clock() < deadline:
            time.sleep(0.05)
