"""`fallow plugins`."""

import json
from collections import Counter

import click

from fallow_core.cli.plugins_check import check
from fallow_core.cli.plugins_info import info
from fallow_core.cli.plugins_new import new
from fallow_core.cli.table import table
from fallow_core.errors import PluginLoadError
from fallow_core.model.plugin import PluginSource
from fallow_core.plugins import discovery


@click.group()
def plugins() -> None:
    """List, check and create plugins."""


plugins.add_command(check)
plugins.add_command(info)
plugins.add_command(new)


@plugins.command("list")
@click.option("--load", is_flag=True, help="Import each plugin, and show why an import failed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_plugins(load: bool, as_json: bool) -> None:
    """List the installed plugins with their distribution and version. Imports them only with --load."""
    sources = discovery.installed()
    claims = Counter(source.name for source in sources)
    rows = [_row(source, load, claims[source.name] > 1) for source in sources]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    elif not rows:
        click.echo("no plugin is installed in this Python environment")
    else:
        head = ["NAME", "DISTRIBUTION", "VERSION", "TARGET", "STATE"]
        click.echo("\n".join(table([head, *(_cells(row) for row in rows)])))


def _cells(row: dict[str, str]) -> list[str]:
    state = f"{row['state']}: {row['reason']}" if row["reason"] else row["state"]
    return [row["name"], row["distribution"], row["version"], row["target"], state]


def _row(source: PluginSource, load: bool, clash: bool) -> dict[str, str]:
    """`state`: installed, loaded or failed; `reason`: why it failed."""
    state, reason = "installed", ""
    if load or clash:
        try:
            discovery.load(source.name)
            state = "loaded"
        except PluginLoadError as error:
            state, reason = "failed", str(error)
    return {
        "name": source.name,
        "distribution": source.distribution,
        "version": source.version,
        "target": source.target,
        "state": state,
        "reason": reason,
    }
