"""The process behind `fallow agent`: it protects one node, with a controller elsewhere or without any."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fallow_core.agent.last_round import LastRound
from fallow_core.agent.probing import schedule
from fallow_core.agent.probing.prober import with_others
from fallow_core.agent.remote_ledger import REPORT_INTERVAL_SECONDS, RemoteLedger
from fallow_core.api.agent_requests import AgentRequests
from fallow_core.config.settings import ClusterSettings, Config, PluginLoader
from fallow_core.log import event
from fallow_core.model.policy import PublishingPolicy
from fallow_core.model.sample import NodeSample
from fallow_core.plugins import discovery
from fallow_core.plugins.session import ClusterSession
from fallow_core.runtime.node_process import NodeProcess
from fallow_core.state import last_config, publish_journal
from fallow_core.state.node_grant import FILE_NAME, GrantFile
from fallow_hookspecs import RESOURCE_NAMES, Role

log = logging.getLogger("fallow.run")

LIST_SECONDS, LIST_BEFORE_SECONDS = 2.0, 0.5
"""How often tasks are listed. With rarer probes, a list is due shortly before the next probe, which starts it."""


def of_agents(config: Config) -> Config:
    """The configuration as an agent has it: the clusters whose files name that role, in that role alone."""
    others = frozenset(each.name for each in config.correct_clusters if Role.AGENT not in each.config.roles)
    clusters, not_selected = (
        tuple(_of_agent(cluster) for cluster in every if cluster.name not in others)
        for every in (config.clusters, config.not_selected)
    )
    return replace(config, clusters=clusters, not_selected=not_selected, named=config.named - others)


def _of_agent(cluster: ClusterSettings) -> ClusterSettings:
    return replace(cluster, config=replace(cluster.config, roles=frozenset({Role.AGENT})))


class AgentProcess(NodeProcess):
    """A node process without a controller. It sends no sizes.

    Without a valid row of a controller's ledger it terminates no task for overdraft.
    """

    def __init__(
        self,
        config: Config,
        clock: Callable[[], float] = time.monotonic,
        load_plugin: PluginLoader = discovery.load,
        row_file: Path | None = None,
        read_again: Callable[[Config], Config] | None = None,
    ) -> None:
        """Read what an earlier process left.

        :param row_file: where a controller writes this node's row.
        :param read_again: reads the files of a configuration again; by default this process does.
        :raises StateError: the state directory cannot be used, or another Fallow uses it.
        """
        config = of_agents(config)
        super().__init__(config, clock, load_plugin)
        self.followed = RemoteLedger(
            self.node,
            [cluster.name for cluster in config.clusters],
            config.policies,
            publish_journal.load(config.state_dir),
            GrantFile(row_file or config.state_dir / FILE_NAME, self.node.name),
        )
        self.requests = AgentRequests(self.followed, self._sources())
        self._not_kept = ""
        self._reader = read_again
        self._changed_at = clock()

    @property
    def ledgers(self) -> RemoteLedger:
        """The stand-in for a controller."""
        return self.followed

    @property
    def _publishing(self) -> PublishingPolicy:
        return PublishingPolicy(report_interval_seconds=REPORT_INTERVAL_SECONDS)

    def _read_again(self, config: Config) -> Config:
        return of_agents(super()._read_again(config) if self._reader is None else self._reader(config))

    def _add(self, cluster: ClusterSession) -> None:
        if cluster.name in self.clusters:
            cluster.succeed(self.clusters[cluster.name], self.clock())
        self.followed.clusters[cluster.name] = cluster

    def _configure(self, old: Config, new: Config) -> None:
        self.followed.node = self.node
        self.followed.configure(new.policies, [cluster.name for cluster in new.clusters])
        for name in self.followed.clusters.keys() - set(self.followed.names):
            del self.followed.clusters[name]
        self._keep()

    def _compute(self) -> LastRound:
        now = self.clock()
        self.followed.settle(now)
        ledger = self.followed.tick(self.sample, now, time.time())
        return LastRound(ledger=ledger, may_pay=self.followed.may_pay, stopped=self.followed.stopped)

    def _act(self) -> None:
        before = self.evictor.chosen["overdraft_evict"]
        super()._act()
        if self.evictor.chosen["overdraft_evict"] != before:
            self.followed.row_file.spend()
        if self.throttling.pressed:
            self._changed_at = self.clock()  # batch is throttled more each second

    def _round(self) -> bool:
        changed = super()._round()
        if changed:
            self._changed_at = self.clock()
        return changed

    def _take_sample(self) -> None:
        before = self.sample
        super()._take_sample()
        if _moved(before, self.sample) or self.evictor.terminations.active:
            self._changed_at = self.clock()

    def _interval(self) -> float:
        seconds = schedule.full_interval(self.config.sample_interval_seconds, self.clock() - self._changed_at)
        self.followed.list_every(max(LIST_SECONDS, seconds - LIST_BEFORE_SECONDS))
        return seconds

    def _limit(self) -> bool:
        """Adapt the limits at once, with the use of tasks as the last full probe measured it."""
        self._changed_at = now = self.clock()
        if self.prober.others_milli is not None:
            self.sample = with_others(self.sample, self.prober.others_milli, now)
        return self._protect()

    def _tell_start(self) -> None:
        self._keep()
        event(log, logging.INFO, "started", node=self.node.name, role="agent", file=self.config.file)

    def _keep(self) -> None:
        """Keep the files for a start without them, unless the core file is wrong."""
        config = self.config
        if not any(problem.file == config.file for problem in config.problems):
            files = [cluster.file for cluster in config.correct_clusters]
            self._not_kept = last_config.keep(config.state_dir, config.file, config.clusters_dir, files)

    def _leave(self) -> None:
        pass  # it sent no sizes

    def _throttle_problems(self) -> list[str]:
        """The same, with what keeps the agent from terminating tasks, and from starting without its files."""
        why = self.followed.row_file.why
        reasons = [f"no task is terminated for overdraft: {why}" if why else "", self._not_kept]
        return [*super()._throttle_problems(), *filter(None, reasons)]


def _moved(before: NodeSample, now: NodeSample) -> bool:
    """Whether a full probe found something else than the one before."""
    for name in RESOURCE_NAMES:
        old, new = before.of(name), now.of(name)
        if old is None or new is None or schedule.moved(new.used, old.used, new.capacity, name):
            return True
    return False
