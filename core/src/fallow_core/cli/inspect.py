"""The commands that ask a running Fallow, or look at what it needs: status, explain, switch, doctor, restore."""

import json
import logging
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from fallow_core.api.control_socket import ask, user_name
from fallow_core.api.encoding import from_json, to_json
from fallow_core.api.explain import Explanation
from fallow_core.api.operations import Adopted, CheckResult, Forgotten, LostStateAccepted, Switched
from fallow_core.api.status import Status
from fallow_core.cli import render_operations
from fallow_core.cli.config_option import config_option
from fallow_core.cli.printable import printable
from fallow_core.cli.render_explain import explanation_lines
from fallow_core.cli.render_status import status_lines
from fallow_core.config.document import read
from fallow_core.config.settings import CONTROL_SOCKET, CORE_FILE

T = TypeVar("T")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
socket_option = click.option(
    "--socket",
    type=click.Path(path_type=Path, readable=False),
    help="The control socket. Default: the one in the configuration.",
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
    """Show what each node can lend, and the offers, sizes in force, beliefs and health of each cluster."""
    show_answer({"request": "status"}, path, socket, as_json, Status, status_lines)


@click.command()
@click.argument("node", required=False)
@config_option
@socket_option
@json_option
def explain(node: str | None, path: Path, socket: Path | None, as_json: bool) -> None:
    """Show how each offer on NODE (default: this host) was calculated."""
    show_answer({"request": "explain", "node": node}, path, socket, as_json, Explanation, explanation_lines)


@click.command()
@click.argument("state", type=click.Choice(["lend", "hold", "drain", "stop"]))
@click.argument("scope")
@click.option("--why", default="", help="The reason; fallow status shows it.")
@config_option
@socket_option
@json_option
def switch(state: str, scope: str, why: str, path: Path, socket: Path | None, as_json: bool) -> None:
    """Set SCOPE to lend (normal), hold (no growth), drain (no new work) or stop (terminate what does not end).

    SCOPE is a cluster, framework:NAME, pool:NAME, node:NAME or all. Of the switches that match, the strictest counts.
    They survive a restart.
    """
    request = {"request": "switch", "state": state, "scope": scope, "why": why}
    show_answer(request, path, socket, as_json, Switched, render_operations.switched)


@click.command()
@click.option("--why", required=True, help="The reason; it is kept with your name.")
@config_option
@socket_option
@json_option
def accept_lost_state(why: str, path: Path, socket: Path | None, as_json: bool) -> None:
    """Go on without the files of the state directory that cannot be read; fallow status names them.

    Before, check what Fallow no longer knows: switches are as if never set, and the sizes and control files that are
    found now count as the original ones, which fallow restore puts back. The files are renamed, not deleted.
    """
    request = {"request": "accept-lost-state", "why": why}
    show_answer(request, path, socket, as_json, LostStateAccepted, render_operations.lost_state_accepted)


@click.command()
@click.argument("cluster")
@click.option("--take-back", is_flag=True, required=True, help="Confirm that tasks may be terminated.")
@config_option
@socket_option
@json_option
def adopt(cluster: str, take_back: bool, path: Path, socket: Path | None, as_json: bool) -> None:
    """Allow taking back what CLUSTER had allocated when Fallow first saw its nodes.

    Without this, Fallow only waits for those tasks to end: starting Fallow terminates nothing.
    """
    request = {"request": "adopt", "cluster": cluster}
    show_answer(request, path, socket, as_json, Adopted, render_operations.adopted)


@click.command()
@click.argument("cluster")
@config_option
@socket_option
@json_option
def forget(cluster: str, path: Path, socket: Path | None, as_json: bool) -> None:
    """Forget CLUSTER if its file was removed, or else its nodes that nobody reports any more or that have no daemon.

    Others may then be lent what it had. Use it when the framework is gone: its scheduler is no longer believed.
    """
    request = {"request": "forget", "cluster": cluster}
    show_answer(request, path, socket, as_json, Forgotten, render_operations.forgotten)


@click.command()
@config_option
@json_option
def doctor(path: Path, as_json: bool) -> int:
    """Check what Fallow needs on this host and from its frameworks. Exit code 1 if a check fails."""
    from fallow_core.cli.run import load_config
    from fallow_core.diagnostics.doctor import findings
    from fallow_core.runtime.node_process import this_host

    config = load_config(path)
    found = [CheckResult(about=about, **asdict(each)) for about, each in findings(config, this_host(config))]
    show([to_json(each) for each in found], as_json, lambda: render_operations.findings(found))
    return int(any(each.ok is False for each in found))


@click.command()
@config_option
@json_option
def restore(path: Path, as_json: bool) -> int:
    """Put sizes and control groups back to what Fallow found, and change nothing until `fallow switch lend CLUSTER`.

    Until then no task is throttled or terminated, also under pressure and after a restart.

    Works with and without a running Fallow. Exit code 1 if a size cannot be put back.
    """
    from fallow_core.cli.run import load_config
    from fallow_core.runtime.restore import LONGEST_SECONDS, restore

    config = load_config(path)
    logging.getLogger("fallow").addHandler(logging.NullHandler())  # the answer says in words what events would
    click.echo(f"waiting for at most {LONGEST_SECONDS:.0f} s until the sizes are in force", err=True)
    answer = restore(config, user_name(os.geteuid()))
    show(to_json(answer), as_json, lambda: render_operations.restored(answer))
    return int(not answer.done)
