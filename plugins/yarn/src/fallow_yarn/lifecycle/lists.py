"""The exclude and include files of one cluster, and whether a refresh would affect nodes that others decommission."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from fallow_yarn.errors import YarnError
from fallow_yarn.lifecycle.list_entries import AddressesOf, addresses_of, counted, meant
from fallow_yarn.lifecycle.list_file import ListFile
from fallow_yarn.lifecycle.removed_nodes import RemovedNodes
from fallow_yarn.rm.nodes import Node, State
from fallow_yarn.settings.config import AgentSpec
from fallow_yarn.settings.hadoop_conf import EXCLUDE_KEY, INCLUDE_KEY, read_folder


class LifecycleError(YarnError):
    """A node cannot be decommissioned or recommissioned; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class HostLists:
    """One or more exclude files, and any number of include files. All of one kind should have the same hosts.

    Hosts are named as the ResourceManager names them; the files may have their addresses instead.
    """

    excludes: tuple[ListFile, ...]
    includes: tuple[ListFile, ...] = ()
    addresses_of: AddressesOf = addresses_of

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the exclude files; ListFileError if another fallow holds it."""
        with ExitStack() as stack:
            for file in self.excludes:
                stack.enter_context(file.locked())
            yield

    def check_writable(self) -> None:
        """ListFileError if an exclude file cannot be replaced."""
        for file in self.excludes:
            file.check_writable()

    @contextmanager
    def excluded_temporarily(self, hosts: Collection[str], grace_seconds: int) -> Iterator[None]:
        """Exclude these hosts within the context; those that were not excluded before it are removed after it."""
        with ExitStack() as stack:
            for file in self.excludes:
                known = file.hosts()
                stack.callback(_remove, file, [host for host in hosts if host not in known])
                _add(file, hosts, grace_seconds)
            yield

    @property
    def removed(self) -> RemovedNodes:
        """The nodes that were removed because they were empty; ListFileError if others may change their file."""
        return RemovedNodes(self.excludes[0].beside("fallow-empty"))

    def exclude(self, hosts: Collection[str], grace_seconds: int) -> None:
        """Exclude these hosts."""
        for file in self.excludes:
            _add(file, hosts, grace_seconds)

    def stop_excluding(self, hosts: Collection[str]) -> None:
        """Remove these hosts from the exclude files, in each spelling and by their addresses."""
        for file in self.excludes:
            listed = file.hosts()
            _remove(file, {entry for host in hosts for entry in meant(host, listed, self.addresses_of)})

    def include(self, hosts: Collection[str]) -> None:
        """Add these hosts to the include files that are not empty: an empty one admits all hosts."""
        for file in self.includes:
            if listed := file.hosts():
                _add(file, [host for host in hosts if not counted(host, listed, self.addresses_of)], None)

    def check_others(self, nodes: Iterable[Node], hosts: Collection[str], grace_seconds: int) -> None:
        """LifecycleError if a refresh now would change the decommissioning of other nodes by somebody else."""
        for node in nodes:
            if node.state is not State.DECOMMISSIONING or node.host in hosts:
                continue
            for file in self.excludes:
                known = file.hosts()
                if not counted(node.host, known, self.addresses_of):
                    why = f"and is not in {file}: it would be in use again"
                elif known.get(node.host) is None and node.grace_seconds != grace_seconds:
                    why = f"with a grace of {node.grace_seconds} s, which would be {grace_seconds} s then"
                else:
                    continue
                raise LifecycleError(
                    f"node {node.node_id} is being decommissioned by somebody else, {why}; wait until that is done, or"
                    " use an exclude file whose name ends in .xml and in which each host has a timeout of its own"
                )


def lists_of(spec: AgentSpec) -> HostLists:
    """The files that the cluster file names, or else those of Hadoop's own configuration on this host.

    The ResourceManager shows their paths too, and is not asked: whoever answers in its place would choose which file is
    written here.

    :raises LifecycleError: no exclude file is configured.
    :raises HadoopConfError: the folder with its configuration cannot be read.
    """
    excludes = spec.exclude_files or _configured(EXCLUDE_KEY, spec)
    if not excludes:
        raise LifecycleError(
            "it is not known which exclude file the ResourceManager reads: set spec.excludeFiles to its path on this"
            f" host, or spec.hadoopConfDir to a folder whose yarn-site.xml sets {EXCLUDE_KEY}"
        )
    includes = spec.include_files or _configured(INCLUDE_KEY, spec)
    return HostLists(tuple(ListFile(Path(path)) for path in excludes), tuple(ListFile(Path(path)) for path in includes))


def _add(file: ListFile, hosts: Collection[str], grace_seconds: int | None) -> None:
    file.change(lambda text: file.kind.with_hosts(text, hosts, grace_seconds))


def _remove(file: ListFile, hosts: Collection[str]) -> None:
    file.change(lambda text: file.kind.without_hosts(text, hosts))


def _configured(key: str, spec: AgentSpec) -> list[str]:
    """The path in Hadoop's files."""
    path = read_folder(spec.hadoop_conf_dir).text(key) if spec.hadoop_conf_dir is not None else ""
    return [path] if path else []
