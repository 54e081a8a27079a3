"""Where a plugin comes from, and the plugin itself once it is imported."""

from dataclasses import dataclass

from fallow_hookspecs import Plugin


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSource:
    """What package metadata says of a plugin or wrapper. `target` is the entry point's value, `module:attribute`."""

    name: str
    distribution: str
    version: str
    target: str
    kind: str = "plugin"

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} of {self.distribution} {self.version} ({self.target})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPlugin:
    """A plugin that was imported and fits this core. `wrappers`: the names of those around it, the outermost first."""

    plugin: Plugin
    source: PluginSource
    wrappers: tuple[str, ...] = ()
