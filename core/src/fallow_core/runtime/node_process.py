"""What every process on a node has besides its agent: configuration files, plugin instances, requests and metrics.

`fallow run` adds a controller, `fallow agent` the results of a controller elsewhere.
"""

import logging
import os
import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from fallow_core.agent.last_round import LastRound
from fallow_core.api.control_socket import ControlServer
from fallow_core.api.requests import Requests, Sources
from fallow_core.config.refused_files import Refusals
from fallow_core.config.settings import Config, PluginLoader
from fallow_core.errors import StateError
from fallow_core.log import event, unhandled
from fallow_core.model.policy import PublishingPolicy
from fallow_core.node import own_memory
from fallow_core.node.addresses import host_addresses
from fallow_core.node.process_files import raise_limit
from fallow_core.plugins.session import ClusterSession
from fallow_core.runtime import process_signals, reload
from fallow_core.runtime.instance_builds import Builds
from fallow_core.runtime.protection import Protection
from fallow_core.state import publish_journal
from fallow_core.state.run_marker import RunMarker
from fallow_hookspecs import Node

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from fallow_core.api.status import ProcessStatus


log = logging.getLogger("fallow.run")

CLOSE_SECONDS = 5.0
STARTED_SECONDS = 5.0
"""After this time everything that the start needs was read, and memory is given back for the first time."""
GIVE_BACK_SECONDS = 120.0
"""How often memory is given back from then on: answers of a framework may be large."""


def this_host(config: Config) -> Node:
    """This host as plugins know it: with all its names and addresses."""
    addresses = tuple(sorted({*host_addresses(), *config.node_addresses}))
    return Node(name=config.node_name, addresses=addresses, labels=config.node_labels)


class NodeProcess(Protection):
    """One Fallow on one host. It locks the state directory until it is closed.

    `run` is the whole life of the process; a test calls `step` instead.
    """

    requests: Requests

    def __init__(
        self,
        config: Config,
        clock: Callable[[], float],
        load_plugin: PluginLoader,
        state_user: int | None = None,
    ) -> None:
        """Read what an earlier process left.

        :param state_user: whose state directory it is; `None`: that of the user of this process.
        :raises StateError: the state directory cannot be used, or another Fallow uses it.
        """
        self._lock = publish_journal.lock(config.state_dir, state_user)
        super().__init__(this_host(config), config, clock)
        self.builds = Builds(config.clusters, clock, self.wake)
        self.started_at = clock()
        self._gives_back_at = self.started_at + STARTED_SECONDS
        self.refusals = Refusals()
        self.refusals.note(config.problems, time.time())
        self.files: reload.Files | None = None
        self._load_plugin = load_plugin
        self._marker = RunMarker(config.state_dir)

    # What the two processes do each in its way

    @property
    @abstractmethod
    def _publishing(self) -> PublishingPolicy:
        """The policy of new cluster sessions."""

    @abstractmethod
    def _add(self, cluster: ClusterSession) -> None:
        """Take in a cluster whose plugin instance was built."""

    @abstractmethod
    def _configure(self, old: Config, new: Config) -> None:
        """Apply a configuration that was read while running to the ledgers."""

    @abstractmethod
    def _compute(self) -> LastRound:
        """Take the results of calls, compute the ledgers, start the calls that are due."""

    @abstractmethod
    def _leave(self) -> None:
        """Prepare the frameworks for an orderly stop."""

    @abstractmethod
    def _tell_start(self) -> None:
        """Log the start."""

    # The life of the process

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; a second signal ends the process at once.

        :raises FallowError: the control socket or the metrics address cannot be used.
        """
        with ExitStack() as stack:
            stack.callback(self.close)
            raise_limit()
            control = ControlServer(self.config.control_socket, self.config.control_group, self.requests.answer)
            stack.callback(control.close)
            stack.callback(self._serve_metrics())
            process_signals.handle(self._stop, self._reload)
            self.follow_files()
            self._mark_start()
            self._tell_start()
            self._tell_problems()
            try:
                while not self._stopping:
                    self.step()
                self._leave()
                self.throttling.leave(self.config.qos)
                self.inbox.finish()
            except Exception as error:
                unhandled(error, "main")
                raise
        self._marker.end()
        event(log, logging.INFO, "stopped")

    def close(self) -> None:
        """End the plugin instances, waiting a few seconds for them, and unlock the state directory."""
        calls = [cluster.instance.close(CLOSE_SECONDS) for cluster in self.clusters.values()]
        calls += self.builds.closing
        self.prober.close()
        self.sampler.close()
        if self.files is not None:
            self.files.close()
        deadline = self.clock() + CLOSE_SECONDS
        while not all(call.done for call in calls) and self.clock() < deadline:
            time.sleep(0.05)
        os.close(self._lock)

    def _mark_start(self) -> None:
        """Say whether the last run stopped in order, and begin to mark this one."""
        if (last := self._marker.last_run()) is not None:
            event(log, logging.WARNING, "last_run_not_stopped", pid=last.pid, since=last.since, why=last.why)
        try:
            self._marker.begin(time.time())
        except StateError as error:
            event(log, logging.WARNING, "run_not_marked", reason=error)

    def _stop(self) -> None:
        self._stopping = True
        self.inbox.close()

    def _tell_problems(self) -> None:
        for lost in self.requests.lost_state():
            event(log, logging.ERROR, "state_lost", file=lost.path, reason=lost.why, effect=lost.effect)
        if self.ledgers.journal.cut_off:
            event(log, logging.WARNING, "journal_cut_off", file=self.ledgers.journal.path)
        if self.evictor.load_error:
            event(log, logging.ERROR, "terminations_lost", reason=self.evictor.load_error)
        for problem in self.config.problems:
            event(log, logging.ERROR, "cluster_file_refused", problem=problem)

    # Configuration, plugin instances and rounds

    def follow_files(self) -> None:
        """Apply changes of the files from now on."""
        self.files = reload.Files(self.config, self._read_again, self.clock, self.wake)

    def _reload(self) -> None:
        if self.files is not None:
            self.files.ask()
            self.wake()

    def _read_again(self, config: Config) -> Config:
        """Read the files of a configuration again. Called in a thread of its own."""
        from fallow_core.config.load import load_again  # with the models of files

        return load_again(config, self._load_plugin)

    def _take(self, read: Config) -> None:
        """Apply the files as they were read just now; mistakes are refused."""
        old, self.config = self.config, reload.taken(self.config, read, self.refusals)
        self.evictor.set_policy(self.config.qos)
        for name in {cluster.name for cluster in old.clusters} - {cluster.name for cluster in self.config.clusters}:
            self.builds.drop(name)
        for cluster in self.config.clusters:
            self.builds.want(cluster)
        self.node = replace(self.node, labels=self.config.node_labels)
        self._configure(old, self.config)
        self._retire()

    def _take_instances(self) -> bool:
        """Retire the instances of removed clusters, take in those that were built. Return whether there are any."""
        self._retire()
        built = self.builds.step(self._may_succeed)
        for settings, instance in built:
            self._add(ClusterSession(instance, settings.account, self._publishing))
        return bool(built)

    def _retire(self) -> None:
        for name in self.builds.running.keys() - self.clusters.keys():
            self.builds.retire(name)

    def _all_built(self) -> bool:
        return not self.builds.building

    def _may_succeed(self, name: str) -> bool:
        return name not in self.clusters or self.clusters[name].may_be_succeeded(self.clock())

    def _take_answers(self) -> bool:
        return self._round() or bool(self.evictor.terminations.active)  # an order may have been answered

    def _round(self) -> bool:
        """Compute a round. Return whether other tasks or daemons are known now, of which nothing was measured yet."""
        before = self._known()
        if self.files is not None and not self._stopping and (read := self.files.step(self.config)) is not None:
            self._take(read)
        built = self._take_instances()
        self.last_round = self._compute()
        if (now := self.clock()) >= self._gives_back_at:
            self._gives_back_at = now + GIVE_BACK_SECONDS
            own_memory.give_back()
        return built or self._known() != before

    def _known(self) -> list[object]:
        """What distinguishes the known tasks and daemons from others; ages and progress change by themselves."""
        return [
            (name, self._daemons(), tasks.complete, [(t.id, t.state, t.processes) for t in tasks.tasks])
            for name, tasks in self._lists().items()
        ]

    # What it shows

    def _sources(self) -> Sources:
        return Sources(
            inbox=self.inbox,
            agent=self.evictor,
            throttling=self.throttling,
            process_status=self.process_status,
            clock=self.clock,
        )

    def process_status(self) -> "ProcessStatus":
        """The process's own part of `fallow status`."""
        from fallow_core.api.decisions import shortfalls
        from fallow_core.api.status import ConfigReads, ProcessStatus, RefusedFile  # only where somebody asks

        problems, refusals = self.refusals.lines(), self.refusals
        if self.files is not None and self.files.overdue:
            problems.append(f"{self.config.file.parent}: reading the files takes too long: no change is noticed")
        return ProcessStatus(
            uptime_seconds=self.clock() - self.started_at,
            config_file=str(self.config.file),
            building=tuple(self.builds.building),
            failed=dict(self.builds.failed),
            not_selected=self.config.not_selected_reasons,
            config_problems=tuple(problems),
            refused_files=tuple(
                RefusedFile(file=str(file), since=since, problems=tuple(map(str, found)))
                for file, (since, found) in sorted(refusals.files.items())
            ),
            config_reads=ConfigReads(
                taken=refusals.taken, refused=refusals.refused, last_taken_at=refusals.taken_at or None
            ),
            sample_problems=dict(self.sampler.missing),
            probe_problems=tuple(self.prober.missing),
            throttle_problems=tuple(self._throttle_problems()),
            changed_groups=self.throttling.changed_groups(),
            exempt_groups=self.throttling.exempt_groups(),
            shortfalls=shortfalls(self.evictor),
        )

    def _throttle_problems(self) -> list[str]:
        """What keeps batch from being throttled or terminated as configured."""
        return self.throttling.problems()

    def metrics(self) -> "list[Metric]":
        """All metrics now."""
        from fallow_core.api import metrics  # only where metrics are served

        switches = self.ledgers.journal.memory.switches
        return metrics.families(self.requests.status(), switches, self.evictor, self.requests.throttling())

    def _serve_metrics(self) -> Callable[[], None]:
        """Serve `/metrics`. Return a function that ends it."""
        if self.config.metrics is None:
            return lambda: None
        from fallow_core.api.metrics_server import serve  # takes a megabyte, which a process without metrics saves

        return serve(*self.config.metrics, lambda: self.inbox.ask(self.metrics))
