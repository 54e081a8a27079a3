"""`fallow tasks`."""

from pathlib import Path
from typing import Any

import click

from fallow_core.api.control_socket import ask
from fallow_core.cli.config_option import config_option
from fallow_core.cli.inspect import json_option, show, socket_of, socket_option
from fallow_core.cli.table import amount, paragraph, seconds, table
from fallow_hookspecs import RESOURCE_NAMES, ResourceName

FIELDS: dict[ResourceName, str] = {"cpu": "cpu_milli", "memory": "memory_bytes"}
SHORT_ID = 40


@click.command()
@config_option
@socket_option
@json_option
def tasks(path: Path, socket: Path | None, as_json: bool) -> None:
    """Show the tasks on this host, what each uses, and the cost of terminating it: cheapest first, masters last."""
    answer = ask(socket_of(path, socket), {"request": "tasks"})
    show(answer, as_json, lines)


def lines(answer: dict[str, Any]) -> list[str]:
    """The answer as a table."""
    notes = [f"! {name}: not all tasks are known: {why}" for name, why in answer["incomplete"].items()]
    notes += [f"! {answer[key]}" for key in ("terminations_error", "terminations_lost") if answer[key]]
    notes = [line for note in notes for line in paragraph(note)]
    if not answer["tasks"]:
        return [*notes, "no task is known on this host"]
    head = ["TASK", "APPLICATION", "USER", "QUEUE", "ROLE", "STATE", "CPU USED", "OF", "GiB USED", "OF", "AGE", "COST"]
    return [
        *notes,
        *table([head, *(_row(task) for task in answer["tasks"])]),
        "COST: core-seconds lost by terminating it",
    ]


def _row(task: dict[str, Any]) -> list[str]:
    state = f"{task['state']}, {task['termination']['phase']}" if task["termination"] else task["state"]
    sizes = []
    for name in RESOURCE_NAMES:
        used = None if task["used"] is None else task["used"][FIELDS[name]]
        sizes += [amount(name, used), amount(name, task["requested"][FIELDS[name]])]
    return [
        task["task"][-SHORT_ID:],
        task["name"] or task["application"],
        task["user"] or "?",
        task["queue"] or "?",
        task["role"],
        state,
        *sizes,
        "?" if task["age_seconds"] is None else seconds(task["age_seconds"]),
        f"{task['harm_core_seconds']:.0f}",
    ]
