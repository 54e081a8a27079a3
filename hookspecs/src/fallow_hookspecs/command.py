"""Commands of a plugin below `fallow`, such as `fallow yarn decommission`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from fallow_hookspecs.plugin import ClusterConfig

if TYPE_CHECKING:
    from pathlib import Path  # a tenth of what this package takes to import, and no plugin's hooks need it

COMMAND_GROUP = "fallow.commands"


class CommandHost(Protocol):
    """What core gives to the commands of a plugin."""

    def cluster(self, name: str | None, config: "Path | None" = None) -> ClusterConfig:
        """One of the plugin's clusters by its name; without a name the only one.

        `config` is what `--config` of core's own commands names: None is the usual place. A name that is not there, or
        a file that is wrong, ends the command with core's own message.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What an entry point of the group `fallow.commands` names: the commands `fallow NAME ...` of a plugin.

    `name` is the plugin's name and the entry point's. `build` returns a `click.Command`, or a `click.Group` of several;
    it is called when one of them is, or its help is shown. An error for the user is a `click.ClickException`; a whole
    number that a command returns is its exit code. Commands run in a process of their own, beside a `fallow run` or
    without one.
    """

    name: str
    api_levels: tuple[int, int]
    build: Callable[[CommandHost], Any]
