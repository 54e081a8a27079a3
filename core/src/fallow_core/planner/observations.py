"""What a round is computed from: what is observed of each node and of each cluster. Times are monotonic seconds."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fallow_core.ledger.rows import ZERO, Row, RowKey, at_least
from fallow_core.ledger.task_shapes import mib_per_core
from fallow_core.model.host_limit import HostLimit
from fallow_core.model.policy import AccountPolicy
from fallow_core.model.sample import NodeSample
from fallow_core.model.task import ObservedTask
from fallow_hookspecs import RESOURCE_NAMES, Capabilities, Daemon, Pending, Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSums:
    """The tasks of one row. `requested`: what all of them were promised, `masters`: application masters and drivers;
    `largest`: the largest one in each resource; `shapes`: how many tasks have how many MiB per core.
    """

    requested: Resources = ZERO
    masters: Resources = ZERO
    largest: Resources = ZERO
    shapes: Mapping[int, int] = field(default_factory=dict)


NO_TASKS = TaskSums()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObservation:
    """One node. `unsure`: why it is not known what on the node is batch; empty if it is.

    `floors_given_up`: until when, of rows whose floor keeps losing tasks to pressure. `daemons`: how many of frameworks
    run there, where no row tells it. `limits`: what the host allows a daemon, by cluster and the framework's name of
    its node, which is empty where that is not known.
    """

    sample: NodeSample = field(default_factory=NodeSample)
    labels: Mapping[str, str] = field(default_factory=dict)
    tasks: Mapping[RowKey, TaskSums] = field(default_factory=dict)
    unsure: str = ""
    floors_given_up: Mapping[RowKey, float] = field(default_factory=dict)
    daemons: int = 0
    limits: Mapping[tuple[str, str], tuple[HostLimit, ...]] = field(default_factory=dict)

    def seen(self, row: Row) -> Row:
        """The row with what is seen here: no less is allocated than its tasks were promised, and the host's limits."""
        row = at_least(row, self.tasks.get(row.key, NO_TASKS).requested)
        cluster = row.key.cluster
        limits = self.limits.get((cluster, row.key.framework_node), self.limits.get((cluster, ""), ()))
        return row if limits == row.limits else replace(row, limits=limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObservation:
    """One cluster. `rows` are all that it has; `changed` are those that have changed, appeared or gone since the last
    round in more than their age.

    `reported`: its framework has said something since this instance was built. `silent`: it has reported for long
    without naming the rows that an earlier process knew. `may_publish`: a call with offers could start now;
    `publishing`: one is under way; `published_at`: when the last one started. `daemons` are those listed on each node.
    """

    policy: AccountPolicy
    rows: Mapping[RowKey, Row]
    changed: Collection[RowKey]
    reported: bool
    silent: bool = False
    may_publish: bool = True
    publishing: bool = False
    published_at: float | None = None
    pending: Pending | None = None
    pending_by_partition: Mapping[str, Pending] = field(default_factory=dict)
    capabilities: Capabilities | None = None
    largest_elsewhere: Resources | None = None
    daemons: Mapping[str, Sequence[Daemon]] = field(default_factory=dict)

    def started(self, key: RowKey) -> str:
        """What tells this start of a row's daemon from another one; empty where its process is not seen."""
        daemons = (d for d in self.daemons.get(key.node, ()) if d.framework_node == key.framework_node)
        return next((f"{d.process.pid}@{d.process.start_ticks}" for d in daemons), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """The inputs of a round at `now`. `wall_now`: seconds since 1970. `nodes`: those with news; `clusters`: all."""

    now: float
    wall_now: float
    nodes: Mapping[str, NodeObservation]
    clusters: Mapping[str, ClusterObservation]


def task_sums(tasks: Iterable[ObservedTask]) -> dict[RowKey, TaskSums]:
    """The sums of the tasks of a node by row; terminating tasks count, as they still hold their resources."""
    by_row: dict[RowKey, list[ObservedTask]] = {}
    for task in tasks:
        by_row.setdefault(RowKey(task.node, task.cluster, task.task.framework_node), []).append(task)
    return {key: _sums(of_row) for key, of_row in by_row.items()}


def _sums(tasks: list[ObservedTask]) -> TaskSums:
    sizes = [task.requested for task in tasks]
    masters = [task.requested for task in tasks if task.is_master]
    return TaskSums(
        requested=Resources(*(sum(size.amount(name) for size in sizes) for name in RESOURCE_NAMES)),
        masters=Resources(*(sum(size.amount(name) for size in masters) for name in RESOURCE_NAMES)),
        largest=Resources(*(max(size.amount(name) for size in sizes) for name in RESOURCE_NAMES)),
        shapes=Counter(ratio for size in sizes if (ratio := mib_per_core(size)) is not None),
    )
