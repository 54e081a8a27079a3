"""What every process on a node has: its loop, and the agent with all that it looks at.

`fallow run` adds the controller to it, `fallow agent` what a controller elsewhere says.
"""

import logging
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import FrameType
from typing import TYPE_CHECKING, Any

from fallow_core.agent.eviction.evictor import Agent
from fallow_core.agent.probing.prober import Prober
from fallow_core.agent.probing.schedule import ProbeDue
from fallow_core.agent.throttling.batch_groups import BatchGroup
from fallow_core.agent.throttling.host_throttling import Throttling
from fallow_core.api.control_socket import ControlServer, Peer
from fallow_core.config.settings import ClusterSettings, Config, PluginLoader
from fallow_core.log import event
from fallow_core.model.listed import ListedTasks
from fallow_core.model.sample import NodeSample
from fallow_core.node.addresses import host_addresses
from fallow_core.node.host_sampler import HostSampler
from fallow_core.node.process_files import raise_limit
from fallow_core.plugins.session import ClusterSession
from fallow_core.runtime import reload
from fallow_core.runtime.inbox import Inbox
from fallow_core.runtime.instance_builds import Builds
from fallow_core.state import publish_journal
from fallow_core.state.terminations_file import TerminationsFile
from fallow_hookspecs import Node, Process

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from fallow_core.agent.remote_ledger import Followed
    from fallow_core.api.status import ProcessStatus, Status
    from fallow_core.controller.controller import Controller

log = logging.getLogger("fallow.run")

CLOSE_SECONDS = 5.0
REST = 4
"""Between two things that were called for: so many times as long as the first one took."""


def this_host(config: Config) -> Node:
    """The node that a plugin is told of: this host by all its names and addresses."""
    addresses = tuple(sorted({*host_addresses(), *config.node_addresses}))
    return Node(name=config.node_name, addresses=addresses, labels=config.node_labels)


class NodeProcess(ABC):
    """One Fallow on one host; no other one can use the same state directory until it is closed.

    `run` is the whole life of the process. `step` is for a caller that drives it itself.
    """

    def __init__(
        self,
        config: Config,
        clusters: tuple[ClusterSettings, ...],
        clock: Callable[[], float],
        load_plugin: PluginLoader,
    ) -> None:
        """Read what an earlier process left.

        :param clusters: those that it builds an instance for.
        :raises StateError: the state directory cannot be used, or another Fallow uses it.
        """
        self.config = config
        self.clock = clock
        self.node = this_host(config)
        self._lock = publish_journal.lock(config.state_dir)
        self.inbox = Inbox()
        self.watch = Prober(config, clock, self._kernel_woke)
        self.builds = Builds(clusters, clock, self.wake)
        self.sampler = HostSampler(clock)
        self.sample = NodeSample()
        self.agent = Agent(self.node, config.qos, TerminationsFile(config.state_dir), clock())
        self.throttling = Throttling(self.node, config)
        self.started_at = clock()
        self.refusals = reload.Refusals()
        self.refusals.note(config.problems, time.time())
        self.files: reload.Files | None = None
        self._load_plugin = load_plugin
        self._stopping = self._woken = self._woken_by_kernel = self._wants_look = False

    @property
    @abstractmethod
    def ledgers(self) -> "Controller | Followed":
        """Who has the node's ledger, the clusters and their switches: the controller, or what stands in its place."""

    @property
    def clusters(self) -> Mapping[str, ClusterSession]:
        """The clusters that have an instance, by name."""
        return self.ledgers.clusters

    @abstractmethod
    def _tick(self) -> None:
        """Take what calls brought, decide, and start what is due."""

    @abstractmethod
    def _throttle(self) -> None:
        """Slow batch down as far as it has to be."""

    @abstractmethod
    def _handle(self, peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request over the control socket. Called in a thread of the control server."""

    def _tell_start(self) -> None:
        """Log what it starts with."""
        if self.agent.lost:
            event(log, logging.ERROR, "terminations_lost", reason=self.agent.lost)
        for problem in self.config.problems:
            event(log, logging.ERROR, "cluster_file_refused", problem=problem)

    @abstractmethod
    def status(self) -> "Status":
        """The answer to `status`."""

    def _process_status(self) -> "ProcessStatus":
        """The part of the answer to `status` that is about this process."""
        from fallow_core.api.status import ConfigReads, ProcessStatus, RefusedFile  # only where somebody asks

        problems, refusals = self.refusals.lines(), self.refusals
        if self.files is not None and self.files.overdue:
            problems.append(f"{self.config.file.parent}: reading the files takes too long: no change is noticed")
        return ProcessStatus(
            uptime_seconds=self.clock() - self.started_at,
            config_file=str(self.config.file),
            building=tuple(self.builds.building),
            failed=dict(self.builds.failed),
            config_problems=tuple(problems),
            refused_files=tuple(
                RefusedFile(file=str(file), since=since, problems=tuple(map(str, found)))
                for file, (since, found) in sorted(refusals.files.items())
            ),
            config_reads=ConfigReads(
                taken=refusals.taken, refused=refusals.refused, last_taken_at=refusals.taken_at or None
            ),
            sample_problems=dict(self.sampler.missing),
            throttle_problems=tuple(self._throttle_problems()),
            changed_groups=self.throttling.changed(),
        )

    def _throttle_problems(self) -> list[str]:
        """What keeps batch from being throttled or terminated as configured."""
        return [*self.throttling.problems(self.config), *self.watch.missing]

    def metrics(self) -> "list[Metric]":
        """All metrics now."""
        from fallow_core.api import metrics, throttling  # only where metrics are served

        throttled = throttling.throttling_status(self.throttling, self.throttling.config, self.clock())
        return metrics.families(self.status(), self.ledgers.journal.content.switches, self.agent, throttled)

    def _serve_metrics(self) -> Callable[[], None]:
        """Serve `/metrics`; the result stops it."""
        if self.config.metrics is None:
            return lambda: None
        from fallow_core.api.metrics_server import serve  # takes a megabyte, which a process without metrics saves

        return serve(*self.config.metrics, lambda: self.inbox.ask(self.metrics))

    @abstractmethod
    def _leave(self) -> None:
        """What an orderly stop does before limits are lifted, or stay."""

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; a second signal ends the process at once.

        :raises FallowError: the control socket or the metrics address cannot be used.
        """
        with ExitStack() as stack:
            stack.callback(self.close)
            raise_limit()
            control = ControlServer(self.config.control_socket, self.config.control_group, self._handle)
            stack.callback(control.close)
            stack.callback(self._serve_metrics())
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._stop)
            signal.signal(signal.SIGHUP, self._reload)
            self.follow_files()
            self._tell_start()
            while not self._stopping:
                self.step()
            self._leave()
            self.throttling.leave(self.config)
        event(log, logging.INFO, "stopped")

    def follow_files(self) -> None:
        """From now on what changes in the files takes effect."""
        self.files = reload.Files(self.config, self._read_again, self.clock, self.wake)

    def _read_again(self, config: Config) -> Config:
        """What the files of a configuration say now. Called in a thread of its own."""
        from fallow_core.config.load import load_again  # with the models of files

        return load_again(config, self._load_plugin)

    def step(self) -> None:
        """One round of the loop: sample, tick, throttle, then serve and look quickly until the next sample is due."""
        began = self.clock()
        next_at = began + self._interval()
        self._take_sample()
        self._tick()
        self._throttle()
        # However great the danger is, this takes no more than a part of the time; a threshold is crossed but once.
        look_at = limit_at = self._rested_at(began)
        self._decided()
        self._wants_look = False
        while not self._stopping:
            sooner_at = min(next_at, look_at) if self._wants_look else next_at
            self._serve(max(0.0, min(sooner_at - self.clock(), self.watch.pause, self.watch.lists_in)))
            if self.watch.lists_again():
                self._list_soon()
            due, now = self.watch.look(self.config, self.sample, self._groups()), self.clock()
            if due is ProbeDue.CROSSED or (due is ProbeDue.LOOK and now >= look_at):
                self._list_soon()  # it may be a task that nobody knows yet
                return
            if self._wants_look and now >= look_at:
                return
            if due is ProbeDue.LIMIT and now >= limit_at:
                self._limit()
                limit_at = self._rested_at(now)
            if self.clock() >= next_at:
                return

    def _rested_at(self, began: float) -> float:
        """When the next one is due at the earliest, after what began then has just ended."""
        return self.clock() + (self.clock() - began) * REST

    def wake(self) -> None:
        """Let the loop take answers at once; safe from any thread and from a signal handler."""
        self._woken = True
        self.inbox.wake()

    def _kernel_woke(self) -> None:
        self._woken_by_kernel = True
        self.inbox.wake()

    def _serve(self, seconds: float) -> None:
        """Do what is asked for within a time. Answers are taken, unless it was the kernel alone that woke the loop."""
        came = self.inbox.serve(seconds)
        kernel, self._woken_by_kernel = self._woken_by_kernel, False
        if self._woken or (came and not kernel):
            self._woken = False
            self._answered()

    def _interval(self) -> float:
        """The time until the next sample, if nothing calls for it before."""
        return self.config.sample_interval_seconds

    def _answered(self) -> None:
        """Calls have ended, or something was asked for."""
        self._tick()

    def _limit(self) -> None:
        """Besides batch much more or less CPU is in use than when batch was limited."""
        self._take_sample()
        self._tick()
        self._throttle()
        self._decided()

    def _list_soon(self) -> None:
        """Tasks may have come or gone."""
        for cluster in self.clusters.values():
            cluster.list_soon()
            cluster.start_reads((self.node,), self.clock())

    def _groups(self) -> Mapping[str, BatchGroup]:
        """The groups of batch that may be limited."""
        return {} if self.throttling.throttle is None else self.throttling.throttle.groups

    def _decided(self) -> None:
        self.watch.decided(self.sample, (path for path, group in self._groups().items() if group.home is None))

    def close(self) -> None:
        """End the instances, as far as they end in time, and give the state directory free."""
        calls = [cluster.instance.close(CLOSE_SECONDS) for cluster in self.clusters.values()]
        calls += self.builds.closing
        self.watch.close()
        self.sampler.close()
        if self.files is not None:
            self.files.close()
        deadline = self.clock() + CLOSE_SECONDS
        while not all(call.done for call in calls) and self.clock() < deadline:
            time.sleep(0.05)
        os.close(self._lock)

    def _lists(self) -> dict[str, ListedTasks]:
        """What each cluster's plugin listed on this host, by cluster."""
        name = self.node.name
        return {cluster.name: cluster.lists[name] for cluster in self.clusters.values() if name in cluster.lists}

    def _listing(self) -> list[ClusterSession]:
        """The clusters whose plugin lists tasks."""
        return [c for c in self.clusters.values() if "list_tasks" not in c.instance.health().missing_hooks]

    def _unsure(self, now: float) -> str:
        """Why it is not known what on this host is batch; empty if it is known."""
        for cluster in self._listing():
            found = cluster.lists.get(self.node.name)
            if found is None or not found.is_complete(now):
                why = "its tasks are not listed" if found is None else found.reason or "its list of tasks is old"
                return f"{cluster.name}: {why}"
        return self.agent.unsure(self.sample, self._daemons())

    def _take_sample(self) -> None:
        newest = self.sampler.sample(self._daemons())
        for resource, reason in self.sampler.missing.items():
            if self.sample.of(resource) is not None:
                event(log, logging.WARNING, "sample_failed", resource=resource, reason=reason)
        self.sample = NodeSample(cpu=newest.cpu or self.sample.cpu, memory=newest.memory or self.sample.memory)

    def _daemons(self) -> list[Process]:
        return [d.process for cluster in self.clusters.values() for d in cluster.daemons.get(self.node.name, ())]

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        self._stopping = True
        self.inbox.close()
        signal.signal(number, signal.SIG_DFL)

    def _reload(self, _number: int, _frame: FrameType | None) -> None:
        if self.files is not None:
            self.files.ask()
            self.wake()
