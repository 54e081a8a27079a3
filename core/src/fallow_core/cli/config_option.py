"""The option `--config`. This module imports nothing that reads a file."""

from pathlib import Path

import click

DEFAULT_CONFIG = Path("/etc/fallow")

config_option = click.option(
    "--config",
    "-c",
    "path",
    type=click.Path(path_type=Path, readable=False),  # access(2) knows nothing of ambient capabilities; open(2) does
    default=DEFAULT_CONFIG,
    show_default=True,
    help="The core file, or its directory, where it is fallow.yaml.",
)
