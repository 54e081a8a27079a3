"""The tasks of a node, from what each cluster's plugin listed, its applications, and what was measured. Pure."""

from collections.abc import Iterable, Mapping

from fallow_core.model.listed import ListedTasks
from fallow_core.model.sample import NodeSample
from fallow_core.model.task import ObservedTask, TaskKey, TaskUsage
from fallow_hookspecs import RESOURCE_NAMES, Application, Process, Resources

UNSURE_PERCENT = 5
"""So much of a node's use may belong to no known task."""


def seen_tasks(
    node: str,
    lists: Mapping[str, ListedTasks],
    applications: Mapping[str, Iterable[Application]],
    usages: Mapping[TaskKey, TaskUsage],
) -> tuple[ObservedTask, ...]:
    """All tasks on a node; `lists` and `applications` go by cluster."""
    by_id = {(name, each.id): each for name, of_cluster in applications.items() for each in of_cluster}
    return tuple(
        ObservedTask(
            cluster=cluster,
            node=node,
            task=task,
            measured_at=found.measured_at,
            application=by_id.get((cluster, task.application_id)),
            usage=usages.get(TaskKey(cluster, task.id)),
        )
        for cluster, found in sorted(lists.items())
        for task in found.tasks
    )


def unsure(sample: NodeSample, unattributed: Resources) -> str:
    """Why it is not known what on the node is whose, by what belongs to no task; empty if it is known well enough.

    Were it taken for a task's, or for use of the system, batch's own use would become online, and eat itself.
    """
    for name in RESOURCE_NAMES:
        usage, amount = sample.of(name), unattributed.amount(name)
        if usage is not None and amount * 100 > usage.used * UNSURE_PERCENT:
            return f"{amount * 100 // max(usage.used, 1)} % of the {name} in use is batch of no known task"
    return ""


def leaders(lists: Mapping[str, ListedTasks]) -> dict[TaskKey, tuple[Process, ...]]:
    """The leading processes of each task that has any."""
    return {
        TaskKey(cluster, task.id): task.processes
        for cluster, found in lists.items()
        for task in found.tasks
        if task.processes
    }
