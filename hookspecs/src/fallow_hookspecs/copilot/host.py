"""Builds an instance of an installed plugin from a cluster file."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import yaml

from fallow_hookspecs import ENTRY_POINT_GROUP, ClusterConfig, Instance, Plugin, Role
from fallow_hookspecs.copilot import CopilotError
from fallow_hookspecs.fitting import Hooks, UnfitError, hooks_of, level_misfit


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosted:
    """An instance, and the plugin that it belongs to."""

    plugin: Plugin
    distribution: str
    version: str
    instance: Instance
    hooks: Hooks

    def __str__(self) -> str:
        return f"plugin {self.plugin.name!r} of {self.distribution} {self.version}"


def open_instance(name: str, file: Path) -> Hosted:
    """Build the instance that a cluster file describes.

    :raises CopilotError: the plugin is not installed or does not fit, the file is wrong, or `build` fails.
    """
    entry = _entry(name)
    try:
        plugin = entry.load()
    except (Exception, SystemExit) as error:
        raise CopilotError(f"plugin {name!r} ({entry.value}) cannot be imported: {_words(error)}") from error
    if misfit := _misfit(plugin, name):
        raise CopilotError(f"plugin {name!r} ({entry.value}) cannot be used: {misfit}")
    config = _cluster(plugin, file)
    try:
        instance = plugin.build(config)
    except (Exception, SystemExit) as error:
        raise CopilotError(f"plugin {name!r} failed to build cluster {config.name!r}: {_words(error)}") from error
    distribution = entry.dist
    return host(
        plugin,
        instance,
        distribution=distribution.name if distribution else "",
        version=distribution.version if distribution else "",
    )


def host(plugin: Plugin, instance: Instance, *, distribution: str = "", version: str = "") -> Hosted:
    """Find the hooks of an instance.

    :raises CopilotError: it is no instance, or its hooks do not fit.
    """
    try:
        hooks = hooks_of(instance)
    except UnfitError as error:
        raise CopilotError(f"the instance of plugin {plugin.name!r} does not fit: {error}") from error
    return Hosted(plugin=plugin, distribution=distribution, version=version, instance=instance, hooks=hooks)


def _entry(name: str) -> metadata.EntryPoint:
    entries = {each.value: each for each in metadata.entry_points(group=ENTRY_POINT_GROUP, name=name)}
    if not entries:
        known = sorted({each.name for each in metadata.entry_points(group=ENTRY_POINT_GROUP)})
        raise CopilotError(f"plugin {name!r} is not installed; installed are {', '.join(known) or 'none'}")
    if len(entries) > 1:
        raise CopilotError(f"plugin {name!r} is claimed by {' and by '.join(entries)}; uninstall all but one")
    return next(iter(entries.values()))


def _misfit(plugin: object, name: str) -> str:
    if not isinstance(plugin, Plugin):
        return f"its entry point names a {type(plugin).__name__}, not a fallow_hookspecs.Plugin"
    if plugin.name != name:
        return f"it calls itself {plugin.name!r}"
    misfit = level_misfit(plugin.api_levels)
    return f"it {misfit}" if misfit else ""


def _cluster(plugin: Plugin, file: Path) -> ClusterConfig:
    """The name, roles and spec of a cluster file. Other keys are for core and are ignored."""
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CopilotError(f"{file} cannot be read: {error}") from error
    if not isinstance(data, Mapping) or data.get("kind") != "Cluster":
        raise CopilotError(f"{file} is no cluster file: it has no kind: Cluster")
    if data.get("plugin") != plugin.name:
        raise CopilotError(f"{file} is for plugin {data.get('plugin')!r}, not for {plugin.name!r}")
    named = data.get("metadata")
    name = named.get("name") if isinstance(named, Mapping) else None
    if not isinstance(name, str):
        raise CopilotError(f"{file} has no metadata.name")
    try:
        roles = frozenset(Role(role) for role in data.get("roles") or Role)
    except (TypeError, ValueError) as error:
        raise CopilotError(f"{file}: roles: {error}; expected a list of {', '.join(Role)}") from error
    try:
        spec = plugin.model_for(roles).model_validate(data.get("spec") or {})
    except Exception as error:
        raise CopilotError(f"{file}: spec is wrong:\n{_mistakes(error)}") from error
    return ClusterConfig(name=name, roles=roles, spec=spec)


def _mistakes(error: Exception) -> str:
    """One line for each mistake, if the model reports them like pydantic."""
    try:
        found = [(".".join(str(step) for step in each["loc"]), each["msg"]) for each in error.errors()]  # type: ignore[attr-defined]
    except Exception:
        return f"  {_words(error)}"
    return "\n".join(f"  spec.{where}: {text}" for where, text in found)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
