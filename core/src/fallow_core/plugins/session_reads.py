"""The calls of one instance's reads lane: when they are due, and what they brought. Never waits."""

from collections.abc import Iterator

from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Call, Failure
from fallow_hookspecs import CapacityReport, Node, Role, TaskList

REPORT_TIMEOUT_SECONDS = 20.0
LIST_TASKS_INTERVAL_SECONDS = 2.0
LIST_TASKS_TIMEOUT_SECONDS = 5.0


class Reads:
    """A report every `report_interval_seconds`, and the tasks of each node every `list_interval_seconds`, as far as the
    lane is free. An agent's instance need not report.
    """

    def __init__(self, instance: PluginInstance, report_interval_seconds: float) -> None:
        self._instance = instance
        self.report_interval_seconds = report_interval_seconds
        self.list_interval_seconds = LIST_TASKS_INTERVAL_SECONDS
        missing = instance.health().missing_hooks
        self._lists_tasks = "list_tasks" not in missing
        self._reports = "report_capacity" not in missing or Role.CONTROLLER in instance.roles
        self._report: Call[CapacityReport] | None = None
        self._report_due_at: float | None = None
        self._lists: dict[str, Call[TaskList]] = {}
        self._list_due_at: dict[str, float] = {}

    def start(self, nodes: tuple[Node, ...], now: float) -> None:
        """Start what is due; a report goes before lists of tasks."""
        if self._reports and self._report is None and (self._report_due_at is None or now >= self._report_due_at):
            self._report = self._instance.start_report(nodes, REPORT_TIMEOUT_SECONDS)
            if self._report is not None:
                self._report_due_at = now + self.report_interval_seconds
        for node in nodes if self._lists_tasks else ():
            if node.name not in self._lists and now >= self._list_due_at.get(node.name, now):
                call = self._instance.start_list_tasks(node, LIST_TASKS_TIMEOUT_SECONDS)
                if call is not None:
                    self._lists[node.name] = call
                    self._list_due_at[node.name] = now + self.list_interval_seconds

    def report_soon(self) -> None:
        """Ask for a report with the next start."""
        self._report_due_at = None

    def list_soon(self) -> None:
        """Ask for the tasks of each node with the next start."""
        self._list_due_at.clear()

    def report(self) -> CapacityReport | Failure | None:
        """The outcome of the report that has ended since the last time, if any."""
        if self._report is None or not self._report.done:
            return None
        outcome, self._report = self._report.outcome, None
        return outcome

    def task_lists(self) -> Iterator[tuple[str, TaskList | Failure]]:
        """By node, the outcomes of the lists that have ended since the last time."""
        for node in [node for node, call in self._lists.items() if call.done]:
            yield node, self._lists.pop(node).outcome
