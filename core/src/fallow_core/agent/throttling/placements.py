"""Asks plugins for the groups of their tasks and whether their processes may be moved, whenever tasks change."""

import logging
from collections.abc import Mapping, Sequence

from fallow_core.log import event
from fallow_core.model.task import ObservedTask, TaskKey
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Call, Failure, FailureKind
from fallow_hookspecs import Node, Placement, TaskPlacement

log = logging.getLogger("fallow.agent")

TIMEOUT_SECONDS = 5.0
RETRY_SECONDS, REFRESH_SECONDS = 1.0, 10.0
"""When to ask again: while the placement of a task is not known, and otherwise."""


class Placements:
    """The newest answers. `known`: the placement of each task; `failed`: why the plugin of a cluster gave no answer."""

    def __init__(self, node: Node, parent: str) -> None:
        self.known: dict[TaskKey, TaskPlacement] = {}
        self.failed: dict[str, str] = {}
        self._node = node
        self._parent = parent
        self._calls: dict[str, Call[Placement]] = {}
        self._asked: dict[str, tuple[float, frozenset[str]]] = {}

    def step(self, tasks: Sequence[ObservedTask], instances: Mapping[str, PluginInstance], now: float) -> None:
        """Take answers, and start the calls that are due. It never waits for a plugin.

        A call is due when the tasks of a cluster changed, and at intervals.
        """
        keys = {task.key for task in tasks}
        self.known = {key: place for key, place in self.known.items() if key in keys}
        for cluster, asked in list(self._calls.items()):
            if asked.done:
                del self._calls[cluster]
                self._take(cluster, asked.outcome)
        for cluster, instance in instances.items():
            ids = frozenset(task.task.id for task in tasks if task.cluster == cluster)
            if cluster not in self._calls and ids and self._is_due(cluster, ids, now):
                call = instance.start_set_cgroup_parent(self._node, self._parent, TIMEOUT_SECONDS)
                if call is not None:
                    self._calls[cluster] = call
                    self._asked[cluster] = (now, ids)

    def _is_due(self, cluster: str, ids: frozenset[str], now: float) -> bool:
        asked_at, asked_for = self._asked.get(cluster, (None, frozenset()))
        if asked_at is None or ids != asked_for:
            return True
        unknown = any(TaskKey(cluster, one) not in self.known for one in ids)
        return now - asked_at >= (RETRY_SECONDS if unknown and cluster not in self.failed else REFRESH_SECONDS)

    def _take(self, cluster: str, outcome: Placement | Failure) -> None:
        if isinstance(outcome, Failure):
            self.failed[cluster] = outcome.reason
            if outcome.kind is not FailureKind.NOT_IMPLEMENTED:
                event(log, logging.WARNING, "placement_failed", cluster=cluster, reason=outcome.reason)
            return
        self.failed.pop(cluster, None)
        placed = [place for place in outcome.tasks if place.cgroups or place.movable or place.setting]
        self.known |= {TaskKey(cluster, place.task_id): place for place in placed}
