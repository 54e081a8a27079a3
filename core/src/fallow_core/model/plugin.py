"""Values of plugins: the source, and the loaded plugin."""

from dataclasses import dataclass

from fallow_hookspecs import Plugin


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSource:
    """The package metadata of a plugin or wrapper. `target`: the value of the entry point, `module:attribute`."""

    name: str
    distribution: str
    version: str
    target: str
    kind: str = "plugin"

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} of {self.distribution} {self.version} ({self.target})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPlugin:
    """An imported plugin that is compatible with this core. `wrappers`: their names, the outermost first."""

    plugin: Plugin
    source: PluginSource
    wrappers: tuple[str, ...] = ()
