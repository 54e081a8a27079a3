"""Joins the tasks of a node: the list of each cluster's plugin, the applications, and the measured use. Pure."""

from collections.abc import Iterable, Mapping

from fallow_core.model.listed import ListedTasks
from fallow_core.model.sample import NodeSample
from fallow_core.model.task import ObservedTask, TaskKey, TaskUsage
from fallow_hookspecs import RESOURCE_NAMES, Application, Process, Resources

UNSURE_PERCENT = 5
"""The share of a node's use that may belong to no known task."""


def observed_tasks(
    node: str,
    lists: Mapping[str, ListedTasks],
    applications: Mapping[str, Iterable[Application]],
    usages: Mapping[TaskKey, TaskUsage],
) -> tuple[ObservedTask, ...]:
    """All tasks of a node; the keys of `lists` and `applications` are clusters."""
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
    """Why the use of the node cannot be attributed, given the use of batch that belongs to no task; empty if it can.

    If such use counted as the system's, batch would reduce its own capacity.
    """
    for name in RESOURCE_NAMES:
        usage, amount = sample.of(name), unattributed.amount(name)
        if usage is not None and amount * 100 > usage.used * UNSURE_PERCENT:
            return f"{amount * 100 // max(usage.used, 1)} % of the {name} in use is batch of no known task"
    return ""


def leading_processes(lists: Mapping[str, ListedTasks]) -> dict[TaskKey, tuple[Process, ...]]:
    """The processes that the plugins list for each task; all their descendants belong to the task too."""
    return {
        TaskKey(cluster, task.id): task.processes
        for cluster, found in lists.items()
        for task in found.tasks
        if task.processes
    }
