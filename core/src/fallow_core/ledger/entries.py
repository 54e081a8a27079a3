"""What the ledger of a node is computed from, and what it is: every input and every step, so that each number can be
recomputed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fallow_core.ledger.capacity import BatchCapacity
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.task_shapes import TaskShape
from fallow_core.model.host_limit import HostLimit
from fallow_core.model.policy import AccountPolicy, NodePolicy, PublishingPolicy
from fallow_core.model.sample import NodeSample
from fallow_core.model.workload import Workload
from fallow_hookspecs import NodeState, Pending, ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInputs:
    """All that the ledger of one node is computed from. `accounts`, `pending` and `shapes`, which are of
    the tasks that run, go by cluster name.

    `awaited`: rows that an earlier process knew and that nobody has reported yet. Their schedulers may promise
    anything, so while there are any nothing grows. `unsure`: why it is not known what on the node is batch; then
    nothing grows either. `watched_since`: since when the node should have been measured. `workloads` are its pods and
    host applications as they were at `workloads_at`, which is `None` where nobody tells of any. `daemons`: how many of
    frameworks run there, where more are known than rows. `no_growth`: why nothing may grow, not even to its floor.
    """

    node: str
    now: float
    sample: NodeSample
    rows: tuple[Row, ...]
    awaited: tuple[RowKey, ...] = ()
    unsure: str = ""
    watched_since: float | None = None
    workloads: tuple[Workload, ...] = ()
    workloads_at: float | None = None
    daemons: int = 0
    accounts: Mapping[str, AccountPolicy]
    pending: Mapping[str, Pending | None] = field(default_factory=dict)
    shapes: Mapping[str, TaskShape] = field(default_factory=dict)
    policy: NodePolicy = field(default_factory=NodePolicy)
    publishing: PublishingPolicy = field(default_factory=PublishingPolicy)
    no_growth: str = ""


@dataclass(slots=True, kw_only=True)  # filled in steps while a ledger is computed, and not changed after that
class AccountEntry:
    """One account and one resource. `pending` is `None` where unknown, the others where there is no bound.

    `room`: what it should have free to start anything. `wants`: what it would take of this resource alone. `demand`:
    what it can use of that, given the resource `cut_by`, which it runs out of first, and `spare` on top. `limit`: the
    least of the operator's limit, of what its rows may be sized to, and of `of_tasks`, in whole units. `honoured`: its
    scheduler heeds the size; `of_tasks`: as it does not heed CPU, the memory of the tasks that batch CPU suffices for.
    """

    cluster: str
    weight: int
    unit: int
    allocated: int
    in_force: int
    pending: int | None
    room: int
    spare: int
    wants: int | None
    demand: int | None
    limit: int | None
    floor: int
    fair: int = 0
    target: int = 0
    drains_for_others: bool = False
    cut_by: ResourceName | None = None
    honoured: bool = True
    of_tasks: int | None = None


@dataclass(slots=True, kw_only=True)  # filled in steps while a ledger is computed, and not changed after that
class RowEntry:
    """One row and one resource. `target` is its part of the account's target, `size` what it should be sized to.

    `newest`: the size it was last sent, or the one in force; its belief where neither is known. `most`: what it may be
    sized to by switch, ages and what the framework can use; `None` if that is no bound. `host_limit`: the limit of this
    host that decides about that. `waits`: it would grow if others believed in less. `reasons` says in words what else
    than sharing decides about `size`.
    """

    key: RowKey
    state: NodeState
    allocated: int
    in_force: int | None
    in_flight: tuple[int, ...]
    newest: int
    belief: int
    floor: int
    unit: int
    most: int | None
    host_limit: HostLimit | None = None
    target: int = 0
    size: int = 0
    waits: bool = False
    reasons: tuple[str, ...] = ()

    @property
    def wanted(self) -> int:
        """Its target, as far as it may be sized to that."""
        return self.target if self.most is None else min(self.target, self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLedger:
    """One resource of a node. `capacity` is `None` while nothing was ever measured: then nothing grows.

    `exposure`: beliefs above batch. `overdraft`: allocations above batch. Neither is ever clamped out of sight.
    `drain_step`: by how much an account above its fair share drains for one that waits. `shared`: what is free is
    promised to every account, so that exposure is meant.
    """

    resource: ResourceName
    capacity: BatchCapacity | None
    sample_age_seconds: float | None
    allocated: int
    believed: int
    exposure: int
    overdraft: int
    drain_step: int
    accounts: tuple[AccountEntry, ...]
    rows: tuple[RowEntry, ...]
    shared: bool = False

    @property
    def overcommitted(self) -> bool:
        """Whether schedulers may promise more than there is, though that is not meant."""
        return (self.overdraft if self.shared else self.exposure) > 0

    @property
    def to_take_back(self) -> int:
        """The overdraft that may be taken back: none where promising twice may have caused it."""
        return 0 if self.shared else self.overdraft


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLedger:
    """The ledger of one node."""

    node: str
    cpu: ResourceLedger
    memory: ResourceLedger

    def of(self, resource: ResourceName) -> ResourceLedger:
        """The ledger of one resource."""
        return self.cpu if resource == "cpu" else self.memory
