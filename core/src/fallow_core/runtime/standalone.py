"""The process behind `fallow run`: the agent of this host and a controller for it, in one loop."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fallow_core.agent.eviction.task_join import requested_by_row
from fallow_core.api import requests
from fallow_core.api.control_socket import Peer
from fallow_core.api.status import Status, run_status
from fallow_core.config.settings import Config, PluginLoader
from fallow_core.controller.controller import Controller
from fallow_core.controller.grant_writer import GrantWriter
from fallow_core.controller.taking_back import Seen
from fallow_core.log import event
from fallow_core.model.policy import ExitMode, PublishingMode
from fallow_core.plugins import discovery
from fallow_core.plugins.session import ClusterSession
from fallow_core.runtime import reload
from fallow_core.runtime.node_process import NodeProcess, this_host
from fallow_core.state import publish_journal

__all__ = ["Standalone", "this_host"]

log = logging.getLogger("fallow.run")

STARTING_SECONDS = 10.0
LEAVE_SECONDS = 15.0


class Standalone(NodeProcess):
    """A node process with its own controller."""

    def __init__(
        self,
        config: Config,
        clock: Callable[[], float] = time.monotonic,
        load_plugin: PluginLoader = discovery.load,
        row_file: Path | None = None,
    ) -> None:
        """Read what an earlier process left.

        :param row_file: where to write this node's row for an agent.
        :raises StateError: the state directory cannot be used, or another Fallow uses it.
        """
        super().__init__(config, config.clusters, clock, load_plugin)
        self.controller = Controller(
            (self.node,),
            [cluster.name for cluster in config.clusters],
            config.policies,
            config.publishing,
            publish_journal.load(config.state_dir),
            config.take_back,
            clock=clock,
            wall_clock=time.time,
        )
        self._rows = None if row_file is None else GrantWriter(row_file)

    @property
    def ledgers(self) -> Controller:
        """The controller has them."""
        return self.controller

    def _tick(self) -> None:
        reload.retire_departed(self)
        if self.files is not None and not self._stopping and (read := self.files.step(self.config)) is not None:
            reload.take(self, read)
        for cluster, instance in self.builds.step(self.controller.may_succeed):
            self.controller.add(ClusterSession(instance, cluster.account, self.config.publishing))
        name, clusters, now = self.node.name, self.controller.clusters, self.clock()
        lists = self._lists()
        applications = {cluster.name: cluster.applications for cluster in clusters.values()}
        self.agent.look(self.sampler.batch, lists, applications)
        tasks = self.agent.tasks
        seen = Seen(
            tasks=tasks,
            requested=requested_by_row(tasks),
            unsure=self._unsure(now),
            floors_given_up=self.agent.floors_given_up(now),
        )
        samples = {} if self._starts(now) else {name: self.sample}
        self.controller.tick(samples, {name: seen})
        if self._rows is not None:
            self._rows.step(self.controller, name, now, time.time())
        instances = {cluster.name: cluster.instance for cluster in clusters.values()}
        may_pay = self.controller.taking_back.may_pay(now)
        stopped = self.controller.stopped(name)
        self.agent.act(self.sample, self.controller.ledgers[name], lists, instances, may_pay, self.clock(), stopped)

    def _throttle(self) -> None:
        self.throttling.step(self, self._lists(), not self.builds.building)

    def _starts(self, now: float) -> bool:
        """Whether it is too early for a ledger: until the first lists of tasks batch's own use would count as use of
        the system, and the first offers would be too small.
        """
        unlisted = any(self.node.name not in cluster.lists for cluster in self._listing())
        return unlisted and now - self.started_at < STARTING_SECONDS

    def _tell_start(self) -> None:
        mode, file = self.config.publishing.mode, self.config.file
        event(log, logging.INFO, "started", node=self.node.name, mode=mode, file=file)
        if self.controller.journal.lost:
            event(log, logging.ERROR, "journal_lost", reason=self.controller.journal.lost)
        super()._tell_start()

    def status(self) -> Status:
        """The answer to `status`."""
        return run_status(self.controller, self._process_status(), self.clock())

    def _handle(self, peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
        return requests.answer(self, peer, request)

    def _leave(self) -> None:
        """Leave the node as `onExit` says. Nothing is sent in observe mode."""
        mode = self.config.on_exit
        if self.config.publishing.mode is PublishingMode.OBSERVE or mode is ExitMode.KEEP:
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
