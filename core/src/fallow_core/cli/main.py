"""The command `fallow`. A sub-command's module is imported when it is called, and not before."""

import os
import sys
from importlib import import_module
from typing import Any

import click

from fallow_core.errors import FallowError

INTERRUPTED = 130  # 128 + SIGINT, as shells have it

# name: where it is, and one line for `fallow --help`, which imports nothing
COMMANDS = {
    "adopt": ("fallow_core.cli.inspect:adopt", "Let what was there at first be taken back."),
    "agent": ("fallow_core.cli.agent:agent", "Protect this host; a controller elsewhere lends."),
    "config": ("fallow_core.cli.config:config", "Check configuration files, or write them to start from."),
    "demo": ("fallow_core.cli.demo.command:demo", "Show on this host, in under a minute, what Fallow does."),
    "doctor": ("fallow_core.cli.inspect:doctor", "Check what Fallow needs on this host and of its frameworks."),
    "explain": ("fallow_core.cli.inspect:explain", "Show the inputs and the arithmetic of each offer."),
    "plugins": ("fallow_core.cli.plugins:plugins", "List, check and begin plugins."),
    "restore": ("fallow_core.cli.inspect:restore", "Put sizes and control groups back as they were found."),
    "run": ("fallow_core.cli.run:run", "Lend what this host leaves idle."),
    "status": ("fallow_core.cli.inspect:status", "Show accounts, offers, allocations and health."),
    "switch": (
        "fallow_core.cli.inspect:switch",
        "Let a cluster, pool, node, framework or all lend, hold, drain or stop.",
    ),
    "tasks": ("fallow_core.cli.tasks:tasks", "Show the tasks on this host and what their end would cost."),
    "top": ("fallow_core.cli.top:top", "Show live what a running Fallow knows and does."),
    "watch": ("fallow_core.cli.watch:watch", "Show live what this host uses and what it could lend."),
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *_brought()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            from fallow_core.cli import plugin_commands  # reads the metadata of all that is installed

            return plugin_commands.command(cmd_name)
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])
        if brought := _brought():
            with formatter.section("Commands of plugins"):
                formatter.write_dl(list(brought.items()))


def _brought() -> dict[str, str]:
    """The commands of plugins whose names are none of core's, with one line for each."""
    from fallow_core.cli import plugin_commands

    return {name: text for name, text in plugin_commands.names().items() if name not in COMMANDS}


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fallow-core", prog_name="fallow")
def fallow() -> None:
    """Lend idle capacity to batch frameworks, and take it back task by task."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Whatever a user may see as an error is one text on stderr and an exit code."""
    try:
        result: Any = fallow.main(arguments, prog_name="fallow", standalone_mode=False)
        sys.stdout.flush()
    except FallowError as error:
        click.echo(str(error), err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return 1
    return result if isinstance(result, int) else 0


def _forget_stdout() -> None:
    """Nobody reads any more; without this Python would complain once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
