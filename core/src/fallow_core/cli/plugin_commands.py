"""The commands that plugins bring: `fallow NAME ...`, named by entry points of the group `fallow.commands`.

Which there are is read from package metadata; a plugin's command is imported when it is called. Core's own names go
first, so that no plugin changes what a core command does.
"""

from dataclasses import dataclass
from pathlib import Path

import click

from fallow_core.errors import ConfigError, PluginLoadError
from fallow_core.plugins import discovery
from fallow_hookspecs import ClusterConfig


@dataclass(frozen=True, slots=True)
class Host:
    """What the commands of the plugin of this name are given."""

    plugin: str

    def cluster(self, name: str | None, config: Path | None = None) -> ClusterConfig:
        """One of the plugin's clusters by its name, with or without `PLUGIN/`; without a name the only one.

        :raises ConfigError: there is no such cluster, several and no name, or its file is wrong.
        """
        from fallow_core.cli.run import DEFAULT_CONFIG, load_config  # with pydantic, which a help text does without
        from fallow_core.config.problems import error_of

        path = config or DEFAULT_CONFIG
        loaded = load_config(path)
        own = {each.config.name: each.config for each in loaded.clusters if each.plugin.source.name == self.plugin}
        if name is None and len(own) == 1:
            return next(iter(own.values()))
        wanted = "" if name is None else name.removeprefix(f"{self.plugin}/")
        if wanted in own:
            return own[wanted]
        if loaded.problems and (name is None or f"{self.plugin}/{wanted}" in loaded.named or not own):
            raise error_of(loaded.problems)
        known = ", ".join(sorted(own)) or "none"
        if name is None and own:
            raise ConfigError(f"{path} has several clusters of plugin {self.plugin!r}: say --cluster, one of {known}")
        raise ConfigError(f"{path} has no cluster {wanted or 'at all'!r} of plugin {self.plugin!r}; there are: {known}")


def names() -> dict[str, str]:
    """What plugins bring: a name, and one line for `fallow --help`. Nothing is imported."""
    found = discovery.installed(discovery.COMMANDS)
    return {source.name: f"Commands of the plugin {source.name} ({source.distribution})." for source in found}


def command(name: str) -> click.Command | None:
    """The command of this name; None if no plugin brings it.

    :raises PluginLoadError: it cannot be imported or built, is claimed twice, or is no command.
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
