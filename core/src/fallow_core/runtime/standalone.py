"""The process behind `fallow run`: the agent of this host and a controller for it, in one loop."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from fallow_core.agent.last_round import LastRound
from fallow_core.api.run_requests import RunRequests
from fallow_core.config.changes import policy_differs
from fallow_core.config.settings import Config, PluginLoader
from fallow_core.controller.controller import Controller
from fallow_core.controller.grant_writer import GrantWriter
from fallow_core.log import event
from fallow_core.model.host_limit import HostLimit
from fallow_core.model.policy import ExitMode, PublishingMode, PublishingPolicy
from fallow_core.model.sample import NodeSample
from fallow_core.node.daemon_limits import DaemonLimits
from fallow_core.planner.observations import NodeObservation, task_sums
from fallow_core.plugins import discovery
from fallow_core.plugins.session import ClusterSession
from fallow_core.runtime.node_process import NodeProcess
from fallow_core.state import publish_journal

log = logging.getLogger("fallow.run")

STARTING_SECONDS = 10.0
LEAVE_SECONDS = 15.0
LEAVE_POLL_SECONDS = 0.2
SKIP = "a second SIGTERM or Ctrl-C stops at once; sizes that did not arrive stay as they are"


class Standalone(NodeProcess):
    """A node process with its own controller."""

    def __init__(
        self,
        config: Config,
        clock: Callable[[], float] = time.monotonic,
        load_plugin: PluginLoader = discovery.load,
        row_file: Path | None = None,
        state_user: int | None = None,
    ) -> None:
        """Read what an earlier process left.

        :param row_file: where to write this node's row for an agent.
        :param state_user: whose state directory it is; `None`: that of the user of this process.
        :raises StateError: the state directory cannot be used, or another Fallow uses it.
        """
        super().__init__(config, clock, load_plugin, state_user)
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
        self.requests = RunRequests(self.controller, self._sources())
        self.daemon_limits = DaemonLimits(self.throttling.hierarchies, self.throttling.originals)
        self._rows = None if row_file is None else GrantWriter(row_file)

    @property
    def ledgers(self) -> Controller:
        """The controller."""
        return self.controller

    @property
    def _publishing(self) -> PublishingPolicy:
        return self.config.publishing

    def _interval(self) -> float:
        return self.config.sample_interval_seconds

    def _add(self, cluster: ClusterSession) -> None:
        self.controller.add(cluster)

    def _configure(self, old: Config, new: Config) -> None:
        self.controller.set_nodes((self.node,))
        if policy_differs(old, new):
            self.controller.policy_changed()
            event(log, logging.INFO, "policy_changed", mode=new.publishing.mode)
        self.controller.configure(new.policies, new.publishing, new.take_back)
        wanted = {cluster.name: cluster for cluster in new.clusters}
        for name in sorted({cluster.name for cluster in old.clusters} - wanted.keys()):
            event(log, logging.INFO, "cluster_leaves", cluster=name, mode=new.on_exit)
            self.controller.remove(name, new.on_exit)
        for name, cluster in wanted.items():
            self.controller.add_name(name)
            running = self.builds.running.get(name)
            if running is not None and running[0] is cluster:
                self.clusters[name].configure(cluster.account, new.publishing)

    def _compute(self) -> LastRound:
        name, now, tasks = self.node.name, self.clock(), self.evictor.tasks
        observation = NodeObservation(
            sample=NodeSample() if self._starts(now) else self.sample,
            labels=self.node.labels,
            tasks=task_sums(tasks),
            unsure=self._unsure(now),
            floors_given_up=self.evictor.floors_given_up(now),
            limits=self._limits_of_daemons(now),
        )
        self.controller.tick({name: observation})
        if self._rows is not None:
            self._rows.step(self.controller, name, now, time.time())
        return LastRound(
            ledger=self.controller.ledgers[name],
            may_pay=self.controller.budgets(name),
            stopped=self.controller.state.stopped(name),
        )

    def _starts(self, now: float) -> bool:
        """Whether it is too early for a sample: until tasks are listed, batch's own use would count as use of the
        system, and the first offers would be too small.
        """
        unlisted = any(self.node.name not in cluster.lists for cluster in self._listing())
        return unlisted and now - self.started_at < STARTING_SECONDS

    def _unsure(self, now: float) -> str:
        """Why the batch on this host is not known; empty if it is."""
        for cluster in self._listing():
            found = cluster.lists.get(self.node.name)
            if found is None or not found.is_complete(now):
                why = "its tasks are not listed" if found is None else found.reason or "its list of tasks is old"
                return f"{cluster.name}: {why}"
        return self.evictor.unsure(self.sample, self._daemons())

    def _limits_of_daemons(self, now: float) -> dict[tuple[str, str], tuple[HostLimit, ...]]:
        """What this host allows each daemon, by cluster and the framework's name of the node."""
        found = self.daemon_limits.of(self._daemons(), self.sampler.batch.processes, self.sample, now)
        return {
            (name, each.framework_node or ""): found.get(each.process, ())
            for name, cluster in self.clusters.items()
            for each in cluster.daemons.get(self.node.name, ())
        }

    def _listing(self) -> list[ClusterSession]:
        """The clusters whose plugin lists tasks."""
        return [c for c in self.clusters.values() if "list_tasks" not in c.instance.health().missing_hooks]

    def _tell_start(self) -> None:
        mode, file = self.config.publishing.mode, self.config.file
        event(log, logging.INFO, "started", node=self.node.name, mode=mode, file=file)

    def _leave(self) -> None:
        """Send the sizes that `onExit` says, and wait for the frameworks' answers. Observe mode sends nothing."""
        mode = self.config.on_exit
        if self.config.publishing.mode is PublishingMode.OBSERVE or mode is ExitMode.KEEP:
            return
        event(log, logging.INFO, "leaving", mode=mode)
        deadline = self.clock() + LEAVE_SECONDS
        self.controller.leave(mode)
        self._full_probe()
        self._tell_waits()
        while not self.controller.left:
            if self.clock() >= deadline:
                event(log, logging.WARNING, "left_without_answer", seconds=LEAVE_SECONDS)
                return
            self._full_probe()
            self.inbox.serve(LEAVE_POLL_SECONDS)

    def _tell_waits(self) -> None:
        """Say which clusters a stop waits for, for how long at most, and how not to wait."""
        for name in sorted(self.controller.state.left_behind):
            failing = self.clusters[name].failing if name in self.clusters else {}
            level = logging.WARNING if failing else logging.INFO
            fields = {"reason": "; ".join(f"{call} failed: {why}" for call, why in failing.items())} if failing else {}
            event(log, level, "stop_waits", cluster=name, at_most_seconds=LEAVE_SECONDS, skip=SKIP, **fields)
