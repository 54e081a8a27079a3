"""The evictor of one node: observes tasks, decides what has to be freed, and follows each termination."""

import logging
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from fallow_core.agent.eviction.orders import Orders
from fallow_core.agent.eviction.task_join import leading_processes, observed_tasks, unsure
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
from fallow_core.qos import terminations
from fallow_core.qos.given_up_floors import given_up
from fallow_core.qos.harm import Harm, harms
from fallow_core.qos.need import NodeView
from fallow_core.qos.plan import PRESSURE, PlanState, plan, still_lacking
from fallow_core.qos.relief import NodeRelief, defer_eviction
from fallow_core.qos.termination import Phase, Termination, Terminations
from fallow_core.qos.victims import Choice
from fallow_core.state.terminations_file import TerminationsFile
from fallow_hookspecs import Application, Node, Process, Resources, TaskState

log = logging.getLogger("fallow.agent")

REMEMBERED_DECISIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A choice and its time, for `fallow explain`."""

    at: float
    choice: Choice


class Evictor:
    """Terminates tasks of one node. Every method belongs to the thread of the loop; times are monotonic seconds.

    `decisions` and `finished` (terminations with the time when the task was gone) keep the newest ones. `terminated`
    counts the tasks that Fallow terminated, by cluster and strategy, `chosen` the tasks that were chosen, by strategy.
    `shortfalls`: by strategy, the newest choice that does not free enough, while that is so. `restored`: the clusters
    that were left alone in the newest round. `load_error` and `save_error`: why terminations could not be loaded or
    saved. `relief`: what throttling may still free; its owner sets it. `members`: the living processes of each task, as
    of the newest `observe`. Of these core signals only those that are batch, whatever a plugin lists.
    """

    def __init__(self, node: Node, policy: QosPolicy, file: TerminationsFile, now: float) -> None:
        self.node = node
        self.tasks: tuple[ObservedTask, ...] = ()
        self.incomplete: dict[str, str] = {}
        self.decisions: deque[Decision] = deque(maxlen=REMEMBERED_DECISIONS)
        self.finished: deque[tuple[float, Termination]] = deque(maxlen=REMEMBERED_DECISIONS)
        self.terminations, self.load_error = file.load(now)
        self.save_error = ""
        self.terminated: Counter[tuple[str, str]] = Counter()
        self.chosen: Counter[str] = Counter()
        self.shortfalls: dict[str, Choice] = {}
        self.restored: frozenset[str] = frozenset()
        self.relief = NodeRelief()
        self._policy = policy
        self._file = file
        self._saved = self.terminations
        self._state = PlanState()
        self._orders = Orders(node)
        self._owners: Owners = {}
        self.members: dict[TaskKey, list[Process]] = {}
        self._batch_members: dict[TaskKey, list[Process]] = {}
        self._unattributed: tuple[Collection[Process], Resources] | None = None
        self._alive: frozenset[TaskKey] = frozenset()
        self._batch = BatchPass()

    def set_policy(self, policy: QosPolicy) -> None:
        """Use another policy from now on; terminations under way continue."""
        self._policy = policy

    def harms(self, now: float) -> dict[TaskKey, Harm]:
        """The harm of terminating each task now; for a task that is not terminating, the harm that a choice uses."""
        policy = self._policy.termination
        history = terminations.history(self.terminations, policy, now)
        freed = terminations.being_freed(self.terminations)
        living = [t for t in self.tasks if t.key not in freed and t.task.state is not TaskState.TERMINATING]
        terminating = [t for t in self.tasks if t not in living]
        among_living = harms(living, policy, history.recent_terminations, terminating)
        among_all = harms(self.tasks, policy, history.recent_terminations)
        return {t.key: among_all(t) for t in self.tasks} | {t.key: among_living(t) for t in living}

    def observe(
        self, batch: BatchPass, lists: Mapping[str, ListedTasks], applications: Mapping[str, Iterable[Application]]
    ) -> None:
        """Update the tasks.

        If the newest list of a cluster is incomplete, its tasks count only while they have living processes. The
        processes of a task that is being terminated stay its own when it is no longer listed.
        """
        followed: dict[TaskKey, tuple[Process, ...]] = {termination.key: () for termination in self.terminations.active}
        self._batch = batch
        self._owners = owners(batch.processes, followed | leading_processes(lists), self._owners)
        self.members, self._batch_members, self._unattributed = {}, {}, None
        for process, key in self._owners.items():
            self.members.setdefault(key, []).append(process)
            if process in batch.batch:
                self._batch_members.setdefault(key, []).append(process)
        used = usages(batch, self._owners)
        self._alive = frozenset(used)
        self.incomplete = {
            name: found.reason or "its list of tasks is old"
            for name, found in lists.items()
            if not found.is_complete(batch.at)
        }
        found = observed_tasks(self.node.name, lists, applications, used)
        self.tasks = tuple(t for t in found if lists[t.cluster].complete or t.key in used or not t.task.processes)

    def unsure(self, sample: NodeSample, daemons: Collection[Process]) -> str:
        """Why the use of this node cannot be attributed, after `observe`; empty if it can."""
        if self._unattributed is None or self._unattributed[0] != daemons:
            self._unattributed = daemons, unattributed(self._batch, self._owners, daemons)
        return unsure(sample, self._unattributed[1])

    def floors_given_up(self, now: float) -> dict[RowKey, float]:
        """The rows that are offered no floor, because pressure repeatedly terminated their tasks, and until when."""
        return {RowKey(self.node.name, *floor): until for floor, until in given_up(self.terminations, now).items()}

    def act(
        self,
        sample: NodeSample,
        ledger: NodeLedger,
        lists: Mapping[str, ListedTasks],
        instances: Mapping[str, PluginInstance],
        termination_budget_bytes: Mapping[str, int],
        now: float,
        stopped: frozenset[str] = frozenset(),
        restored: frozenset[str] = frozenset(),
    ) -> None:
        """Take answers and the observation, decide, and give the orders that are due. `save` has to follow.

        :param restored: the clusters that get no order, whatever was decided before.
        """
        for order, outcome in self._orders.settle(self._batch_members, now, restored):
            self._take_answers(terminations.answered(self.terminations, order, outcome, now))
        self._leave_alone(restored)
        complete = frozenset(name for name, found in lists.items() if found.is_complete(now))
        self._follow(complete, now)
        view = NodeView(
            node=self.node.name,
            now=now,
            sample=sample,
            ledger=ledger,
            tasks=self.tasks,
            tasks_complete=bool(lists) and complete == frozenset(lists),
            terminating=terminations.being_freed(self.terminations),
            freeing_bytes=terminations.freeing_bytes(self.terminations),
            termination_budget_bytes=termination_budget_bytes,
            stopped=stopped,
            restored=restored,
        )
        self._decide(view)
        self.terminations, orders = terminations.due(self.terminations, self._policy.termination, now)
        for order in orders:
            self._orders.give(order, instances, self._batch_members)

    def _leave_alone(self, restored: frozenset[str]) -> None:
        before, self.restored = self.terminations.active, restored
        self.terminations = terminations.without_orders_to(self.terminations, restored)
        under_way = {termination.key for termination in self.terminations.active if not termination.withdrawn}
        for termination in before:
            if not termination.withdrawn and termination.key not in under_way:
                cluster, task = termination.key
                event(log, logging.WARNING, "termination_withdrawn", cluster=cluster, task=task)

    def _decide(self, view: NodeView) -> None:
        policy, before = self._policy.termination, self._state
        history = terminations.history(self.terminations, policy, view.now)
        qos = defer_eviction(self._policy, self.relief, view.now)
        self._state, choices = plan(view, qos, before, history)
        self._note_shortfalls(choices, view, qos)
        for choice in choices:
            if choice.need.strategy == "memory_evict" and not choice.victims:
                # No task could be terminated: do not wait for the cool-down until one can.
                self._state = replace(self._state, memory_evict=before.memory_evict)
            self._record(choice, view.now)
            self.chosen[choice.need.strategy] += len(choice.victims) if choice.need.enforce else 0
            self.terminations = terminations.begun(self.terminations, choice, policy, view.ledger, view.now)

    def _note_shortfalls(self, choices: Iterable[Choice], view: NodeView, qos: QosPolicy) -> None:
        before = self.shortfalls
        newest = {choice.need.strategy: choice for choice in choices if choice.need.strategy in PRESSURE}
        lasting = still_lacking(view, qos, self._state)
        self.shortfalls = {
            name: choice for name, choice in (before | newest).items() if choice.shortfall and name in lasting
        }
        for name in self.shortfalls.keys() - before.keys():
            choice = self.shortfalls[name]
            spared = "; ".join(f"{count} tasks: {why}" for why, count in choice.spared().items())
            fields = {"strategy": name, "why": choice.need.why, "short_of": choice.shortfall, "spared": spared}
            event(log, logging.WARNING, "pressure_not_relieved", resource=choice.need.resource, **fields)

    def _follow(self, complete: frozenset[str], now: float) -> None:
        """Note which terminations are done, or have failed."""
        policy = self._policy.termination
        observed = terminations.observed(self.terminations, self.tasks, complete, self._alive, policy, now)
        for termination in observed.gone:
            event(log, logging.INFO, "task_gone", cluster=termination.key.cluster, task=termination.key.task_id)
            self.finished.append((now, termination))
            self.terminated[termination.key.cluster, termination.strategy] += 1
        for termination in observed.failed:
            _log_failed(termination)
        self.terminations = observed.terminations

    def _take_answers(self, newest: Terminations) -> None:
        before = frozenset(self.terminations.active)
        for termination in newest.active:
            if termination.phase is Phase.FAILED and termination not in before:
                _log_failed(termination)
        self.terminations = newest

    def _record(self, choice: Choice, now: float) -> None:
        last = self.decisions[-1].choice if self.decisions else None
        repeated = last is not None and not last.victims and last.need.strategy == choice.need.strategy
        if repeated and not choice.victims:
            self.decisions[-1] = Decision(at=now, choice=choice)  # keep older decisions instead of the same one again
            return
        self.decisions.append(Decision(at=now, choice=choice))
        if not choice.victims and choice.need.strategy in PRESSURE:
            return  # `pressure_not_relieved` says so
        name = "tasks_terminate" if choice.need.enforce else "tasks_would_terminate"
        ids = ",".join(victim.task.task.id for victim in choice.victims)
        level = logging.WARNING if choice.shortfall else logging.INFO
        strategy, why = choice.need.strategy, choice.need.why
        event(log, level, name, strategy=strategy, tasks=ids, why=why, short_of=choice.shortfall)

    def save(self) -> None:
        """Save the terminations, after their orders were given.

        An order does not wait for the disk, which may be slow just when memory runs out. If Fallow is killed between
        the order and the write, the next process orders again, and the grace of the task begins anew: no task loses a
        part of its grace. If the write came first, the grace would count from before the order.
        """
        if self.terminations == self._saved:
            return
        try:
            self._file.save(self.terminations)
        except StateError as error:
            if self.save_error != str(error):
                event(log, logging.ERROR, "terminations_not_saved", reason=error)
            self.save_error = str(error)
        else:
            self._saved, self.save_error = self.terminations, ""


def _log_failed(termination: Termination) -> None:
    cluster, task = termination.key
    event(log, logging.WARNING, "task_not_terminated", cluster=cluster, task=task, why=termination.note)
