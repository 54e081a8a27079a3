"""What the files become: the values that the rest of core works with. Importing them needs no pydantic."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fallow_core.config.file_stamps import Stamps
from fallow_core.config.problems import Problem
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.plugin import LoadedPlugin
from fallow_core.model.policy import AccountPolicy, ExitMode, PublishingPolicy
from fallow_core.model.qos_policy import QosPolicy
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_hookspecs import ClusterConfig

CORE_FILE = "fallow.yaml"
CONTROL_SOCKET = "/run/fallow/control.sock"

PluginLoader = Callable[[str], LoadedPlugin]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """One correct cluster file, with its plugin loaded.

    `built_from` has the parts of the file that the instance is built from. A change of it needs a new instance.
    """

    file: Path
    plugin: LoadedPlugin
    config: ClusterConfig
    account: AccountPolicy
    node_selector: Mapping[str, str]
    built_from: str = ""

    @property
    def name(self) -> str:
        """The cluster's name in status and metrics: `plugin/name`."""
        return f"{self.plugin.source.name}/{self.config.name}"

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether the cluster uses a node with these labels."""
        return self.node_selector.items() <= labels.items()


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One core file and its cluster files. All paths are absolute.

    `clusters` are the clusters of this host. `not_selected` are those whose `nodeSelector` does not match its labels.
    `problems` are the mistakes of the other files. `named` are the clusters that any file names, also a wrong one.
    `metrics`: address and port, or `None` if they are off. `stamps` are those of the files before they were read.
    """

    file: Path
    name: str | None
    clusters_dir: Path
    state_dir: Path
    control_socket: Path
    control_group: str | None
    metrics: tuple[str, int] | None
    node_name: str
    node_addresses: tuple[str, ...]
    policies: NodePolicies
    publishing: PublishingPolicy
    take_back: TakeBackPolicy
    qos: QosPolicy
    sample_interval_seconds: float
    on_exit: ExitMode
    log_level: str
    node_labels: Mapping[str, str] = field(default_factory=dict)
    host_root: Path = Path("/")
    clusters: tuple[ClusterSettings, ...] = ()
    not_selected: tuple[ClusterSettings, ...] = ()
    problems: tuple[Problem, ...] = ()
    named: frozenset[str] = frozenset()
    stamps: Stamps | None = field(default=None, compare=False, repr=False)

    @property
    def correct_clusters(self) -> tuple[ClusterSettings, ...]:
        """Every cluster with a correct file, whether it selects this host or not."""
        return *self.clusters, *self.not_selected

    @property
    def not_selected_reasons(self) -> dict[str, str]:
        """Why a cluster is not used on this host, by the cluster's name."""
        return {
            cluster.name: f"its nodeSelector {_pairs(cluster.node_selector)} does not match this host's labels"
            f" ({_pairs(self.node_labels) or 'none'})"
            for cluster in self.not_selected
        }


def with_clusters(config: Config, clusters: Iterable[ClusterSettings]) -> Config:
    """The configuration with these clusters, of which some select this host and some do not."""
    every = tuple(clusters)
    here = tuple(cluster for cluster in every if cluster.selects(config.node_labels))
    return replace(config, clusters=here, not_selected=tuple(cluster for cluster in every if cluster not in here))


def _pairs(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
