"""The agent of one node: what its tasks use, what has to be freed, and each termination until it is seen gone."""

import logging
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from fallow_core.agent.eviction.orders import Orders
from fallow_core.agent.eviction.task_join import leaders, seen_tasks, unsure
from fallow_core.errors import StateError
from fallow_core.ledger.node_ledger import NodeLedger
from fallow_core.ledger.rows import RowKey
from fallow_core.log import event
from fallow_core.model.listed import ListedTasks
from fallow_core.model.qos_policy import QosPolicy
from fallow_core.model.sample import NodeSample
from fallow_core.model.task import ObservedTask, TaskKey
from fallow_core.node.task_usage import BatchPass, Owners, owners, unattributed, usages
from fallow_core.plugins.instance import PluginInstance
from fallow_core.qos import terminations as lives
from fallow_core.qos.given_up_floors import given_up
from fallow_core.qos.harm import Harm, harms
from fallow_core.qos.need import NodeView
from fallow_core.qos.plan import PlanState, Throttles, plan, throttling_first
from fallow_core.qos.termination import Phase, Termination, Terminations
from fallow_core.qos.victims import Choice
from fallow_core.state.terminations_file import TerminationsFile
from fallow_hookspecs import Application, Node, Process, TaskState

log = logging.getLogger("fallow.agent")

REMEMBERED_DECISIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A choice and when it was made: for `fallow explain`."""

    at: float
    choice: Choice


class Agent:
    """Protects one node. Every method belongs to the thread that ticks it; times are monotonic seconds.

    `ended` counts the tasks that Fallow ended and that are seen gone, by cluster and strategy. `lost` says why the
    terminations of an earlier process could not be read, `file_error` why the present ones cannot be written. `begun`
    counts the tasks that were chosen to end, by strategy. `throttles` is what is done before anything ends, as whoever
    throttles batch says.
    """

    def __init__(self, node: Node, policy: QosPolicy, file: TerminationsFile, now: float) -> None:
        self.node = node
        self.tasks: tuple[ObservedTask, ...] = ()
        self.decided: deque[Decided] = deque(maxlen=REMEMBERED_DECISIONS)
        self.over: deque[tuple[float, Termination]] = deque(maxlen=REMEMBERED_DECISIONS)
        self.terminations, self.lost = file.load(now)
        self.file_error = ""
        self.ended: Counter[tuple[str, str]] = Counter()
        self.begun: Counter[str] = Counter()
        self.throttles = Throttles()
        self._policy = policy
        self._file = file
        self._saved = self.terminations
        self._state = PlanState()
        self._orders = Orders(node)
        self._owners: Owners = {}
        self._alive: frozenset[TaskKey] = frozenset()
        self._batch = BatchPass()
        self.incomplete: dict[str, str] = {}

    def set_policy(self, policy: QosPolicy) -> None:
        """Another policy from now on; what is being terminated already is terminated."""
        self._policy = policy

    def harms(self, now: float) -> dict[TaskKey, Harm]:
        """What terminating each task would cost now; of those that nobody ends yet, what a choice would count."""
        past, freed = lives.past(self.terminations, self._policy.termination, now), lives.being_freed(self.terminations)
        living = [t for t in self.tasks if t.key not in freed and t.task.state is not TaskState.TERMINATING]
        termination = [t for t in self.tasks if t not in living]
        among_living = harms(living, self._policy.termination, past.terminations_lately, termination)
        among_all = harms(self.tasks, self._policy.termination, past.terminations_lately)
        return {t.key: among_all(t) for t in self.tasks} | {t.key: among_living(t) for t in living}

    def look(
        self, batch: BatchPass, lists: Mapping[str, ListedTasks], applications: Mapping[str, Iterable[Application]]
    ) -> None:
        """Bring the tasks up to date.

        A task whose cluster's list is not complete any more counts only while a process of it lives. What a task that
        is being terminated leaves running stays its own, although it is not listed any more.
        """
        followed: dict[TaskKey, tuple[Process, ...]] = {termination.key: () for termination in self.terminations.active}
        self._batch = batch
        self._owners = owners(batch.processes, followed | leaders(lists), self._owners)
        used = usages(batch, self._owners)
        self._alive = frozenset(used)
        self.incomplete = {
            name: found.reason or "its list of tasks is old"
            for name, found in lists.items()
            if not found.is_complete(batch.at)
        }
        found = seen_tasks(self.node.name, lists, applications, used)
        self.tasks = tuple(t for t in found if lists[t.cluster].complete or t.key in used or not t.task.processes)

    def unsure(self, sample: NodeSample, daemons: Collection[Process]) -> str:
        """Why it is not known whose the use of this node is, after a look; empty if it is."""
        return unsure(sample, unattributed(self._batch, self._owners, daemons))

    def floors_given_up(self, now: float) -> dict[RowKey, float]:
        """Until when no floor is offered to the rows of which pressure took tasks again and again."""
        return {RowKey(self.node.name, *floor): until for floor, until in given_up(self.terminations, now).items()}

    def act(
        self,
        sample: NodeSample,
        ledger: NodeLedger,
        lists: Mapping[str, ListedTasks],
        instances: Mapping[str, PluginInstance],
        may_pay: Mapping[str, int],
        now: float,
        stopped: frozenset[str] = frozenset(),
    ) -> None:
        """Take answers and what was seen, decide, and give the orders that are due. `save` has to follow."""
        for order, outcome in self._orders.settle(self._batch_members(), now):
            self._take_answers(lives.answered(self.terminations, order, outcome, now))
        complete = frozenset(name for name, found in lists.items() if found.is_complete(now))
        self._observe(complete, now)
        view = NodeView(
            node=self.node.name,
            now=now,
            sample=sample,
            ledger=ledger,
            tasks=self.tasks,
            tasks_complete=bool(lists) and complete == frozenset(lists),
            terminating=lives.being_freed(self.terminations),
            may_pay=may_pay,
            stopped=stopped,
        )
        termination = self._policy.termination
        before = self._state
        policy = throttling_first(self._policy, self.throttles, now)
        self._state, choices = plan(view, policy, before, lives.past(self.terminations, termination, now))
        for choice in choices:
            if choice.need.strategy == "memory_evict" and not choice.victims:
                # Nobody could end: that is no reason to wait until somebody can.
                self._state = replace(self._state, memory_evict=before.memory_evict)
            self._tell(choice, now)
            self.begun[choice.need.strategy] += len(choice.victims) if choice.need.enforce else 0
            self.terminations = lives.begun(self.terminations, choice, termination, ledger, now)
        self.terminations, orders = lives.due(self.terminations, termination, now)
        for order in orders:
            self._orders.give(order, instances, self._batch_members(), now)

    def _observe(self, complete: frozenset[str], now: float) -> None:
        seen = lives.observed(self.terminations, self.tasks, complete, self._alive, self._policy.termination, now)
        for termination in seen.gone:
            event(log, logging.INFO, "task_gone", cluster=termination.key.cluster, task=termination.key.task_id)
            self.over.append((now, termination))
            self.ended[termination.key.cluster, termination.strategy] += 1
        for termination in seen.failed:
            _tell_failed(termination)
        self.terminations = seen.terminations

    def _take_answers(self, terminations: Terminations) -> None:
        before = frozenset(self.terminations.active)
        for termination in terminations.active:
            if termination.phase is Phase.FAILED and termination not in before:
                _tell_failed(termination)
        self.terminations = terminations

    def _tell(self, choice: Choice, now: float) -> None:
        last = self.decided[-1].choice if self.decided else None
        repeated = last is not None and not last.victims and last.need.strategy == choice.need.strategy
        if repeated and not choice.victims:
            self.decided[-1] = Decided(at=now, choice=choice)  # the older ones are worth more than the same again
            return
        self.decided.append(Decided(at=now, choice=choice))
        name = "tasks_terminate" if choice.need.enforce else "tasks_would_terminate"
        ids = ",".join(victim.task.task.id for victim in choice.victims)
        level = logging.WARNING if choice.shortfall else logging.INFO
        strategy, why = choice.need.strategy, choice.need.why
        event(log, level, name, strategy=strategy, tasks=ids, why=why, short_of=choice.shortfall)

    def members(self) -> dict[TaskKey, list[Process]]:
        """The processes of each task that live, as the newest look found them."""
        members: dict[TaskKey, list[Process]] = {}
        for process, key in self._owners.items():
            members.setdefault(key, []).append(process)
        return members

    def _batch_members(self) -> dict[TaskKey, list[Process]]:
        """Those that are batch: whatever a plugin lists as a task's, core signals nothing else."""
        batch = self._batch.batch
        return {key: [each for each in found if each in batch] for key, found in self.members().items()}

    def save(self) -> None:
        """Write the terminations down, after their orders were given.

        An order does not wait for the disk, which may be slow just when memory runs out. If Fallow is killed between
        the order and the write, the next process orders again, and the grace of the task begins anew: no task loses a
        part of its grace. Had the write come first, the grace would count from before the order.
        """
        if self.terminations == self._saved:
            return
        try:
            self._file.save(self.terminations)
        except StateError as error:
            if self.file_error != str(error):
                event(log, logging.ERROR, "terminations_not_saved", reason=error)
            self.file_error = str(error)
        else:
            self._saved, self.file_error = self.terminations, ""


def _tell_failed(termination: Termination) -> None:
    cluster, task = termination.key
    event(log, logging.WARNING, "task_not_terminated", cluster=cluster, task=task, why=termination.note)
