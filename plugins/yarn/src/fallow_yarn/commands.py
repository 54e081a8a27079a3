"""The entry point of the plugin's commands. Loading it is cheap: they are imported when one is called."""

from typing import Any

from fallow_hookspecs import API_LEVEL, CommandHost, Commands


def _build(host: CommandHost) -> Any:
    from fallow_yarn.lifecycle.command import commands

    return commands(host)


COMMANDS = Commands(name="yarn", api_levels=(API_LEVEL, API_LEVEL), build=_build)
