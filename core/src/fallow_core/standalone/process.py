"""The process behind `fallow run`: one loop that samples, ticks the controller, and serves requests between ticks."""

import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import Any

from prometheus_client.core import Metric

from fallow_core.agent.agent import Agent
from fallow_core.agent.endings_file import EndingsFile
from fallow_core.config.load import PluginLoader
from fallow_core.config.settings import Config
from fallow_core.controller import journal
from fallow_core.controller.cluster import Cluster
from fallow_core.controller.controller import Controller
from fallow_core.controller.taking_back import Seen
from fallow_core.log import event
from fallow_core.model.listed import Listed
from fallow_core.model.policy import ExitMode, PublishingMode
from fallow_core.model.sample import NodeSample
from fallow_core.node.addresses import host_addresses
from fallow_core.node.host_sampler import HostSampler
from fallow_core.plugins import discovery
from fallow_core.standalone import metrics, reloading, requests, squeeze_metrics
from fallow_core.standalone.builds import Builds
from fallow_core.standalone.control import ControlServer, Peer
from fallow_core.standalone.inbox import Inbox
from fallow_core.standalone.squeezing import Squeezing
from fallow_hookspecs import Node, Process

log = logging.getLogger("fallow.run")

STARTING_SECONDS = 10.0
LEAVE_SECONDS = 15.0
CLOSE_SECONDS = 5.0


def this_host(config: Config) -> Node:
    """The node that a plugin is told of: this host by all its names and addresses."""
    addresses = tuple(sorted({*host_addresses(), *config.node_addresses}))
    return Node(name=config.node_name, addresses=addresses, labels=config.node_labels)


class Standalone:
    """One Fallow on one host; no other one can use the same state directory until it is closed.

    `run` is the whole life of the process. `step` is for a caller that drives it itself.
    """

    def __init__(
        self,
        config: Config,
        clock: Callable[[], float] = time.monotonic,
        load_plugin: PluginLoader = discovery.load,
    ) -> None:
        """Read what an earlier process left.

        :raises StateError: the state directory cannot be used, or another Fallow uses it.
        """
        self.config = config
        self.clock = clock
        self.node = this_host(config)
        self._lock = journal.lock(config.state_dir)
        self.controller = Controller(
            (self.node,),
            [cluster.name for cluster in config.clusters],
            config.policies,
            config.publishing,
            journal.load(config.state_dir),
            config.take_back,
            clock=clock,
            wall_clock=time.time,
        )
        self.inbox = Inbox()
        self.builds = Builds(config.clusters, clock, self.inbox.wake)
        self.sampler = HostSampler(clock)
        self.sample = NodeSample()
        self.agent = Agent(self.node, config.qos, EndingsFile(config.state_dir), clock())
        self.squeezing = Squeezing(self.node, config)
        self.started_at = clock()
        self.refusals = reloading.Refusals()
        self.refusals.note(config.problems, time.time())
        self.files: reloading.Files | None = None
        self._load_plugin = load_plugin
        self._stopping = False

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; a second signal ends the process at once.

        :raises FallowError: the control socket or the metrics address cannot be used.
        """
        with ExitStack() as stack:
            stack.callback(self.close)
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
            self.squeezing.leave(self.config)
        event(log, logging.INFO, "stopped")

    def follow_files(self) -> None:
        """From now on what changes in the files takes effect."""
        self.files = reloading.Files(self.config, self._load_plugin, self.clock, self.inbox.wake)

    def step(self) -> None:
        """One round of the loop: sample, tick, squeeze, then serve and wait until the next sample is due."""
        next_at = self.clock() + self.config.sample_interval_seconds
        self._take_sample()
        self._tick()
        self.squeezing.step(self, self._lists(), not self.builds.building)
        while not self._stopping and self.inbox.serve(max(0.0, next_at - self.clock())):
            self._tick()
            if self.clock() >= next_at:
                return

    def close(self) -> None:
        """End the instances, as far as they end in time, and give the state directory free."""
        calls = [cluster.instance.close(CLOSE_SECONDS) for cluster in self.controller.clusters.values()]
        calls += self.builds.closing
        if self.files is not None:
            self.files.close()
        deadline = self.clock() + CLOSE_SECONDS
        while not all(call.done for call in calls) and self.clock() < deadline:
            time.sleep(0.05)
        os.close(self._lock)

    def _tick(self) -> None:
        reloading.retire_departed(self)
        if self.files is not None and not self._stopping and (read := self.files.step(self.config)) is not None:
            reloading.take(self, read)
        for cluster, instance in self.builds.step(self.controller.may_succeed):
            self.controller.add(Cluster(instance, cluster.account, self.config.publishing))
        name, clusters, now = self.node.name, self.controller.clusters, self.clock()
        lists = self._lists()
        applications = {cluster.name: cluster.applications for cluster in clusters.values()}
        requested = self.agent.look(self.sampler.batch, lists, applications)
        seen = Seen(tasks=self.agent.tasks, requested=requested, unsure=self._unsure(now))
        samples = {} if self._starts(now) else {name: self.sample}
        self.controller.tick(samples, {name: seen})
        instances = {cluster.name: cluster.instance for cluster in clusters.values()}
        may_pay = self.controller.taking_back.may_pay(now)
        stopped = self.controller.stopped(name)
        self.agent.act(self.sample, self.controller.ledgers[name], lists, instances, may_pay, self.clock(), stopped)

    def _starts(self, now: float) -> bool:
        """Whether it is too early for a ledger: until the first lists of tasks batch's own use would count as use of
        the system, and the first offers would be too small.
        """
        unlisted = any(self.node.name not in cluster.lists for cluster in self._listing())
        return unlisted and now - self.started_at < STARTING_SECONDS

    def _lists(self) -> dict[str, Listed]:
        """What each cluster's plugin listed on this host, by cluster."""
        clusters, name = self.controller.clusters.values(), self.node.name
        return {cluster.name: cluster.lists[name] for cluster in clusters if name in cluster.lists}

    def _listing(self) -> list[Cluster]:
        """The clusters whose plugin lists tasks."""
        clusters = self.controller.clusters.values()
        return [cluster for cluster in clusters if "list_tasks" not in cluster.instance.health().missing_hooks]

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
        clusters = self.controller.clusters.values()
        return [daemon.process for cluster in clusters for daemon in cluster.daemons.get(self.node.name, ())]

    def _tell_start(self) -> None:
        mode, file = self.config.publishing.mode, self.config.file
        event(log, logging.INFO, "started", node=self.node.name, mode=mode, file=file)
        if self.controller.journal.lost:
            event(log, logging.ERROR, "journal_lost", reason=self.controller.journal.lost)
        if self.agent.lost:
            event(log, logging.ERROR, "endings_lost", reason=self.agent.lost)
        for problem in self.config.problems:
            event(log, logging.ERROR, "cluster_file_refused", problem=problem)

    def _serve_metrics(self) -> Callable[[], None]:
        if self.config.metrics is None:
            return lambda: None
        address, port = self.config.metrics

        def families() -> list[Metric]:
            problems = len(self.config.problems)
            found = metrics.families(self.controller, self.agent, self.clock(), problems, self.refusals)
            return [*found, *squeeze_metrics.families(self.node.name, self.squeezing)]

        return metrics.serve(address, port, lambda: self.inbox.ask(families))

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        self._stopping = True
        self.inbox.close()
        signal.signal(number, signal.SIG_DFL)

    def _reload(self, _number: int, _frame: FrameType | None) -> None:
        if self.files is not None:
            self.files.ask()
            self.inbox.wake()

    def _handle(self, peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
        return requests.answer(self, peer, request)

    def _leave(self) -> None:
        """Leave the node as `onExit` says. Nothing is sent in observe mode."""
        mode = self.config.on_exit
        if self.config.publishing.mode is PublishingMode.OBSERVE or mode is ExitMode.HOLD:
            return
        event(log, logging.INFO, "leaving", mode=mode)
        deadline = self.clock() + LEAVE_SECONDS
        self.controller.leave(mode)
        while not self.controller.left:
            if self.clock() >= deadline:
                event(log, logging.WARNING, "left_without_answer", seconds=LEAVE_SECONDS)
                return
            self._tick()
            self.inbox.serve(0.2)
