"""Finds installed plugins, wrappers and commands by package metadata alone, and imports one of them."""

import logging
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from fallow_core.errors import PluginLoadError
from fallow_core.model.plugin import LoadedPlugin, PluginSource
from fallow_hookspecs import COMMAND_GROUP, ENTRY_POINT_GROUP, WRAPPER_GROUP, Commands, Plugin, Wrapper
from fallow_hookspecs.fitting import level_misfit

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kind:
    """What the entry points of a group name: the word for it, and its class."""

    word: str
    group: str
    expected: type[Plugin | Wrapper | Commands]


PLUGIN = Kind("plugin", ENTRY_POINT_GROUP, Plugin)
WRAPPER = Kind("wrapper", WRAPPER_GROUP, Wrapper)
COMMANDS = Kind("command", COMMAND_GROUP, Commands)


def installed(kind: Kind = PLUGIN) -> tuple[PluginSource, ...]:
    """All installed plugins, ordered by name. Nothing is imported.

    A name that two distributions claim is listed twice; `load` refuses it.
    """
    return tuple(sorted(_sources(kind), key=lambda source: (source.name, source.distribution)))


def load(name: str) -> LoadedPlugin:
    """Import the plugin with this name.

    :raises PluginLoadError: it is not installed, is claimed twice, cannot be imported, or does not fit this core.
    """
    plugin, source = _load(PLUGIN, name)
    return LoadedPlugin(plugin=plugin, source=source)


def load_wrapper(name: str) -> tuple[Wrapper, PluginSource]:
    """Import the wrapper with this name; errors as for `load`."""
    wrapper, source = _load(WRAPPER, name)
    return wrapper, source


def load_commands(name: str) -> tuple[Commands, PluginSource]:
    """Import the commands with this name; errors as for `load`."""
    commands, source = _load(COMMANDS, name)
    return commands, source


def _load(kind: Kind, name: str) -> tuple[Any, PluginSource]:
    known = installed(kind)
    sources = [source for source in known if source.name == name]
    if not sources:
        raise PluginLoadError(f"{kind.word} {name!r} is not installed; {_advice(kind, name, known)}")
    if len(sources) > 1:
        claims = " and ".join(f"{source.distribution} {source.version} ({source.target})" for source in sources)
        raise PluginLoadError(f"{kind.word} {name!r} is claimed by {claims}; uninstall all but one")
    source = sources[0]
    try:
        found = metadata.EntryPoint(name=name, value=source.target, group=kind.group).load()
    except (Exception, SystemExit) as error:
        _log.debug("import of %s failed", source, exc_info=error)
        raise PluginLoadError(f"{source} cannot be imported: {_reason(error)}") from error
    if reason := _misfit(kind, found, name):
        raise PluginLoadError(f"{source} cannot be used: {reason}")
    return found, source


def _sources(kind: Kind) -> Iterator[PluginSource]:
    """Read each distribution separately, so that damaged metadata hides only its own distribution."""
    seen: set[str] = set()
    for distribution in metadata.distributions():
        try:
            entries = distribution.entry_points.select(group=kind.group)
            if not entries:
                continue
            title, version = distribution.metadata["Name"], distribution.version
        except Exception as error:
            _log.warning("metadata of %s cannot be read: %s", getattr(distribution, "_path", "a distribution"), error)
            continue
        if _normalized(title) in seen:  # the same distribution further down the path is shadowed, as it is for `import`
            continue
        seen.add(_normalized(title))
        for entry in entries:
            yield PluginSource(name=entry.name, distribution=title, version=version, target=entry.value, kind=kind.word)


def _normalized(name: str) -> str:
    """The name of a distribution in the form in which names are compared (PEP 503): installers spell it differently."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _advice(kind: Kind, name: str, known: tuple[PluginSource, ...]) -> str:
    names = sorted({source.name for source in known})
    if not names:
        return f"no {kind.word} is installed in this Python environment"
    import difflib  # needed only for this error

    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"installed are {', '.join(names)}"


def _misfit(kind: Kind, found: object, name: str) -> str:
    """Why what the entry point names cannot be used; empty if it can."""
    if not isinstance(found, kind.expected):
        return f"it names a {type(found).__name__}, not a fallow_hookspecs.{kind.expected.__name__}"
    if found.name != name:
        return f"it calls itself {found.name!r}; entry point and {kind.word} must have the same name"
    misfit = level_misfit(found.api_levels)
    return f"it {misfit}" if misfit else ""


def _reason(error: BaseException) -> str:
    """What happened, and at which line outside Python's import machinery."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def _is_machinery(filename: str) -> bool:
    return filename.startswith("<frozen ") or filename in {__file__, metadata.__file__} or "/importlib/" in filename
