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
    help="The file to which a controller writes this node's row. Default: node_grant.json in the state directory.",
)
def agent(path: Path, row_file: Path | None) -> None:
    """Protect this host until SIGTERM or Ctrl-C: throttle batch tasks, and terminate them under pressure.

    The agent sends no sizes. It terminates tasks for overdraft only while the controller's row reports an overdraft.
    """
    reading = config_subprocess.Reading(path)
    from fallow_core.runtime.agent import AgentProcess  # takes as long as reading the files

    config = reading.result()
    log.set_up(config.log_level)
    AgentProcess(config, row_file=row_file, read_again=config_subprocess.read_again).run()
