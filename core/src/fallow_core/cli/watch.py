"""`fallow watch`: what this host uses, and what it could lend. Needs no configuration, and changes nothing."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import click

from fallow_core.cli.watch_screen import Screen
from fallow_core.cli.watch_text import Look, Summary, json_line, plain_line
from fallow_core.errors import SampleError
from fallow_core.ledger.capacity import batch_capacity
from fallow_core.model.policy import NodePolicy, ResourcePolicy
from fallow_core.model.quantities import duration_seconds, percent
from fallow_core.node.host_sampler import HostSampler
from fallow_hookspecs import RESOURCE_NAMES

_FIRST_SECONDS = 0.25  # soon enough to look alive, long enough for 25 ticks of each CPU
_SHORTEST_SECONDS = 0.1
_DEFAULT = NodePolicy()


def _parsed(parse: Callable[[str], float]) -> Callable[[click.Context, click.Parameter, str | None], float | None]:
    def callback(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(f"{value!r}: {error}") from error

    return callback


def _period_seconds(value: str) -> float:
    seconds = duration_seconds(value)
    if seconds < _SHORTEST_SECONDS:
        raise ValueError("expected at least 100ms: the kernel counts CPU time in ticks of 10 ms")
    return seconds


@click.command()
@click.option(
    "--for",
    "run_for",
    metavar="DURATION",
    callback=_parsed(_period_seconds),
    help="End after this time, such as 20s or 5m; else Ctrl-C ends it.",
)
@click.option(
    "--interval",
    metavar="DURATION",
    callback=_parsed(_period_seconds),
    default="1s",
    show_default=True,
    help="Time between two readings.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line; the summary goes to standard error.")
@click.option(
    "--cpu-watermark",
    metavar="PERCENT",
    callback=_parsed(percent),
    default=str(_DEFAULT.cpu.watermark_percent),
    show_default=True,
    help="Share of the CPUs that may be in use together with what is lent.",
)
@click.option(
    "--memory-watermark",
    metavar="PERCENT",
    callback=_parsed(percent),
    default=str(_DEFAULT.memory.watermark_percent),
    show_default=True,
    help="Share of the memory that may be in use together with what is lent.",
)
def watch(run_for: float | None, interval: float, as_json: bool, cpu_watermark: int, memory_watermark: int) -> None:
    """Show live what this host uses and what it could lend.

    Needs no configuration and changes nothing. Batch work that runs here already counts as use.
    """
    policy = NodePolicy(
        cpu=ResourcePolicy(watermark_percent=cpu_watermark), memory=ResourcePolicy(watermark_percent=memory_watermark)
    )
    summary = Summary()
    newest: Look | None = None
    try:
        with _sigterm_as_ctrl_c(), _output(as_json, run_for) as show:
            for newest in _looks(HostSampler(), policy, interval, run_for):
                summary.add(newest)  # first, so that what was shown is in it whenever Ctrl-C comes
                show(newest)
    except KeyboardInterrupt:
        pass  # the way to end it
    if newest is not None and not summary.lines():
        raise SampleError("; ".join(dict.fromkeys(newest.missing.values())))
    for line in summary.lines():
        click.echo(line, err=as_json)


def _looks(sampler: HostSampler, policy: NodePolicy, interval: float, run_for: float | None) -> Iterator[Look]:
    """A look soon after the start, then one each interval, and one at the end."""
    began = time.monotonic()
    sampler.sample()
    end = float("inf") if run_for is None else run_for
    due = _FIRST_SECONDS if interval >= 2 * _FIRST_SECONDS else interval
    while True:
        due = due if end - due >= _SHORTEST_SECONDS else end
        time.sleep(max(0.0, began + due - time.monotonic()))
        sample = sampler.sample()
        elapsed = time.monotonic() - began
        usages = {resource: usage for resource in RESOURCE_NAMES if (usage := sample.of(resource)) is not None}
        yield Look(
            time=datetime.now(UTC).astimezone(),
            elapsed_seconds=elapsed,
            resources={resource: batch_capacity(usage, policy.of(resource)) for resource, usage in usages.items()},
            missing=dict(sampler.missing),
        )
        if due >= end:
            return
        # A process that was stopped for a while goes on with the next full interval, and does not catch up.
        due = (max(due, elapsed) // interval + 1) * interval


@contextmanager
def _output(as_json: bool, run_for: float | None) -> Iterator[Callable[[Look], None]]:
    if as_json or not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        line_of = json_line if as_json else plain_line
        yield lambda look: click.echo(line_of(look))
        return
    screen = Screen(sys.stdout, os.uname().nodename, run_for)
    try:
        yield screen.draw
    finally:
        screen.close()


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
