"""`fallow top`: what a running Fallow knows and does, live."""

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
from fallow_core.cli.live.live import Live
from fallow_core.cli.live.snapshot import Answers, Snapshot, snapshot
from fallow_core.cli.live.state import SORTS, State
from fallow_core.model.quantities import duration_seconds

_SHORTEST_SECONDS = 0.1


def _duration(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    try:
        seconds = None if value is None else duration_seconds(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r}: {error}") from error
    if seconds is not None and seconds < _SHORTEST_SECONDS:
        raise click.BadParameter(f"{value!r}: expected at least 100ms")
    return seconds


@click.command()
@click.option(
    "--interval", metavar="DURATION", callback=_duration, default="1s", show_default=True, help="How often to look."
)
@click.option("--for", "run_for", metavar="DURATION", callback=_duration, help="End after this time, such as 10s.")
@click.option(
    "--sort", type=click.Choice(SORTS), default=SORTS[0], show_default=True, help="cost: the cheapest to end first."
)
@click.option("--filter", "wanted", default="", metavar="TEXT", help="Show only what has this text in it.")
@config_option
@socket_option
def top(interval: float, run_for: float | None, sort: str, wanted: str, path: Path, socket: Path | None) -> None:
    """Show live what a running Fallow knows and does: nodes, clusters, tasks, decisions.

    On a terminal, ? shows the keys. Elsewhere it prints plain lines, until Ctrl-C or --for ends it.
    """
    source = source_of(socket_of(path, socket))
    source()  # where none runs, that is said at once
    state = State(sort=sort, wanted=wanted)
    Live(title="fallow top", state=state, interval_seconds=interval, run_for_seconds=run_for).run(source)


def source_of(socket: Path) -> Callable[[], Snapshot]:
    """What asks the Fallow behind a control socket for a snapshot.

    The result raises `NotRunningError` where nobody serves it, `ControlError` where there is no good answer.
    """

    def read() -> Snapshot:
        status = from_json(Status, ask(socket, {"request": "status"}))
        tasks = from_json(Tasks, ask(socket, {"request": "tasks"}))
        requests = [{"request": "explain", "node": node.node} for node in status.nodes]
        explanations = tuple(from_json(Explanation, ask(socket, request)) for request in requests)
        return snapshot(Answers(status=status, explanations=explanations, tasks=tasks))

    return read
