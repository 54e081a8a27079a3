"""`fallow tasks`."""

from pathlib import Path

import click

from fallow_core.api.tasks import Tasks, TaskStatus
from fallow_core.cli.config_option import config_option
from fallow_core.cli.inspect import json_option, show_answer, socket_option
from fallow_core.cli.problems import task_problems
from fallow_core.cli.table import marked, part, seconds, table
from fallow_hookspecs import RESOURCE_NAMES

HEAD = ["TASK", "APPLICATION", "USER", "QUEUE", "ROLE", "STATE", "CPU USED", "OF", "GiB USED", "OF", "AGE", "COST"]


@click.command()
@config_option
@socket_option
@json_option
def tasks(path: Path, socket: Path | None, as_json: bool) -> None:
    """Show the tasks on this host, what each uses, and the cost of terminating it: cheapest first, masters last."""
    show_answer({"request": "tasks"}, path, socket, as_json, Tasks, lines)


def lines(answer: Tasks) -> list[str]:
    """The answer as a table."""
    notes = marked(task_problems(answer))
    if not answer.tasks:
        return [*notes, "no task is known on this host"]
    return [*notes, *table([HEAD, *map(_row, answer.tasks)]), "COST: core-seconds lost by terminating it"]


def _row(task: TaskStatus) -> list[str]:
    return [
        task.task,
        task.label,
        task.user or "?",
        task.queue or "?",
        task.role,
        f"{task.state}, {task.termination.phase}" if task.termination else task.state,
        *(cell for name in RESOURCE_NAMES for cell in (part(name, task.used), part(name, task.requested))),
        "?" if task.age_seconds is None else seconds(task.age_seconds),
        f"{task.harm_core_seconds:.0f}",
    ]
