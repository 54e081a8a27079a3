"""The command `fallow-copilot`."""

import argparse
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fallow_hookspecs.copilot import CopilotError

GRACE_SECONDS: Final = 3.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. The exit code is 1 if the copilot cannot serve."""
    parser = argparse.ArgumentParser(prog="fallow-copilot", description="A Fallow plugin in a process of its own.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve an installed plugin at a Unix socket, until SIGTERM")
    serve.add_argument("plugin", metavar="PLUGIN", help="the plugin's name, as in a cluster file")
    serve.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        required=True,
        help="a cluster file of this plugin; its name, roles and spec count here",
    )
    serve.add_argument(
        "--socket",
        metavar="PATH",
        type=Path,
        required=True,
        help="the socket, in a directory of its own, which is created with mode 0700 if it is missing",
    )
    given = parser.parse_args(arguments)
    try:
        _serve(given.plugin, given.config, given.socket.absolute())
    except CopilotError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command speaks to its user
        return 1
    return 0


def _serve(plugin: str, config: Path, path: Path) -> None:
    try:
        from fallow_hookspecs.copilot.host import open_instance
        from fallow_hookspecs.copilot.server import Service
    except ModuleNotFoundError as error:
        raise CopilotError(f"{error.name} is missing: pip install 'fallow-hookspecs[copilot]'") from error
    from fallow_hookspecs.copilot.socket_file import SOCKET_UMASK, prepare

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    prepare(path)
    hosted = open_instance(plugin, config)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    service = Service(hosted)
    before = os.umask(SOCKET_UMASK)
    try:
        service.serve(f"unix:{path}")
    except RuntimeError as error:
        raise CopilotError(f"cannot serve at {path}: {error}") from error
    finally:
        os.umask(before)
    gc.freeze()  # collections need not examine what exists by now and stays
    print(f"serving {hosted} at {path}", flush=True)  # noqa: T201 - a command speaks to its user
    ended.wait()
    service.stop(GRACE_SECONDS)
