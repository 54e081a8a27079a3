"""The commands of plugins: `fallow NAME ...`, named by entry points of the group `fallow.commands`.

The list comes from package metadata; a plugin's command is imported when it is called. A core command has precedence,
so that no plugin can replace it.
"""

from dataclasses import dataclass
from pathlib import Path

import click

from fallow_core.cli.config_option import DEFAULT_CONFIG
from fallow_core.errors import PluginLoadError
from fallow_core.plugins import discovery
from fallow_hookspecs import ClusterConfig


@dataclass(frozen=True, slots=True)
class Host:
    """What core passes to the commands of a plugin."""

    plugin: str

    def cluster(self, name: str | None, config: Path | None = None) -> ClusterConfig:
        """One of the plugin's clusters; see `chosen_cluster`."""
        from fallow_core.cli.plugins_info import chosen_cluster  # with YAML, which a help text does without

        return chosen_cluster(config or DEFAULT_CONFIG, self.plugin, name).config


def names() -> dict[str, str]:
    """The name of each command, and one line for `fallow --help`. Imports no plugin."""
    found = discovery.installed(discovery.COMMANDS)
    return {source.name: f"Run commands of the plugin {source.name} ({source.distribution})." for source in found}


def command(name: str) -> click.Command | None:
    """The command of this name; `None` if no plugin has it.

    :raises PluginLoadError: it cannot be imported or built, two plugins have it, or it is no command.
    """
    if name not in names():
        return None
    commands, source = discovery.load_commands(name)
    try:
        built: object = commands.build(Host(name))
    except Exception as error:
        raise PluginLoadError(f"{source} cannot be used: {type(error).__name__}: {error}") from error
    if not isinstance(built, click.Command):
        raise PluginLoadError(f"{source} cannot be used: it builds a {type(built).__name__}, not a click.Command")
    return built
