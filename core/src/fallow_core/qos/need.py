"""What a strategy looks at, and what it says has to be freed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fallow_core.ledger.node_ledger import NodeLedger
from fallow_core.model.sample import NodeSample
from fallow_core.model.task import SeenTask, TaskKey
from fallow_hookspecs import ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One node at one moment. `ending` are the tasks that are ending already, by whomever.

    `tasks_complete`: the list of tasks is complete and fresh, so that a task which is not in it has gone.
    """

    node: str
    now: float
    sample: NodeSample
    ledger: NodeLedger
    tasks: tuple[SeenTask, ...]
    tasks_complete: bool
    ending: frozenset[TaskKey] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """So much of one resource has to be freed: `amount` in its unit, above what is being freed already.

    `counted_by`: what a victim is credited with, its measured use (pressure) or its request (overdraft). `clusters`:
    the accounts that have to pay, `None` for all. `why` in words, `terms` the arithmetic.
    """

    strategy: str
    resource: ResourceName
    amount: int
    counted_by: Literal["usage", "request"]
    enforce: bool
    why: str
    clusters: frozenset[str] | None = None
    terms: Mapping[str, float] = field(default_factory=dict)
