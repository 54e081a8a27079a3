"""`fallow watch`: what this host uses, and what it could lend. Needs no configuration, and changes nothing."""

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial

import click

from fallow_core.cli.live.terminal import POLL_SECONDS, is_terminal, opened, stop_signals
from fallow_core.cli.time_options import SHORTEST_SECONDS, for_option, interval_option, parsed
from fallow_core.cli.watch_text import Reading, Summary, json_line, plain_line
from fallow_core.errors import SampleError
from fallow_core.ledger.capacity import batch_capacity
from fallow_core.model.policy import NodePolicy, ResourcePolicy
from fallow_core.model.quantities import percent
from fallow_core.node.host_sampler import HostSampler
from fallow_hookspecs import RESOURCE_NAMES

_FIRST_SECONDS = 0.25  # soon enough to look alive, long enough for 25 ticks of each CPU
_MOST_READINGS = 100
_DEFAULT = NodePolicy()

Keys = Callable[[float], list[str]]
"""Waits at most so many seconds, and returns the keys that were pressed."""


@click.command()
@for_option
@interval_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line; the summary goes to stderr.")
@click.option(
    "--cpu-watermark",
    metavar="PERCENT",
    callback=parsed(percent),
    default=str(_DEFAULT.cpu.watermark_percent),
    show_default=True,
    help="Highest share of the CPUs in use, lent ones included.",
)
@click.option(
    "--memory-watermark",
    metavar="PERCENT",
    callback=parsed(percent),
    default=str(_DEFAULT.memory.watermark_percent),
    show_default=True,
    help="Highest share of the memory in use, lent memory included.",
)
def watch(run_for: float | None, interval: float, as_json: bool, cpu_watermark: int, memory_watermark: int) -> None:
    """Show live what this host uses and what it could lend.

    Needs no configuration and changes nothing. Batch tasks that already run here count as use.
    """
    policy = NodePolicy(
        cpu=ResourcePolicy(watermark_percent=cpu_watermark), memory=ResourcePolicy(watermark_percent=memory_watermark)
    )
    summary = Summary()
    newest: Reading | None = None
    with stop_signals() as stopped, _output(as_json, run_for) as (show, keys):

        def wait(seconds: float) -> bool:
            """Wait; return whether to go on."""
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0 and not stopped():
                if "q" in keys(min(left, POLL_SECONDS)):
                    return False
            return not stopped()

        for newest in _readings(HostSampler(), policy, interval, run_for, wait):
            summary.add(newest)
            show(newest)
    if newest is not None and not summary.lines():
        raise SampleError("; ".join(dict.fromkeys(newest.missing.values())))
    for line in summary.lines():
        click.echo(line, err=as_json)


def _readings(
    sampler: HostSampler, policy: NodePolicy, interval: float, run_for: float | None, wait: Callable[[float], bool]
) -> Iterator[Reading]:
    """A reading soon after the start, then one each interval, and one at the end."""
    began = time.monotonic()
    sampler.sample()
    end = float("inf") if run_for is None else run_for
    due = _FIRST_SECONDS if interval >= 2 * _FIRST_SECONDS else interval
    while True:
        due = due if end - due >= SHORTEST_SECONDS else end
        if not wait(began + due - time.monotonic()):
            return
        sample = sampler.sample()
        elapsed = time.monotonic() - began
        usages = {resource: usage for resource in RESOURCE_NAMES if (usage := sample.of(resource)) is not None}
        yield Reading(
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
def _output(as_json: bool, run_for: float | None) -> Iterator[tuple[Callable[[Reading], None], Keys]]:
    """How to show a reading, and how to wait for keys."""
    if as_json or not is_terminal(sys.stdout):
        line_of = json_line if as_json else plain_line
        yield lambda reading: click.echo(line_of(reading)), _no_keys
        return
    from fallow_core.cli.watch_screen import screen  # with rich, which plain lines do without

    readings: deque[Reading] = deque(maxlen=_MOST_READINGS)
    with opened(sys.stdout) as terminal:
        view = partial(screen, readings, os.uname().nodename, run_for, terminal.ascii_only)

        def show(reading: Reading) -> None:
            readings.append(reading)
            terminal.draw(view)

        yield show, terminal.keys


def _no_keys(seconds: float) -> list[str]:
    time.sleep(seconds)
    return []
