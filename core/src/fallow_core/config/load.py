"""Loads a core file and its cluster files, and collects every mistake of every file."""

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fallow_core.config.document import Document, read
from fallow_core.config.file_stamps import Stamps, stamp, stamps
from fallow_core.config.from_models import cluster_of, config_of
from fallow_core.config.models import DEFAULT_CLUSTERS_DIR, ClusterFile, CoreFile
from fallow_core.config.problems import Problem, error_of
from fallow_core.config.settings import CORE_FILE, ClusterSettings, Config, PluginLoader, with_clusters
from fallow_core.config.validation import validate
from fallow_core.errors import PluginLoadError
from fallow_core.model.plugin import LoadedPlugin
from fallow_hookspecs import Role

LONGEST_SOCKET_PATH_BYTES = 107  # what the kernel takes, sockaddr_un.sun_path


def load(path: Path, load_plugin: PluginLoader, *, as_agent: bool = False) -> Config:
    """Read a configuration. A wrong cluster file, or a missing plugin, affects only that cluster.

    :param path: a core file, or the directory that holds it as `fallow.yaml`.
    :param load_plugin: imports one plugin by name, or raises `PluginLoadError`.
    :param as_agent: validate each `spec` for the agent role alone.
    :raises ConfigError: the core file is wrong; the text includes the mistakes of the cluster files.
    """
    file = path / CORE_FILE if path.is_dir() else path
    before = {file.absolute(): stamp(file)}
    core, document, problems = _core(file)
    directory = clusters_dir(file, document)
    found_stamps = {**stamps(file, directory), **before}
    found = _clusters(file, directory, document, load_plugin, as_agent=as_agent)
    if core is None:
        raise error_of([*problems, *found.problems])
    return _with(core, found, (), found_stamps)


def load_again(config: Config, load_plugin: PluginLoader, *, as_agent: bool = False) -> Config:
    """Read the files of a running configuration again. It raises nothing: mistakes are in `problems`.

    If the core file is wrong, its settings from before stay. The clusters' directory is that of `config`.
    """
    found_stamps = stamps(config.file, config.clusters_dir)
    core, document, problems = _core(config.file)
    must_be_there = bool(config.correct_clusters)
    found = _clusters(
        config.file, config.clusters_dir, document, load_plugin, must_be_there=must_be_there, as_agent=as_agent
    )
    return _with(config if core is None else core, found, problems, found_stamps)


def _with(core: Config, found: "_Clusters", problems: Iterable[Problem], found_stamps: Stamps) -> Config:
    """The settings of a core file with the clusters that were found."""
    every = (*problems, *found.problems)
    core = replace(core, problems=every, named=found.named, stamps=found_stamps)
    return with_clusters(core, found.clusters)


def _core(file: Path) -> tuple[Config | None, Document | None, list[Problem]]:
    """The settings of a core file without clusters; `None` if there are problems."""
    document, problems = read(file)
    if document is None:
        return None, None, problems
    core, found = _validated(document, CoreFile)
    problems += found
    if core is None or problems:
        return None, document, problems
    config = config_of(core, file)
    if len(os.fsencode(config.control_socket)) > LONGEST_SOCKET_PATH_BYTES:
        text = f"the path is longer than {LONGEST_SOCKET_PATH_BYTES} bytes, the most for a socket"
        return None, document, [document.problem(("controlSocket",), text)]
    return config, document, []


def clusters_dir(core_file: Path, core: Document | None) -> Path:
    """The directory of the cluster files; the default one if the core file cannot be read."""
    named = core.data.get("clustersDir") if core is not None else None
    if not isinstance(named, str) or not named or "\0" in named:
        named = DEFAULT_CLUSTERS_DIR
    return core_file.parent / named


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One cluster file: its content, and the settings if it is correct."""

    file: Path
    document: Document | None
    cluster: ClusterSettings | None
    problems: list[Problem]

    @property
    def identity(self) -> tuple[str, str] | None:
        """Plugin and name, if they could be read, whatever else is wrong."""
        data = self.document.data if self.document is not None else {}
        metadata = data.get("metadata")
        plugin, name = data.get("plugin"), metadata.get("name") if isinstance(metadata, dict) else None
        return (plugin, name) if isinstance(plugin, str) and isinstance(name, str) else None


@dataclass(frozen=True, slots=True)
class _Clusters:
    """The content of the clusters' directory. `named`: the clusters that its files name, also the wrong files."""

    clusters: tuple[ClusterSettings, ...]
    problems: list[Problem]
    named: frozenset[str] = frozenset()


def _clusters(
    core_file: Path,
    directory: Path,
    core: Document | None,
    load_plugin: PluginLoader,
    *,
    must_be_there: bool = False,
    as_agent: bool = False,
) -> _Clusters:
    """Read the cluster files. The default directory may be missing, unless clusters were read from it before."""
    try:
        entries = sorted(
            entry for entry in directory.iterdir() if not entry.name.startswith(".") and not _is_same(entry, core_file)
        )
    except OSError as error:
        expected = must_be_there or (core is not None and "clustersDir" in core.data)
        if isinstance(error, FileNotFoundError) and not expected:
            return _Clusters((), [])  # no clusters yet
        text = f"the clusters' directory {directory} cannot be read: {error.strerror}"
        return _Clusters((), [(core or Document(file=core_file)).problem(("clustersDir",), text)])
    candidates = [_candidate(entry, load_plugin, as_agent=as_agent) for entry in entries if entry.suffix == ".yaml"]
    doubles = _doubles(candidates)
    problems = [problem for candidate in candidates for problem in candidate.problems] + doubles
    problems += [
        Problem(file=entry, message="not read: a cluster file's name ends in .yaml; rename it")
        for entry in entries
        if entry.suffix == ".yml"
    ]
    wrong = {problem.file for problem in problems}
    good = (each.cluster for each in candidates if each.cluster is not None and each.file not in wrong)
    named = frozenset("/".join(each.identity) for each in candidates if each.identity is not None)
    return _Clusters(tuple(good), problems, named)


def _is_same(entry: Path, core_file: Path) -> bool:
    """Whether both are one file, whatever the form of their paths."""
    try:
        return entry.samefile(core_file)
    except OSError:
        return entry.absolute() == core_file.absolute()


def _candidate(file: Path, load_plugin: PluginLoader, *, as_agent: bool = False) -> _Candidate:
    document, problems = read(file)
    if document is None:
        return _Candidate(file, None, None, problems)
    model, found = _validated(document, ClusterFile)
    plugin, spec, spec_problems = _spec(document, load_plugin, as_agent=as_agent)
    problems += [*found, *spec_problems]
    cluster = None if problems or plugin is None else cluster_of(model, file, plugin, spec)
    return _Candidate(file, document, cluster, problems)


def load_cluster(file: Path, load_plugin: PluginLoader) -> tuple[ClusterSettings, dict[str, Any]]:
    """One cluster file by itself: its settings, and `spec` as it is in the file.

    :raises ConfigError: the file is wrong; the text has every mistake.
    """
    candidate = _candidate(file, load_plugin)
    if candidate.cluster is None or candidate.document is None:
        raise error_of(candidate.problems)
    return candidate.cluster, candidate.document.data.get("spec") or {}


def _validated(document: Document, model: type[CoreFile | ClusterFile]) -> tuple[Any, list[Problem]]:
    """As `validate`; but the keys of a file of the other kind are not validated, since it is in the wrong place."""
    kinds = {CoreFile: ("Fallow", "Cluster"), ClusterFile: ("Cluster", "Fallow")}
    expected, other = kinds[model]
    if document.data.get("kind") == other:
        text = f"found {other!r}; expected kind: {expected} here (one core file, and the cluster files in clustersDir)"
        return None, [document.problem(("kind",), text)]
    return validate(model, document.data, document)


def _spec(
    document: Document, load_plugin: PluginLoader, *, as_agent: bool
) -> tuple[LoadedPlugin | None, Any, list[Problem]]:
    """The plugin that the file names, and the validated `spec`, whatever else is wrong with the file."""
    name, spec = document.data.get("plugin"), document.data.get("spec")
    if not isinstance(name, str) or not name:
        return None, None, []  # the model of the file reports it
    try:
        loaded = load_plugin(name)
    except PluginLoadError as error:
        return None, None, [document.problem(("plugin",), str(error))]
    try:
        model = loaded.plugin.model_for(frozenset({Role.AGENT}) if as_agent else _roles(document))
    except (Exception, SystemExit) as error:
        text = f"{loaded.source} has no model of spec: {type(error).__name__}: {error}"
        return None, None, [document.problem(("plugin",), text)]
    if not isinstance(spec, dict | None):
        return loaded, None, []  # the model of the file reports it
    validated, problems = validate(model, spec or {}, document, ("spec",))
    return loaded, validated, problems


def _roles(document: Document) -> frozenset[Role]:
    """The roles of a cluster file; all of them if they are missing or wrong."""
    named = document.data.get("roles")
    return frozenset(Role) if named != [Role.AGENT] else frozenset({Role.AGENT})


def _doubles(candidates: list[_Candidate]) -> list[Problem]:
    """Clusters of one plugin with the same name. None of them is used."""
    same: defaultdict[tuple[str, str], list[Document]] = defaultdict(list)
    for candidate in candidates:
        if candidate.identity is not None and candidate.document is not None:
            same[candidate.identity].append(candidate.document)
    problems = []
    for (plugin, name), documents in same.items():
        for document in documents:
            others = ", ".join(str(other.file) for other in documents if other is not document)
            if others:
                text = f"{name!r} is also the name of the {plugin} cluster in {others}; give each a name of its own"
                problems.append(document.problem(("metadata", "name"), text))
    return problems
