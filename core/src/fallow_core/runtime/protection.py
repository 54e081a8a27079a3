"""The agent of a node at work: it samples the node, and acts before anything else is done."""

import logging
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fallow_core.agent.eviction.evictor import Evictor
from fallow_core.agent.eviction.task_join import leading_processes
from fallow_core.agent.last_round import LastRound
from fallow_core.agent.probing.schedule import ProbeDue
from fallow_core.agent.throttling.batch_groups import BatchGroup
from fallow_core.agent.throttling.host_throttling import HostThrottling
from fallow_core.config.settings import Config
from fallow_core.ledger.effective_policy import policy_now
from fallow_core.log import event
from fallow_core.model.listed import ListedTasks
from fallow_core.model.sample import NodeSample
from fallow_core.node.host_sampler import HostSampler
from fallow_core.plugins.session import ClusterSession
from fallow_core.qos.need import NodeView
from fallow_core.runtime.loop import Loop
from fallow_core.state.terminations_file import TerminationsFile
from fallow_hookspecs import Node, Process

if TYPE_CHECKING:
    from fallow_core.agent.remote_ledger import RemoteLedger
    from fallow_core.controller.controller import Controller

log = logging.getLogger("fallow.run")

UNKNOWN_SECONDS = 10.0
"""After a start, the longest wait for plugins that cannot be built or list no tasks: one must not delay the others."""


class Protection(Loop):
    """Acts by the newest sample and the last round's results, and only then lets a round be computed.

    `last_round` is `None` before the first round: until then the agent does nothing.
    """

    def __init__(self, node: Node, config: Config, clock: Callable[[], float]) -> None:
        super().__init__(config, clock)
        self.node = node
        self.sampler = HostSampler(clock)
        self.sample = NodeSample()
        self.evictor = Evictor(node, config.qos, TerminationsFile(config.state_dir), clock())
        self.throttling = HostThrottling(node, config)
        self.last_round: LastRound | None = None
        self._listed_once: set[str] = set()
        self._acts_since: float | None = None
        self._enforced_since: float | None = None

    @property
    @abstractmethod
    def ledgers(self) -> "Controller | RemoteLedger":
        """The owner of the node's ledger, the clusters, and their switches."""

    @abstractmethod
    def _round(self) -> bool:
        """Compute a round, and set `last_round`. Return whether a full probe is wanted soon."""

    @abstractmethod
    def _all_built(self) -> bool:
        """Whether no plugin instance is being built for the first time."""

    @property
    def clusters(self) -> Mapping[str, ClusterSession]:
        """The clusters that have a plugin instance, by name."""
        return self.ledgers.clusters

    def _full_probe(self) -> bool:
        self._take_sample()
        return self._protect()

    def _limit(self) -> bool:
        return self._full_probe()

    def _protect(self) -> bool:
        """Act first. A round writes files and waits for the disk, which may be slow just when memory runs out."""
        self._act()
        self.prober.decided(self.sample, (path for path, group in self._groups().items() if group.home is None))
        return self._round()

    def _quick_probe(self) -> ProbeDue:
        return self.prober.probe(self.config, self.sample, self._groups())

    def _take_sample(self) -> None:
        tasks = [process for roots in leading_processes(self._lists()).values() for process in roots]
        newest = self.sampler.sample([*self._daemons(), *tasks])  # a task's process may have left its daemon's tree
        for resource, reason in self.sampler.missing.items():
            if self.sample.of(resource) is not None:
                event(log, logging.WARNING, "sample_failed", resource=resource, reason=reason)
        self.sample = NodeSample(cpu=newest.cpu or self.sample.cpu, memory=newest.memory or self.sample.memory)

    def _act(self) -> None:
        """Terminate tasks and throttle batch by the newest sample and the last round."""
        lists, now = self._lists(), self.clock()
        applications = {name: cluster.applications for name, cluster in self.clusters.items()}
        self.evictor.observe(self.sampler.batch, lists, applications)
        last = self.last_round
        if last is None:
            return
        policy = policy_now(self.config.policies, self.node.name, self.node.labels, time.time()).policy
        ledger = last.ledger_at(self.sample, policy, now)
        instances = {name: cluster.instance for name, cluster in self.clusters.items()}
        restored = self.ledgers.restored  # of this moment, and not of the last round: a restore counts at once
        self.evictor.act(self.sample, ledger, lists, instances, last.may_pay, now, last.stopped, restored)
        changeable = [name for name in self.ledgers.names if name not in restored]
        self._listed_once |= {name for name, found in lists.items() if found.complete}
        view = NodeView(
            node=self.node.name,
            now=now,
            sample=self.sample,
            ledger=ledger,
            tasks=self.evictor.tasks,
            tasks_complete=bool(lists) and self._all_built() and lists.keys() <= self._listed_once,
            stale_seconds=self.config.qos.stale_seconds,
        )
        members, batch = self.evictor.members, self.sampler.batch
        relief = self.throttling.step(view, self.config.qos, members, batch, instances, changeable)
        self.evictor.relief = replace(relief, enforced_since=self._since(view))
        self.evictor.save()

    def _since(self, view: NodeView) -> float | None:
        """Since when batch has been throttled by this process, with all tasks known or no longer waited for."""
        self._acts_since = view.now if self._acts_since is None else self._acts_since
        if self._enforced_since is None and (view.tasks_complete or view.now - self._acts_since >= UNKNOWN_SECONDS):
            self._enforced_since = view.now
        return self._enforced_since

    def _list_soon(self) -> None:
        for cluster in self.clusters.values():
            cluster.list_soon()
            cluster.start_reads((self.node,), self.clock())

    def _groups(self) -> Mapping[str, BatchGroup]:
        """The groups of batch that may be limited."""
        return {} if self.throttling.limiter is None else self.throttling.limiter.groups

    def _lists(self) -> dict[str, ListedTasks]:
        """The newest task list of this host, by cluster."""
        name = self.node.name
        return {cluster.name: cluster.lists[name] for cluster in self.clusters.values() if name in cluster.lists}

    def _daemons(self) -> list[Process]:
        return [d.process for cluster in self.clusters.values() for d in cluster.daemons.get(self.node.name, ())]
