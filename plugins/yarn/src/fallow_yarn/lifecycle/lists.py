"""The files of excluded and included hosts of one cluster, and what a refresh with them would do to others' nodes."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fallow_yarn.config import AgentSpec
from fallow_yarn.errors import YarnError
from fallow_yarn.hadoop_conf import read_folder
from fallow_yarn.ipc.deadline import Deadline
from fallow_yarn.lifecycle.list_file import ListFile
from fallow_yarn.lifecycle.parked import ParkedNodes
from fallow_yarn.rm.active import Manager
from fallow_yarn.rm.nodes import Node, State

EXCLUDE_KEY: Final = "yarn.resourcemanager.nodes.exclude-path"
INCLUDE_KEY: Final = "yarn.resourcemanager.nodes.include-path"


class LifecycleError(YarnError):
    """A node cannot be decommissioned or recommissioned; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Lists:
    """The files, one or more of each kind; of the included hosts there may be none. They are to say the same."""

    excludes: tuple[ListFile, ...]
    includes: tuple[ListFile, ...] = ()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else of Fallow's writes the excluded hosts meanwhile."""
        with ExitStack() as stack:
            for file in self.excludes:
                stack.enter_context(file.locked())
            yield

    def check_writable(self) -> None:
        """ListFileError if a file of excluded hosts could not be replaced."""
        for file in self.excludes:
            file.check_writable()

    @contextmanager
    def excluded_meanwhile(self, hosts: Collection[str], grace_seconds: int) -> Iterator[None]:
        """These hosts are excluded, and afterwards only those of them that were before."""
        with ExitStack() as stack:
            for file in self.excludes:
                known = file.hosts()
                stack.callback(_take_out, file, [host for host in hosts if host not in known])
                _put_in(file, hosts, grace_seconds)
            yield

    @property
    def parked(self) -> ParkedNodes:
        """The nodes that are out for being empty."""
        return ParkedNodes(self.excludes[0].path)

    def exclude(self, hosts: Collection[str], grace_seconds: int) -> None:
        """Exclude these hosts."""
        for file in self.excludes:
            _put_in(file, hosts, grace_seconds)

    def take_out(self, hosts: Collection[str]) -> None:
        """Exclude these hosts no longer."""
        for file in self.excludes:
            _take_out(file, hosts)

    def include(self, hosts: Collection[str]) -> None:
        """Include these hosts, where only hosts that are listed are taken."""
        for file in self.includes:
            if file.hosts():
                _put_in(file, hosts, None)

    def check_others(self, nodes: Iterable[Node], hosts: Collection[str], grace_seconds: int) -> None:
        """LifecycleError if a refresh now would change what somebody else has decided for other nodes."""
        for node in nodes:
            if node.state is not State.DECOMMISSIONING or node.host in hosts:
                continue
            for file in self.excludes:
                known = file.hosts()
                if node.host not in known:
                    why = f"and is not in {file}: it would be in use again"
                elif known[node.host] is None and node.grace_seconds != grace_seconds:
                    why = f"with a grace of {node.grace_seconds} s, which would be {grace_seconds} s then"
                else:
                    continue
                raise LifecycleError(
                    f"node {node.node_id} is being decommissioned by somebody else, {why}; wait until that is done, or"
                    " use an exclude file whose name ends in .xml and in which each host has a timeout of its own"
                )


def lists_of(spec: AgentSpec, manager: Manager, deadline: Deadline) -> Lists:
    """The files that the cluster file names, or else those of Hadoop's own configuration.

    :raises LifecycleError: it reads none.
    :raises YarnError: it cannot be asked.
    :raises HadoopConfError: the folder with its configuration cannot be read.
    """
    excludes = spec.exclude_files or _said(EXCLUDE_KEY, spec, manager, deadline)
    if not excludes:
        raise LifecycleError(
            f"{manager.place}: it has no exclude file, or does not show which; set {EXCLUDE_KEY} in its yarn-site.xml,"
            " and spec.excludeFiles if this host has the file at another path"
        )
    includes = spec.include_files or _said(INCLUDE_KEY, spec, manager, deadline)
    return Lists(tuple(ListFile(Path(path)) for path in excludes), tuple(ListFile(Path(path)) for path in includes))


def _put_in(file: ListFile, hosts: Collection[str], grace_seconds: int | None) -> None:
    file.change(lambda text: file.kind.with_hosts(text, hosts, grace_seconds))


def _take_out(file: ListFile, hosts: Collection[str]) -> None:
    file.change(lambda text: file.kind.without_hosts(text, hosts))


def _said(key: str, spec: AgentSpec, manager: Manager, deadline: Deadline) -> list[str]:
    """A path as the folder of Hadoop's has it, or else the ResourceManager."""
    path = read_folder(spec.hadoop_conf_dir).text(key) if spec.hadoop_conf_dir is not None else ""
    path = path or (manager.setting(key, deadline) or "").strip()
    return [path] if path else []
