"""What the files say, as the values that the rest of core works with. They are read without the models of files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fallow_core.config.file_stamps import Look
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
    """One cluster file without a mistake, its plugin loaded.

    `built_from` is what the file says of the instance: while it stays the same, there is no need of a new one.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One core file and its cluster files. All paths are absolute.

    `clusters` are those without a mistake; `problems` is what is wrong with the others. `named` are the clusters that
    any file names, also one with mistakes. `metrics`: address and port, or `None` where they are off. `seen` is how the
    files looked before they were read.
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
    problems: tuple[Problem, ...] = ()
    named: frozenset[str] = frozenset()
    seen: Look | None = field(default=None, compare=False, repr=False)
