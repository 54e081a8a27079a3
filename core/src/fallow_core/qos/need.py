"""The input of a strategy, and its result: what has to be freed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fallow_core.ledger.node_ledger import NodeLedger
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.model.task import ObservedTask, TaskKey
from fallow_hookspecs import ResourceName, TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One node at one moment.

    `tasks_complete`: the list of tasks is complete and recent, so a task that is not in it is gone. `terminating`: the
    tasks that are being freed already, by Fallow or by others; `freeing_bytes`: the memory that each of them was last
    seen to use. `termination_budget_bytes`: the requests that may still
    be terminated for overdraft, by account. An account that is missing has no budget: it is adopted, its take-back is
    under way, its blast radius is used up, or its framework does not enforce memory. `stopped`: the accounts that the
    operator stopped. `restored`: the accounts that the operator restored; none of their tasks is terminated. A reading
    older than `stale_seconds` is ignored.
    """

    node: str
    now: float
    sample: NodeSample
    ledger: NodeLedger
    tasks: tuple[ObservedTask, ...]
    tasks_complete: bool
    terminating: frozenset[TaskKey] = frozenset()
    freeing_bytes: Mapping[TaskKey, int] = field(default_factory=dict)
    termination_budget_bytes: Mapping[str, int] = field(default_factory=dict)
    stopped: frozenset[str] = frozenset()
    restored: frozenset[str] = frozenset()
    stale_seconds: float = 10.0

    def measured(self, resource: ResourceName) -> Usage | None:
        """The use of the node; `None` if it is not known or too old."""
        usage = self.sample.of(resource)
        return usage if usage is not None and self._is_fresh(usage.measured_at) else None

    def use(self, task: ObservedTask, resource: ResourceName) -> int | None:
        """The measured use of a task; `None` if it is not known or too old."""
        usage = task.usage
        return usage.amount(resource) if usage is not None and self._is_fresh(usage.measured_at) else None

    def being_freed(self, resource: ResourceName) -> int:
        """The measured use of the tasks that are terminating.

        A process that exits shows no memory any more while the kernel still gives it back, and a task may be missing in
        a list: until it is known to be gone, its memory counts as it was last seen.
        """
        used = {task.key: self.use(task, resource) or 0 for task in self.tasks if task.key in self.terminating}
        if resource == "memory":
            last = {key: amount for key, amount in self.freeing_bytes.items() if key in self.terminating}
            used = last | {key: amount or last.get(key, 0) for key, amount in used.items()}
        return sum(used.values())

    def living(self) -> tuple[ObservedTask, ...]:
        """The tasks that are not terminating."""
        return tuple(
            t for t in self.tasks if t.key not in self.terminating and t.task.state is not TaskState.TERMINATING
        )

    def cooled_down(self, asked_at: float | None, seconds: float) -> bool:
        """Whether this time has passed since the newest need, or there was none."""
        return asked_at is None or self.now - asked_at >= seconds

    def _is_fresh(self, measured_at: float) -> bool:
        return self.now - measured_at <= self.stale_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """`amount` of one resource has to be freed, in its unit, in addition to what is being freed already.

    `counted_by`: what a termination frees, the measured use of the task (pressure) or its request (overdraft).
    `masters`: application masters may be terminated if nothing else suffices, and they do. `critical`: they may be
    terminated even if all tasks together do not suffice. `clusters`: the accounts whose tasks may be terminated;
    `None`: all. `first`: the accounts whose tasks come first, those above their fair share; other tasks are terminated
    only for what is still lacking. `at_most`: the most that may be freed. `terms`: the inputs of the calculation.
    """

    strategy: str
    resource: ResourceName
    amount: int
    counted_by: Literal["usage", "request"]
    enforce: bool
    why: str
    masters: bool = False
    critical: bool = False
    clusters: frozenset[str] | None = None
    first: frozenset[str] = frozenset()
    at_most: int | None = None
    terms: Mapping[str, float] = field(default_factory=dict)
