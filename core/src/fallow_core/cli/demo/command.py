"""The command `fallow demo`."""

import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

from fallow_core.cli.demo.framework import load
from fallow_core.cli.demo.host import OwnCpu
from fallow_core.cli.demo.phases import END_SECONDS
from fallow_core.cli.demo.show import Show, alone
from fallow_core.cli.demo.stage import Stage
from fallow_core.cli.demo.summary import Moment, delays, summary
from fallow_core.cli.live.view import LiveView
from fallow_core.errors import FallowError
from fallow_core.node.host_sampler import HostSampler

INTERVAL_SECONDS = 0.5
LONGEST_FOLDER = 90  # the path of a socket in it has at most 107 bytes


@click.command()
@click.option("--plugin", default="yarn", show_default=True, help="The plugin whose demo to run.")
def demo(plugin: str) -> None:
    """Show on this host, in under a minute, what Fallow does.

    It starts a small resource manager with a queue of batch tasks, a load that rises and falls like that of online
    services, and Fallow. All of it is real, uses the CPU of this host, and is removed afterwards. It needs no root.
    """
    start = load(plugin)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # like Ctrl-C: everything is ended
    with _folder() as folder, Stage(start, plugin, Path(folder)) as stage:
        moments = alone(stage, _sampled(HostSampler(cpu=OwnCpu(os.getpid()))), click.echo)
        click.echo("Fallow starts.")
        stage.begin()
        show = Show(stage, time.monotonic())
        view = LiveView(title="fallow demo", interval_seconds=INTERVAL_SECONDS, run_for_seconds=END_SECONDS)
        interrupted = view.run(show.snapshot, show.extra)
        text = summary(
            moments + show.moments,
            stage.counts(),
            delays(show.steps, stage.framework.told()),
            list(show.terminations.values()),
        )
    click.echo(f"\n{'Ended early. ' if interrupted else ''}What was seen:\n{text}")


def _folder() -> "tempfile.TemporaryDirectory[str]":
    try:
        folder = tempfile.TemporaryDirectory(prefix="fallow-demo-")
    except OSError as error:
        raise FallowError(f"no folder for temporary files: {error.strerror}; set TMPDIR to one") from error
    if len(os.fsencode(folder.name)) > LONGEST_FOLDER:
        folder.cleanup()
        raise FallowError(f"{folder.name} is too long for the path of a socket; set TMPDIR to a shorter path")
    return folder


def _sampled(sampler: HostSampler) -> Callable[[], Moment | None]:
    sampler.sample()

    def sample() -> Moment | None:
        cpu = sampler.sample().cpu
        if cpu is None:
            return None
        return Moment(capacity_milli=cpu.capacity, used_milli=cpu.used, batch_milli=0, lends=False)

    return sample
