"""`fallow plugins new`: a new distribution that builds, type-checks and passes the conformance suite.

It is the example `local_queue` under another name; `plugin_template` is a link to it in the sources, a copy in a wheel.
"""

import keyword
import re
from collections.abc import Iterator
from pathlib import Path

import click

from fallow_core.errors import FallowError

TEMPLATE = Path(__file__).with_name("plugin_template")
TEMPLATE_NAME = "local_queue"
NOT_COPIED = {"__pycache__", "build", "dist"}
LONGEST_NAME = 40


@click.command("new")
@click.argument("name")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write it. Default: ./fallow-NAME.",
)
def new(name: str, output: Path | None) -> None:
    """Write a working distribution with a plugin NAME, to start from."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name) or len(name) > LONGEST_NAME:
        expected = f"at most {LONGEST_NAME} lower-case letters, digits and single '_' between them, such as my_manager"
        raise click.BadParameter(f"{name!r} is no name for a plugin; expected {expected}", param_hint="NAME")
    folder = Path(f"fallow-{name.replace('_', '-')}") if output is None else output
    if folder.exists() and any(folder.iterdir()):
        raise click.BadParameter(f"{folder} is not empty; name another directory with -o", param_hint="-o")
    for file in _files(TEMPLATE):
        target = folder / renamed(str(file.relative_to(TEMPLATE)), name)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(renamed(file.read_text(encoding="utf-8"), name), encoding="utf-8")
        except OSError as error:
            raise FallowError(f"{target} cannot be written: {error.strerror}") from error
    click.echo(f"wrote {folder}; read its README.md, then:\n    pip install -e '{folder}[testing]'")
    click.echo(f"    fallow plugins check {name}")


def renamed(text: str, name: str) -> str:
    """The text of the template with this name in place of its own, in each way of writing it."""
    words = name.split("_")
    text = text.replace("LocalQueue", "".join(word.capitalize() for word in words))
    return text.replace(TEMPLATE_NAME, name).replace(TEMPLATE_NAME.replace("_", "-"), "-".join(words))


def _files(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name in NOT_COPIED or entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _files(entry)
        else:
            yield entry
