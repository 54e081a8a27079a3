"""`fallow top`: the live view of a running Fallow."""

from collections.abc import Callable
from pathlib import Path

import click

from fallow_core.api.control_socket import ask
from fallow_core.api.encoding import from_json
from fallow_core.api.explain import Explanation
from fallow_core.api.status import Status
from fallow_core.api.tasks import Tasks
from fallow_core.cli.config_option import config_option
from fallow_core.cli.inspect import socket_of, socket_option
from fallow_core.cli.live.snapshot import Answers, Snapshot, snapshot
from fallow_core.cli.live.view import LiveView
from fallow_core.cli.live.view_state import SORTS, ViewState
from fallow_core.cli.time_options import for_option, interval_option


@click.command()
@interval_option
@for_option
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default=SORTS[0],
    show_default=True,
    help="cost: cheapest to terminate first.",
)
@click.option("--filter", "wanted", default="", metavar="TEXT", help="Show only lines with this text.")
@config_option
@socket_option
def top(interval: float, run_for: float | None, sort: str, wanted: str, path: Path, socket: Path | None) -> None:
    """Show live what a running Fallow knows and does: nodes, clusters, tasks, decisions.

    On a terminal, ? shows the keys. Elsewhere it prints a line for each change.
    """
    source = source_of(socket_of(path, socket))
    source()  # fails at once if no Fallow runs
    state = ViewState(sort=sort, wanted=wanted)
    LiveView(title="fallow top", state=state, interval_seconds=interval, run_for_seconds=run_for).run(source)


def source_of(socket: Path) -> Callable[[], Snapshot]:
    """A function that asks the Fallow behind a control socket for a snapshot.

    It raises `NotRunningError` if nobody serves the socket, `ControlError` if the answer is unusable.
    """

    def read() -> Snapshot:
        status = from_json(Status, ask(socket, {"request": "status"}))
        tasks = from_json(Tasks, ask(socket, {"request": "tasks"}))
        requests = [{"request": "explain", "node": node.node} for node in status.nodes]
        explanations = tuple(from_json(Explanation, ask(socket, request)) for request in requests)
        return snapshot(Answers(status=status, explanations=explanations, tasks=tasks))

    return read
