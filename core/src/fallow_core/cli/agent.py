"""`fallow agent`."""

from pathlib import Path

import click

from fallow_core import log
from fallow_core.cli.config_option import config_option
from fallow_core.plugins import discovery
from fallow_core.standalone.agent_process import AgentProcess
from fallow_core.standalone.last_policy import load_or_last


@click.command()
@config_option
@click.option(
    "--ledger-row",
    "row_file",
    type=click.Path(path_type=Path, readable=False),
    help="Where a controller writes this node's row; by default ledger_row.json in the state directory.",
)
def agent(path: Path, row_file: Path | None) -> None:
    """Protect this host, until SIGTERM or Ctrl-C: slow batch down, and end tasks under pressure.

    No size is sent. Tasks are ended for overdraft only while a controller's row says that something is over.
    """
    config = load_or_last(path, discovery.load)
    log.set_up(config.log_level)
    AgentProcess(config, row_file=row_file).run()
