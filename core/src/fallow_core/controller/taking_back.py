"""Take-backs of the rows that the controller owns: what decides about them, and what is told of them."""

import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.node_ledger import NodeInputs, NodeLedger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.take_back import Decision, Situation, TakeBacks, budget, step
from fallow_core.ledger.take_back_offers import cancels, with_take_backs
from fallow_core.log import event
from fallow_core.model.policy import AccountPolicy, PublishingMode, SwitchState, TakeBack
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_core.model.task import ObservedTask
from fallow_core.plugins.session import ClusterSession
from fallow_hookspecs import ResourceName, Resources

log = logging.getLogger("fallow.take_back")

SETTLE_SECONDS = 1800.0
"""For so long after a changed policy nothing is taken back and no task is terminated for overdraft."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of the tasks of one node: the tasks, what those of each row were promised, and why that may not be
    all. `floors_given_up`: until when, of rows whose floor keeps losing tasks to pressure.
    """

    tasks: tuple[ObservedTask, ...] = ()
    requested: Mapping[RowKey, Resources] = field(default_factory=dict)
    unsure: str = ""
    floors_given_up: Mapping[RowKey, float] = field(default_factory=dict)


NOTHING_SEEN: Mapping[str, Seen] = {}


class TakingBack:
    """Remembers adoption, take-backs under way and the blast radius; the newest decisions are for showing.

    `started` counts the take-backs that were started, by cluster. `cancelling` are the rows of cancelled ones of which
    the framework has not been told: it has to be, also when nothing else is sent.
    """

    def __init__(self, policy: TakeBackPolicy) -> None:
        self.policy = policy
        self.state = TakeBacks()
        self.decisions: dict[ResourceName, dict[RowKey, Decision]] = {}
        self.started: Counter[str] = Counter()
        self.cancelling: frozenset[RowKey] = frozenset()
        self._settled_at = -math.inf
        self._situations: dict[ResourceName, dict[RowKey, Situation]] = {}
        self._told: set[tuple[RowKey, ResourceName]] = set()
        self._enforced = self._wanted = False

    def step(
        self,
        due: Sequence[DueOffer],
        ledger: NodeLedger,
        inputs: NodeInputs,
        clusters: Mapping[str, ClusterSession],
        tasks: Sequence[ObservedTask],
    ) -> list[DueOffer]:
        """What is due, with the take-backs of this moment. In observe mode they are only told."""
        before = self.state
        modes = {self.policy.mode, inputs.publishing.mode}
        self._wanted = PublishingMode.OBSERVE not in modes  # what is not published is not taken back either
        # After a change to observe, what is under way is cancelled first.
        self._enforced = self._wanted or any(part.active is not None for part in before.parts.values())
        for name in self.policy.after_seconds:
            situations = {row.key: self._situation(row, name, inputs, clusters, tasks) for row in inputs.rows}
            self._situations[name] = situations
            self.state, found = step(self.state, ledger.of(name), situations, self.policy, inputs.now)
            self.decisions[name] = found
            self._tell(name, found)
        decisions: Mapping[ResourceName, Mapping[RowKey, Decision]] = self.decisions
        if not self._enforced:
            self.state = _without_starts(self.state, before)
            decisions = {name: _without_active(found) for name, found in self.decisions.items()}
        self.cancelling = cancels(inputs.rows, decisions)
        return with_take_backs(due, inputs.rows, decisions, inputs.now)

    def settle(self, now: float) -> None:
        """The policy of something was changed: for a while what is over only drains."""
        self._settled_at = now + SETTLE_SECONDS

    def forget(self, cluster: str) -> None:
        """The cluster is gone: should it come back, what it has then is adopted anew."""
        parts = {part: state for part, state in self.state.parts.items() if part[0].cluster != cluster}
        self.state = replace(self.state, parts=parts)

    def adopt(self, keys: Iterable[RowKey]) -> list[RowKey]:
        """What is allocated there may be taken back from now on, although it was there at first."""
        adopted = sorted(keys)
        for key in adopted:
            for name in self.policy.after_seconds:
                part = self.state.of(key, name)
                self.state = self.state.with_part(key, name, replace(part, fitted=True))
        return adopted

    def may_pay(self, now: float) -> dict[str, int]:
        """What tasks of each cluster may still be terminated for overdraft of memory, in bytes: where the framework
        cannot take back, or did not in its time; nothing that was adopted, and no more than the blast radius leaves.
        """
        pays: dict[str, int] = {}
        if now < self._settled_at:
            return pays
        for key, decision in self.decisions.get("memory", {}).items():
            situation = self._situations["memory"][key]
            active = decision.state.active
            tried = active is not None and active.overdue(now, self.policy)
            taken_back = situation.allowed and self._enforced
            if decision.overdraft and decision.state.fitted and (tried or not taken_back):
                left = budget(self.state, key.cluster, "memory", situation, self.policy, now)
                if tried and active is not None:
                    left = max(left, active.amount)
                pays[key.cluster] = max(pays.get(key.cluster, 0), left)
        return pays

    def _situation(
        self,
        row: Row,
        name: ResourceName,
        inputs: NodeInputs,
        clusters: Mapping[str, ClusterSession],
        tasks: Sequence[ObservedTask],
    ) -> Situation:
        account = inputs.accounts.get(row.key.cluster, AccountPolicy())
        capabilities = clusters[row.key.cluster].capabilities
        capability = None if capabilities is None else (capabilities.cpu if name == "cpu" else capabilities.memory)
        usage, limit = inputs.sample.of(name), inputs.publishing.degrade_after_seconds
        sampled = usage is not None and inputs.now - usage.measured_at < limit
        here = [t for t in tasks if t.cluster == row.key.cluster and t.task.framework_node == row.key.framework_node]
        lends = account.switch is not SwitchState.RESTORED
        return Situation(
            allowed=capability is not None
            and capability.takes_back
            and not capability.take_back_charged
            and account.take_back is TakeBack.ALLOWED
            and lends
            and self._enforced == self._wanted,
            fresh=sampled and inputs.now - row.measured_at < limit and not inputs.unsure,
            masters=sum(t.requested.amount(name) for t in here if t.is_master),
            largest=max((t.requested.amount(name) for t in here), default=0),
            cluster_allocated=sum(r.allocated.amount(name) for r in inputs.rows if r.key.cluster == row.key.cluster),
            arrived_sent_at=row.arrived_sent_at,
            settles=inputs.now < self._settled_at,
            stopped=account.switch is SwitchState.STOP,
        )

    def _tell(self, name: ResourceName, found: Mapping[RowKey, Decision]) -> None:
        for key, decision in found.items():
            self.started[key.cluster] += decision.start and self._enforced
            if decision.start and (self._enforced or (key, name) not in self._told):
                what = "take_back_starts" if self._enforced else "take_back_would_start"
                self._told.add((key, name))
                active = decision.state.active
                details = {} if active is None else {"amount": active.amount, "notice_seconds": active.notice_seconds}
                _event(what, key, resource=name, **details, why=decision.why)
            elif decision.cancel:
                _event("take_back_cancelled", key, resource=name, why=decision.why)
            if not decision.overdraft:
                self._told.discard((key, name))


def _without_active(found: Mapping[RowKey, Decision]) -> dict[RowKey, Decision]:
    """What was decided without the take-backs that only would start."""
    return {key: decision for key, decision in found.items() if decision.state.active is None}


def _without_starts(state: TakeBacks, before: TakeBacks) -> TakeBacks:
    """The state as if nothing had started: adoption and the time of overdrafts are remembered all the same."""
    parts = {part: replace(remembered, active=None) for part, remembered in state.parts.items()}
    return replace(state, parts=parts, started=before.started)


def _event(name: str, key: RowKey, **fields: object) -> None:
    event(log, logging.INFO, name, cluster=key.cluster, node=key.framework_node, **fields)
