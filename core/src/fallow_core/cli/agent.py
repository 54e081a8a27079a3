"""`fallow agent`."""

from pathlib import Path

import click

from fallow_core import log
from fallow_core.cli.config_option import config_option
from fallow_core.runtime import config_subprocess


@click.command()
@config_option
@click.option(
    "--ledger-row",
    "row_file",
    type=click.Path(path_type=Path, readable=False),
    help="Where a controller writes this node's row; by default node_grant.json in the state directory.",
)
def agent(path: Path, row_file: Path | None) -> None:
    """Protect this host, until SIGTERM or Ctrl-C: slow batch down, and terminate tasks under pressure.

    No size is sent. Tasks are terminated for overdraft only while a controller's row says that something is over.
    """
    reading = config_subprocess.Reading(path)
    from fallow_core.runtime.agent import AgentProcess  # takes as long as reading the files

    config = reading.result()
    log.set_up(config.log_level)
    AgentProcess(config, row_file=row_file, read_again=config_subprocess.read_again).run()
