"""What a running Fallow makes of its files when they were read again. Pure.

A file is taken as a whole or not at all: of one that is refused, what it said before stays in force. So nothing that
runs depends on a file that is half right.
"""

from collections.abc import Collection
from dataclasses import replace

from fallow_core.config.problems import KeyPath, Problem
from fallow_core.config.settings import ClusterSettings, Config

_FOR_LIFE: dict[str, KeyPath] = {
    "clusters_dir": ("clustersDir",),
    "state_dir": ("stateDir",),
    "control_socket": ("controlSocket",),
    "control_group": ("controlGroup",),
    "metrics": ("metrics",),
    "node_name": ("node", "name"),
    "node_addresses": ("node", "addresses"),
    "node_labels": ("node", "labels"),
    "host_root": ("hostRoot",),
}
"""Settings that a process keeps for life, and the keys that users write."""


def in_force(old: Config, read: Config) -> Config:
    """The configuration from now on, from the one before and the files as they were read again.

    A cluster stays as it was while its file is refused, while any file names it that is refused, and while the
    clusters' directory cannot be read. `problems` is what was refused.
    """
    changed = [key for name, key in _FOR_LIFE.items() if getattr(old, name) != getattr(read, name)]
    refused = [
        Problem(
            file=old.file,
            key=key,
            message=f"restart Fallow for {'.'.join(map(str, key))}; until then the file counts as it was",
        )
        for key in changed
    ]
    core = old if refused else read
    problems = (*read.problems, *refused)
    clusters = _clusters(old, read, {problem.file for problem in read.problems})
    return replace(core, clusters=clusters, problems=problems, named=read.named, stamps=read.stamps)


def _clusters(old: Config, read: Config, refused: Collection[object]) -> tuple[ClusterSettings, ...]:
    new = {cluster.name: cluster for cluster in read.clusters}
    unreadable = any(problem.file == old.file and problem.key == ("clustersDir",) for problem in read.problems)
    kept = {
        cluster.name: cluster
        for cluster in old.clusters
        if cluster.name not in new and (unreadable or cluster.file in refused or cluster.name in read.named)
    }
    return tuple(cluster for _, cluster in sorted((kept | new).items()))


def policy_differs(old: Config, new: Config) -> bool:
    """Whether who may have how much was changed: then some may be above their share who were not before."""

    def accounts(config: Config) -> object:
        return {cluster.name: cluster.account for cluster in config.clusters}

    return (old.policies, old.publishing, old.take_back, accounts(old)) != (
        new.policies,
        new.publishing,
        new.take_back,
        accounts(new),
    )
