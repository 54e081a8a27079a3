"""`fallow plugins info`: the settings of a plugin for a cluster, and where each comes from."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fallow_core.cli import plugin_commands
from fallow_core.cli.config_option import config_option
from fallow_core.cli.printable import printable
from fallow_core.cli.table import table
from fallow_core.config.document import Document, read
from fallow_core.config.problems import error_of
from fallow_core.errors import ConfigError, PluginLoadError
from fallow_core.plugins import discovery
from fallow_hookspecs import Setting

if TYPE_CHECKING:
    from fallow_core.config.settings import ClusterSettings


@click.command("info")
@click.argument("name")
@click.option("--cluster", metavar="CLUSTER", help="The cluster; required if the plugin has several.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(name: str, cluster: str | None, path: Path, as_json: bool) -> None:
    """Show every setting of the plugin NAME for a cluster: its value, and the file and key it comes from.

    This does not connect to the framework; `fallow doctor` does.
    """
    discovery.load(name)  # a mistyped name is said before a mistake in the configuration
    chosen = chosen_cluster(path, name, cluster)
    settings = _settings(chosen)
    document, _ = read(chosen.file)
    rows = [{"name": s.name, "value": s.value, "source": _placed(s.source, document)} for s in settings]
    if as_json:
        answer = {
            "cluster": chosen.name,
            "file": str(chosen.file),
            "plugin": str(chosen.plugin.source),
            "settings": rows,
        }
        click.echo(json.dumps(answer, indent=2))
        return
    lines = [f"cluster {chosen.name} of {chosen.file}", str(chosen.plugin.source)]
    lines += [f"its commands: fallow {name} --help"] if name in plugin_commands.names() else []
    lines += [""]
    lines += table([["SETTING", "VALUE", "FROM"], *([r["name"], r["value"], r["source"]] for r in rows)])
    click.echo("\n".join(printable(line) for line in lines))


def chosen_cluster(path: Path, plugin: str, cluster: str | None) -> "ClusterSettings":
    """The cluster of this name, with or without `PLUGIN/`; without a name, the only cluster of the plugin.

    :raises ConfigError: there is no such cluster, there are several and no name was given, or its file is wrong.
    """
    from fallow_core.config.load import load  # with pydantic, which `fallow plugins list` does without

    config = load(path, discovery.load)
    own = {each.config.name: each for each in config.correct_clusters if each.plugin.source.name == plugin}
    known = ", ".join(sorted(own)) or "none"
    if cluster is None and len(own) == 1:
        return next(iter(own.values()))
    if cluster is None and own:
        raise ConfigError(f"plugin {plugin!r} has several clusters, say which with --cluster: {known}")
    wanted = "" if cluster is None else cluster.removeprefix(f"{plugin}/")
    if wanted in own:
        return own[wanted]
    if f"{plugin}/{wanted}" in config.named or (not own and config.problems):
        raise error_of(config.problems)
    raise ConfigError(f"{config.clusters_dir} has no cluster {wanted!r} of plugin {plugin!r}; it has: {known}")


def _settings(cluster: "ClusterSettings") -> list[Setting]:
    """The settings that the plugin reports. Whatever its code raises becomes one message."""
    tell = cluster.plugin.plugin.settings
    if tell is None:
        raise PluginLoadError(f"{cluster.plugin.source} does not report its settings; see {cluster.file}")
    try:
        told: Iterable[Any] = list(tell(cluster.config))
    except Exception as error:
        raise ConfigError(f"{cluster.name} of {cluster.file}: {error}") from error
    wrong = next((each for each in told if not isinstance(each, Setting)), None)
    if wrong is not None:
        raise PluginLoadError(f"{cluster.plugin.source} reports {wrong!r} as a setting, expected a Setting")
    return list(told)


def _placed(source: str, document: Document | None) -> str:
    """A source; for a key of the cluster file, with its line."""
    key, _, more = source.partition(",")
    parts = tuple(key.split("."))
    if parts[0] != "spec" or document is None or parts not in document.lines:
        return source
    return f"{key} in {document.file}:{document.lines[parts]}{',' if more else ''}{more}"
