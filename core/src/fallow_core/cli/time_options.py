"""The options `--interval` and `--for` of the commands that show something live."""

from collections.abc import Callable

import click

from fallow_core.model.quantities import duration_seconds

SHORTEST_SECONDS = 0.1  # the kernel counts CPU time in ticks of 10 ms


def parsed(parse: Callable[[str], float]) -> Callable[[click.Context, click.Parameter, str | None], float | None]:
    """The callback of an option whose text is parsed, where a ValueError says what is wrong with it."""

    def callback(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(f"{value!r}: {error}") from error

    return callback


def _period_seconds(value: str) -> float:
    seconds = duration_seconds(value)
    if seconds < SHORTEST_SECONDS:
        raise ValueError("expected at least 100ms")
    return seconds


interval_option = click.option(
    "--interval",
    metavar="DURATION",
    callback=parsed(_period_seconds),
    default="1s",
    show_default=True,
    help="Time between two updates.",
)
for_option = click.option(
    "--for",
    "run_for",
    metavar="DURATION",
    callback=parsed(_period_seconds),
    help="End after this time, such as 20s or 5m. Default: until Ctrl-C.",
)
