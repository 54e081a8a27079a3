"""`fallow config check`, `init` and `schema`."""

import json
from collections.abc import Iterator
from pathlib import Path

import click

from fallow_core.config.document import Document, read
from fallow_core.config.file_schemas import cluster_schema, core_schema
from fallow_core.config.load import clusters_dir, load
from fallow_core.config.problems import Problem, error_of
from fallow_core.config.settings import CORE_FILE, Config
from fallow_core.config.template import CORE_TEMPLATE, cluster_template
from fallow_core.errors import ConfigError, PluginLoadError
from fallow_core.plugins import discovery


@click.group()
def config() -> None:
    """Check configuration files, or write new ones."""


@config.command()
@click.argument("path", type=click.Path(path_type=Path, readable=False))
def check(path: Path) -> None:
    """Check the core file PATH, or PATH/fallow.yaml, and all its cluster files.

    Shows every mistake with file, line, what was found and what is allowed. Exit code 2 if there is one.
    """
    loaded = load(path, discovery.load)
    if problems := [*loaded.problems, *_wrappers_missing(loaded)]:
        raise error_of(problems)
    names = ", ".join(cluster.name for cluster in loaded.clusters) or "none"
    click.echo(f"ok; publishing mode {loaded.publishing.mode}; clusters: {names}")


@config.command()
@click.argument("plugin")
@click.option(
    "--output",
    "-o",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path, readable=False),
    help="Write the cluster file there, and a core file if there is none. Overwrites nothing.",
)
def init(plugin: str, output: Path | None) -> None:
    """Print a commented cluster file for PLUGIN, or write it with a core file to a directory."""
    text = cluster_template(discovery.load(plugin).plugin)
    if output is None:
        click.echo(text, nl=False)
        return
    core_file = output / CORE_FILE
    document, _ = read(core_file)
    cluster_file = clusters_dir(core_file, document) / f"{plugin}.yaml"
    if cluster_file.exists():
        raise ConfigError(f"{cluster_file} exists and was not changed; write to another directory")
    if not core_file.exists():
        _write(core_file, CORE_TEMPLATE)
    _write(cluster_file, text)
    click.echo(f"next: edit {cluster_file}, then: fallow config check {output}")


@config.command()
@click.argument("plugin", required=False)
def schema(plugin: str | None) -> None:
    """Print the JSON schema of the core file, or with PLUGIN that of its cluster files.

    In the schema, values with a unit are strings; only `fallow config check` checks what is in them.
    """
    found = core_schema() if plugin is None else cluster_schema(discovery.load(plugin).plugin)
    click.echo(json.dumps(found, indent=2))


def _wrappers_missing(loaded: Config) -> Iterator[Problem]:
    """The problems of the wrappers that cluster files name."""
    for cluster in loaded.clusters:
        for index, name in enumerate(cluster.plugin.wrappers):
            try:
                discovery.load_wrapper(name)
            except PluginLoadError as error:
                document, _ = read(cluster.file)
                yield (document or Document(file=cluster.file)).problem(("wrappers", index), str(error))


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from error
    click.echo(f"wrote {file}")
