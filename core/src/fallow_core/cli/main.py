"""The command `fallow`. The module of a sub-command is imported only when it is called."""

import io
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from fallow_core.cli.printable import printable_lines
from fallow_core.cli.system_errors import explained
from fallow_core.errors import FallowError

INTERRUPTED = 130  # 128 + SIGINT, as shells have it

# name: its module here and the function, and one line for `fallow --help`, which imports nothing
COMMANDS = {
    "accept-lost-state": ("inspect:accept_lost_state", "Go on without state files that cannot be read."),
    "adopt": ("inspect:adopt", "Allow taking back what a cluster had before Fallow came."),
    "agent": ("agent:agent", "Protect this host; a controller elsewhere lends."),
    "config": ("config:config", "Check configuration files, or write new ones."),
    "demo": ("demo.command:demo", "Show on this host, in under a minute, what Fallow does."),
    "doctor": ("inspect:doctor", "Check what Fallow needs on this host and from its frameworks."),
    "explain": ("inspect:explain", "Show how each offer was calculated."),
    "forget": ("inspect:forget", "Forget a removed cluster, or nodes that nobody reports any more."),
    "plugins": ("plugins:plugins", "List, check and create plugins."),
    "restore": ("inspect:restore", "Put sizes and control groups back to what Fallow found."),
    "run": ("run:run", "Lend the idle capacity of this host."),
    "status": ("inspect:status", "Show nodes, clusters, offers, allocations and health."),
    "switch": ("inspect:switch", "Set clusters or nodes to lend, hold, drain or stop."),
    "tasks": ("tasks:tasks", "Show the tasks on this host and the cost of terminating each."),
    "top": ("top:top", "Show live what a running Fallow knows and does."),
    "watch": ("watch:watch", "Show live what this host uses and what it could lend."),
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *_brought()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            from fallow_core.cli import plugin_commands  # reads the metadata of all that is installed

            return plugin_commands.command(cmd_name)
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"fallow_core.cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])
        if brought := _brought():
            with formatter.section("Commands of plugins"):
                formatter.write_dl(list(brought.items()))


def _brought() -> dict[str, str]:
    """The commands of plugins, without those that have the name of a core command, with one line for each."""
    from fallow_core.cli import plugin_commands

    return {name: text for name, text in plugin_commands.names().items() if name not in COMMANDS}


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fallow-core", prog_name="fallow")
def fallow() -> None:
    """Lend idle capacity to batch frameworks, and take it back task by task."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. An error that a user can cause is one text on stderr and an exit code."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - the caller closed it
    try:
        result: Any = fallow.main(arguments, prog_name="fallow", standalone_mode=False)
        sys.stdout.flush()
    except FallowError as error:
        _tell(str(error))
        return error.exit_code
    except click.ClickException as error:
        error.show(_Printable())
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return 1
    except (OSError, RuntimeError) as error:
        if (text := explained(error)) is None:
            raise
        _tell(text)
        _forget_stdout()
        return 1
    return result if isinstance(result, int) else 0


class _Printable(io.StringIO):
    """A file that passes on to stderr what is written to it."""

    def write(self, text: str) -> int:
        click.echo(printable_lines(text), err=True, nl=False)
        return len(text)


def _tell(text: str) -> None:
    """Write an error, without what would do something to a terminal: it may quote a file, a peer or a task."""
    click.echo(printable_lines(text), err=True)


def _forget_stdout() -> None:
    """Drop what is buffered, so that Python does not fail once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
