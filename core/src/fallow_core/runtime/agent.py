"""The process behind `fallow agent`: it protects one node, with a controller elsewhere or with none at all."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fallow_core.agent.probing import schedule
from fallow_core.agent.probing.prober import with_others
from fallow_core.agent.remote_ledger import REPORT_INTERVAL_SECONDS, Followed
from fallow_core.api import agent_requests
from fallow_core.api.control_socket import Peer
from fallow_core.config import changes
from fallow_core.config.settings import ClusterSettings, Config, PluginLoader
from fallow_core.log import event
from fallow_core.model.policy import PublishingPolicy
from fallow_core.model.sample import NodeSample
from fallow_core.node import own_memory
from fallow_core.plugins import discovery
from fallow_core.plugins.session import ClusterSession
from fallow_core.runtime.node_process import NodeProcess
from fallow_core.state import last_config, publish_journal
from fallow_core.state.node_grant import FILE_NAME, GrantFile
from fallow_hookspecs import RESOURCE_NAMES, Role

if TYPE_CHECKING:
    from fallow_core.api.status import Status

log = logging.getLogger("fallow.run")

LIST_SECONDS, LIST_BEFORE_SECONDS = 2.0, 0.5
"""How often tasks are listed; where looks are rarer, a list is due a little before the next one, which starts it."""
STARTED_SECONDS = 5.0
"""After so much time all that a start needs was read."""
GIVE_BACK_SECONDS = 120.0
"""How often memory is given back from then on: answers of a framework may be large."""


def of_agents(config: Config) -> Config:
    """The configuration as an agent has it: the clusters whose files name that role, in that role alone."""
    return replace(config, clusters=tuple(_of_agent(c) for c in config.clusters if Role.AGENT in c.config.roles))


def _of_agent(cluster: ClusterSettings) -> ClusterSettings:
    return replace(cluster, config=replace(cluster.config, roles=frozenset({Role.AGENT})))


class AgentProcess(NodeProcess):
    """A node process without a controller. `row_file`: where the node's row of a ledger elsewhere is, if there is one.

    It sends no sizes. Without a row that counts it terminates no task for overdraft. `policy_error`: why its files
    could not be kept for a start without them.
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

        :param read_again: what the files of a configuration say now; by default they are read in this process.
        :raises StateError: the state directory cannot be used, or another Fallow uses it.
        """
        config = of_agents(config)
        super().__init__(config, config.clusters, clock, load_plugin)
        self.followed = Followed(
            self.node,
            [cluster.name for cluster in config.clusters],
            config.policies,
            publish_journal.load(config.state_dir),
            GrantFile(row_file or config.state_dir / FILE_NAME, self.node.name),
        )
        self.policy_error = ""
        self._reader = read_again
        self._gives_back_at = clock() + STARTED_SECONDS
        self._changed_at = clock()
        self._publishing = PublishingPolicy(report_interval_seconds=REPORT_INTERVAL_SECONDS)

    @property
    def ledgers(self) -> Followed:
        """What stands in the controller's place."""
        return self.followed

    def _read_again(self, config: Config) -> Config:
        return super()._read_again(config) if self._reader is None else self._reader(config)

    def _tick(self) -> None:
        self._take_answers()
        self._decide(self.sample)

    def _take_answers(self) -> bool:
        """Take what calls brought; whether anything is different now."""
        if self.files is not None and not self._stopping and (read := self.files.step(self.config)) is not None:
            self._take(of_agents(read))
            return True
        built = self.builds.step(self._may_succeed)
        for settings, instance in built:
            self._add(ClusterSession(instance, settings.account, self._publishing))
        return self.followed.settle(self.clock()) or bool(built)

    def _decide(self, sample: NodeSample) -> None:
        lists = self._lists()
        applications = {cluster.name: cluster.applications for cluster in self.clusters.values()}
        self.agent.look(self.sampler.batch, lists, applications)
        ledger = self.followed.tick(sample, self.clock(), time.time())
        instances = {cluster.name: cluster.instance for cluster in self.clusters.values()}
        may_pay, stopped = self.followed.may_pay, self.followed.stopped
        paid_before = self.agent.begun["overdraft_evict"]
        self.agent.act(sample, ledger, lists, instances, may_pay, self.clock(), stopped)
        if self.agent.begun["overdraft_evict"] != paid_before:
            self.followed.row_file.spend()

    def _throttle(self) -> None:
        if self.clock() >= self._gives_back_at:
            self._gives_back_at = self.clock() + GIVE_BACK_SECONDS
            own_memory.give_back()
        self.throttling.step(self, self._lists(), not self.builds.building)
        if self.throttling.pressed:
            self._changed_at = self.clock()  # batch is held back more each second

    def _take_sample(self) -> None:
        before = self.sample
        super()._take_sample()
        if _moved(before, self.sample) or self.agent.terminations.active:
            self._changed_at = self.clock()

    def _interval(self) -> float:
        seconds = schedule.full_interval(self.config.sample_interval_seconds, self.clock() - self._changed_at)
        self.followed.list_every(max(LIST_SECONDS, seconds - LIST_BEFORE_SECONDS))
        return seconds

    def _answered(self) -> None:
        if self._take_answers():
            self._changed_at = self.clock()
            self._wants_look = True  # of a task that is new nothing was measured yet

    def _limit(self) -> None:
        """The limits follow at once; what is measured of tasks is as new as the last full look."""
        self._changed_at = now = self.clock()
        if self.watch.others_milli is not None:
            self.sample = with_others(self.sample, self.watch.others_milli, now)
        self._decide(self.sample)
        self._throttle()
        self._decided()

    def _may_succeed(self, name: str) -> bool:
        return name not in self.clusters or self.clusters[name].may_be_succeeded(self.clock())

    def _add(self, cluster: ClusterSession) -> None:
        if cluster.name in self.clusters:
            cluster.succeed(self.clusters[cluster.name], self.clock())
        self.followed.clusters[cluster.name] = cluster

    def _take(self, read: Config) -> None:
        """Put in force what the files say now, as far as it is right."""
        old, new = self.config, changes.in_force(self.config, read)
        self.config = new
        self.refusals.note(new.problems, time.time())
        for problem in new.problems:
            event(log, logging.ERROR, "file_refused", problem=problem)
        self.followed.watched.policies = new.policies
        self.agent.set_policy(new.qos)
        if new.log_level != old.log_level:
            logging.getLogger().setLevel(new.log_level.upper())
        wanted = {cluster.name: cluster for cluster in new.clusters}
        self.followed.names = tuple(sorted(wanted))
        for name in {cluster.name for cluster in old.clusters} - wanted.keys():
            self.builds.drop(name)
            if self.followed.clusters.pop(name, None) is not None:
                self.builds.retire(name)
        for cluster in new.clusters:
            self.builds.want(cluster)
        if not any(problem.file == new.file for problem in new.problems):
            self.policy_error = last_config.keep(new)
        event(log, logging.INFO, "files_read", clusters=len(new.clusters), problems=len(new.problems))

    def _tell_start(self) -> None:
        if not any(problem.file == self.config.file for problem in self.config.problems):
            self.policy_error = last_config.keep(self.config)
        event(log, logging.INFO, "started", node=self.node.name, role="agent", file=self.config.file)
        if self.followed.journal.lost:
            event(log, logging.ERROR, "journal_lost", reason=self.followed.journal.lost)
        super()._tell_start()

    def _leave(self) -> None:
        pass  # it sends no sizes, so none is left behind

    def status(self) -> "Status":
        """The answer to `status`."""
        from fallow_core.api.status import agent_status  # only where somebody asks

        return agent_status(self.followed, self._process_status(), self.clock())

    def _throttle_problems(self) -> list[str]:
        why = self.followed.row_file.why
        problems = [f"no task is terminated for overdraft: {why}"] if why else []
        return [*super()._throttle_problems(), *problems, *([self.policy_error] if self.policy_error else [])]

    def _handle(self, peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
        return agent_requests.answer(self, peer, request)


def _moved(before: NodeSample, now: NodeSample) -> bool:
    """Whether a full look found something else than the one before."""
    for name in RESOURCE_NAMES:
        old, new = before.of(name), now.of(name)
        if old is None or new is None or schedule.moved(new.used, old.used, new.capacity, name):
            return True
    return False
