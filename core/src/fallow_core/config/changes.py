"""Which settings are in force after the files were read again. Pure.

A file is taken as a whole or refused as a whole. While a file is refused, its settings from before stay in force.
"""

from collections.abc import Collection
from dataclasses import replace

from fallow_core.config.problems import KeyPath, Problem
from fallow_core.config.settings import ClusterSettings, Config, with_clusters

_NEEDS_RESTART: dict[str, KeyPath] = {
    "clusters_dir": ("clustersDir",),
    "state_dir": ("stateDir",),
    "control_socket": ("controlSocket",),
    "control_group": ("controlGroup",),
    "metrics": ("metrics",),
    "node_name": ("node", "name"),
    "node_addresses": ("node", "addresses"),
    "host_root": ("hostRoot",),
}
"""Settings that a process cannot change while it runs, and their keys in the file."""


def in_force(old: Config, read: Config) -> Config:
    """The configuration from now on, from the old one and the one that was read.

    A cluster stays as it was while its own file, or another file that names it, is refused, and while the clusters'
    directory cannot be read. `problems` says what was refused.
    """
    changed = [key for name, key in _NEEDS_RESTART.items() if getattr(old, name) != getattr(read, name)]
    refused = [
        Problem(
            file=old.file,
            key=key,
            message=f"restart Fallow for {'.'.join(map(str, key))}; until then the settings from before stay in force",
        )
        for key in changed
    ]
    core = old if refused else read
    problems = (*read.problems, *refused)
    clusters = _clusters(old, read, {problem.file for problem in read.problems})
    return with_clusters(replace(core, problems=problems, named=read.named, stamps=read.stamps), clusters)


def _clusters(old: Config, read: Config, refused: Collection[object]) -> tuple[ClusterSettings, ...]:
    new = {cluster.name: cluster for cluster in read.correct_clusters}
    unreadable = any(problem.file == old.file and problem.key == ("clustersDir",) for problem in read.problems)
    kept = {
        cluster.name: cluster
        for cluster in old.correct_clusters
        if cluster.name not in new and (unreadable or cluster.file in refused or cluster.name in read.named)
    }
    return tuple(cluster for _, cluster in sorted((kept | new).items()))


def policy_differs(old: Config, new: Config) -> bool:
    """Whether the shares of clusters changed. Then a cluster may be above its share that was not before."""

    def accounts(config: Config) -> object:
        return {cluster.name: cluster.account for cluster in config.clusters}

    return (old.policies, old.publishing, old.take_back, accounts(old)) != (
        new.policies,
        new.publishing,
        new.take_back,
        accounts(new),
    )
