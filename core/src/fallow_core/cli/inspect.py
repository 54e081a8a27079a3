"""The commands that ask a running Fallow, or look at what it needs: status, explain, switch, doctor, restore."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from fallow_core.api.control_socket import ask, user_name
from fallow_core.api.encoding import from_json, to_json
from fallow_core.api.explain import Explanation
from fallow_core.api.operations import Adopted, CheckResult, Switched
from fallow_core.api.status import Status
from fallow_core.cli import render_operations
from fallow_core.cli.config_option import config_option
from fallow_core.cli.render_explain import explanation_lines
from fallow_core.cli.render_status import status_lines
from fallow_core.cli.table import printable
from fallow_core.config.document import read
from fallow_core.config.settings import CONTROL_SOCKET, CORE_FILE

T = TypeVar("T")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
socket_option = click.option(
    "--socket",
    type=click.Path(path_type=Path, readable=False),
    help="The control socket; by default the one that the config names.",
)


def show(answer: Any, as_json: bool, lines: Callable[[], list[str]]) -> None:
    """Print an answer as JSON, or as lines."""
    click.echo(json.dumps(answer, indent=2) if as_json else "\n".join(map(printable, lines())))


def show_answer(
    request: dict[str, Any],
    path: Path,
    socket: Path | None,
    as_json: bool,
    kind: type[T],
    lines: Callable[[T], list[str]],
) -> None:
    """Send a request to the running Fallow, and print its answer, which is of a kind."""
    answer = ask(socket_of(path, socket), request)
    show(answer, as_json, lambda: lines(from_json(kind, answer)))


def socket_of(path: Path, socket: Path | None) -> Path:
    """Where to ask. A config that is wrong by now does not keep anybody from asking the process that runs."""
    if socket is not None:
        return socket
    file = path / CORE_FILE if path.is_dir() else path
    document, _ = read(file)
    named = document.data.get("controlSocket") if document is not None else None
    return file.parent / (named if isinstance(named, str) else CONTROL_SOCKET)


@click.command()
@config_option
@socket_option
@json_option
def status(path: Path, socket: Path | None, as_json: bool) -> None:
    """Show what the node can lend, and each cluster with its offers, sizes in force, beliefs and health."""
    show_answer({"request": "status"}, path, socket, as_json, Status, status_lines)


@click.command()
@click.argument("node", required=False)
@config_option
@socket_option
@json_option
def explain(node: str | None, path: Path, socket: Path | None, as_json: bool) -> None:
    """Show the inputs and the arithmetic of each offer on NODE (default: this host)."""
    show_answer({"request": "explain", "node": node}, path, socket, as_json, Explanation, explanation_lines)


@click.command()
@click.argument("state", type=click.Choice(["lend", "hold", "drain", "stop"]))
@click.argument("scope")
@click.option("--why", default="", help="Why; shown in status.")
@config_option
@socket_option
@json_option
def switch(state: str, scope: str, why: str, path: Path, socket: Path | None, as_json: bool) -> None:
    """Let SCOPE lend (normal), hold (no growth), drain (no new work) or stop (what does not end is taken back).

    SCOPE is a cluster, framework:NAME, pool:NAME, node:NAME or all. The strictest that matches counts. Kept over
    restarts.
    """
    request = {"request": "switch", "state": state, "scope": scope, "why": why}
    show_answer(request, path, socket, as_json, Switched, render_operations.switched)


@click.command()
@click.argument("cluster")
@click.option("--take-back", is_flag=True, required=True, help="Confirm it: tasks may be terminated.")
@config_option
@socket_option
@json_option
def adopt(cluster: str, take_back: bool, path: Path, socket: Path | None, as_json: bool) -> None:
    """Let what CLUSTER had allocated when Fallow first saw its nodes be taken back like everything else.

    Until then it is only drained: starting Fallow terminates nothing.
    """
    request = {"request": "adopt", "cluster": cluster}
    show_answer(request, path, socket, as_json, Adopted, render_operations.adopted)


@click.command()
@config_option
@json_option
def doctor(path: Path, as_json: bool) -> int:
    """Check what Fallow needs on this host and of its frameworks. Exit code 1 if something is wrong."""
    from fallow_core.cli.run import load_config
    from fallow_core.diagnostics.doctor import findings
    from fallow_core.runtime.standalone import this_host

    config = load_config(path)
    found = [CheckResult(about=about, **asdict(each)) for about, each in findings(config, this_host(config))]
    show([to_json(each) for each in found], as_json, lambda: render_operations.findings(found))
    return int(any(each.ok is False for each in found))


@click.command()
@config_option
@json_option
def restore(path: Path, as_json: bool) -> int:
    """Put sizes and control groups back as they were found, and change nothing until `fallow switch lend CLUSTER`.

    Works with a running Fallow, and without one. Exit code 1 if a size could not be put back.
    """
    from fallow_core.cli.run import load_config
    from fallow_core.runtime.restore import restore

    config = load_config(path)
    answer = restore(config, user_name(os.geteuid()))
    show(to_json(answer), as_json, lambda: render_operations.restored(answer))
    return int(not answer.done)
