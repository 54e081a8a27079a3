"""Commands of a plugin below `fallow`, such as `fallow yarn decommission`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from fallow_hookspecs.plugin import ClusterConfig

if TYPE_CHECKING:
    from pathlib import Path  # a tenth of what this package takes to import, and no plugin's hooks need it

COMMAND_GROUP = "fallow.commands"


class CommandHost(Protocol):
    """What core provides to the commands of a plugin."""

    def cluster(self, name: str | None, config: "Path | None" = None) -> ClusterConfig:
        """One of the plugin's clusters by its name. Without a name, the only one.

        `config` is the path that `--config` of core's own commands takes; None is the default path. An unknown name or
        a wrong file ends the command with core's own message.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """The object that an entry point of the group `fallow.commands` names: the commands `fallow NAME ...` of a plugin.

    `name` is the name of the plugin and of the entry point. `build` returns a `click.Command` or a `click.Group`; core
    calls it when a command runs or its help is shown. Raise `click.ClickException` for an error of the user. A command
    may return an integer as its exit code. Commands run in a process of their own; `fallow run` need not be running.
    """

    name: str
    api_levels: tuple[int, int]
    build: Callable[[CommandHost], Any]
