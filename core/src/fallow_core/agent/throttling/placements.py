"""What plugins say of where their tasks are and which of their processes may be moved; asked when tasks change."""

import logging
from collections.abc import Mapping, Sequence

from fallow_core.log import event
from fallow_core.model.task import ObservedTask, TaskKey
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Call, Failure, FailureKind
from fallow_hookspecs import Node, Placement, TaskPlacement

log = logging.getLogger("fallow.agent")

TIMEOUT_SECONDS = 5.0
SOON_SECONDS = 1.0
AGAIN_SECONDS = 10.0


class Placements:
    """The newest answers. `known`: where each task is; `failed`: why a cluster's plugin does not tell."""

    def __init__(self, node: Node, parent: str) -> None:
        self.known: dict[TaskKey, TaskPlacement] = {}
        self.failed: dict[str, str] = {}
        self._node = node
        self._parent = parent
        self._calls: dict[str, Call[Placement]] = {}
        self._asked: dict[str, tuple[float, frozenset[str]]] = {}

    def step(self, tasks: Sequence[ObservedTask], instances: Mapping[str, PluginInstance], now: float) -> None:
        """Take answers, and ask where something changed since the last question, or nothing is known of a task."""
        keys = {task.key for task in tasks}
        self.known = {key: place for key, place in self.known.items() if key in keys}
        for cluster, call in list(self._calls.items()):
            if call.done:
                del self._calls[cluster]
                self._take(cluster, call.outcome)
        for cluster, instance in instances.items():
            ids = frozenset(task.task.id for task in tasks if task.cluster == cluster)
            if cluster not in self._calls and ids and self._is_due(cluster, ids, now):
                asked = instance.start_set_cgroup_parent(self._node, self._parent, TIMEOUT_SECONDS)
                if asked is not None:
                    self._calls[cluster] = asked
                    self._asked[cluster] = (now, ids)

    def _is_due(self, cluster: str, ids: frozenset[str], now: float) -> bool:
        asked_at, asked_for = self._asked.get(cluster, (None, frozenset()))
        if asked_at is None or ids != asked_for:
            return True
        unknown = any(TaskKey(cluster, one) not in self.known for one in ids)
        return now - asked_at >= (SOON_SECONDS if unknown and cluster not in self.failed else AGAIN_SECONDS)

    def _take(self, cluster: str, outcome: Placement | Failure) -> None:
        if isinstance(outcome, Failure):
            self.failed[cluster] = outcome.reason
            if outcome.kind is not FailureKind.NOT_IMPLEMENTED:
                event(log, logging.WARNING, "placement_failed", cluster=cluster, reason=outcome.reason)
            return
        self.failed.pop(cluster, None)
        placed = [place for place in outcome.tasks if place.cgroups or place.movable or place.setting]
        self.known |= {TaskKey(cluster, place.task_id): place for place in placed}
