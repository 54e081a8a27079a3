"""Gives kill orders to plugins. Core signals processes itself if the plugin is busy, fails, or is too slow."""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fallow_core.log import event
from fallow_core.model.task import TaskKey
from fallow_core.node import signals
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Call, Failure
from fallow_core.qos.termination import Order, Route
from fallow_hookspecs import KillAnswer, KillOutcome, KillResult, Node, Process

log = logging.getLogger("fallow.agent")

KILL_TIMEOUT_SECONDS = 5.0

Members = Mapping[TaskKey, Sequence[Process]]
"""The living batch processes of each task."""


@dataclass(slots=True)
class _Given:
    order: Order
    call: Call[KillOutcome]
    answered: bool = False


class Orders:
    """Gives the orders of one node and collects the answers. It never waits."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._given: list[_Given] = []
        self._ready: list[tuple[Order, KillOutcome]] = []

    def give(self, order: Order, instances: Mapping[str, PluginInstance], members: Members) -> None:
        """Give one order. Routes other than the plugin do not exist on a node, so such an order fails.

        An order for a plugin that has no instance yet gets no answer, so it is repeated.
        """
        ids = order.order.task_ids
        if order.route is not Route.PLUGIN:
            answer = KillAnswer(result=KillResult.NO_ACCESS, reason=f"nobody here can carry it out by {order.route}")
            self._ready.append((order, KillOutcome(answers=dict.fromkeys(ids, answer))))
            return
        if order.cluster not in instances:
            return
        call = instances[order.cluster].start_kill_tasks(self._node, order.order, KILL_TIMEOUT_SECONDS)
        event(log, logging.INFO, "kill_ordered", cluster=order.cluster, tasks=",".join(ids), force=order.order.force)
        if call is None:
            self._ready.append((order, self._by_core(order, members)))
        else:
            self._given.append(_Given(order=order, call=call))

    def settle(
        self, members: Members, now: float, restored: Collection[str] = ()
    ) -> Iterator[tuple[Order, KillOutcome]]:
        """The answers since the last time.

        Core carries out an order whose call is overdue or failed, except for a cluster that was restored meanwhile.
        """
        ready, self._ready = self._ready, []
        yield from ready
        given_before, self._given = self._given, []
        for given in given_before:
            if not given.call.done:
                self._given.append(given)
                if given.call.overdue(now) and not given.answered and given.order.cluster not in restored:
                    given.answered = True
                    yield given.order, self._by_core(given.order, members)
                continue
            outcome = given.call.outcome
            if not isinstance(outcome, Failure):
                yield given.order, outcome
                continue
            event(log, logging.WARNING, "kill_failed", cluster=given.order.cluster, reason=outcome.reason)
            if not given.answered and given.order.cluster not in restored:
                yield given.order, self._by_core(given.order, members)

    def _by_core(self, order: Order, members: Members) -> KillOutcome:
        """Signal the processes: pressure cannot wait for a plugin."""
        event(log, logging.WARNING, "kill_by_core", cluster=order.cluster, tasks=",".join(order.order.task_ids))
        answers = {}
        for task_id in order.order.task_ids:
            done = signals.terminate(members.get(TaskKey(order.cluster, task_id), ()), order.order.force)
            if done.sent:
                answers[task_id] = KillAnswer(result=KillResult.TERMINATING)
            elif done.refused:
                reason = "this user may not signal its processes"
                answers[task_id] = KillAnswer(result=KillResult.FAILED, reason=reason)
            else:
                answers[task_id] = KillAnswer(result=KillResult.FAILED, reason="no process of it was seen")
        return KillOutcome(answers=answers)
