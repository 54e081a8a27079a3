"""`fallow run`."""

from pathlib import Path

import click

from fallow_core import log
from fallow_core.cli.config_option import config_option
from fallow_core.config.load import load
from fallow_core.config.settings import Config
from fallow_core.plugins import discovery


def load_config(path: Path) -> Config:
    """The configuration, with the plugins that its cluster files name."""
    return load(path, discovery.load)


@click.command()
@config_option
@click.option(
    "--ledger-row",
    "row_file",
    type=click.Path(path_type=Path),
    help="Write this node's row of the ledger to this file, for a fallow agent that protects this host instead.",
)
def run(path: Path, row_file: Path | None) -> None:
    """Lend the idle capacity of this host until SIGTERM or Ctrl-C.

    In publishing mode observe, the default, Fallow sends nothing; `fallow status` shows what it would send.
    """
    from fallow_core.runtime.standalone import Standalone

    config = load_config(path)
    log.set_up(config.log_level)
    Standalone(config, row_file=row_file).run()
