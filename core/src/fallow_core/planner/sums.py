"""The sums of one cluster over all nodes, kept up to date by what changes: no round adds up all rows."""

from collections import Counter

from fallow_core.ledger.rows import ZERO, RowKey
from fallow_core.ledger.task_shapes import TaskShape
from fallow_core.planner.observations import NO_TASKS, TaskSums
from fallow_hookspecs import RESOURCE_NAMES, Resources


class ClusterSums:
    """`allocated`: of all rows, no less than their tasks were promised. `largest`: the largest task that runs."""

    def __init__(self) -> None:
        self.allocated = ZERO
        self.largest = ZERO
        self._rows: dict[RowKey, Resources] = {}
        self._tasks: dict[RowKey, TaskSums] = {}
        self._shapes: Counter[int] = Counter()

    def put(self, key: RowKey, allocated: Resources, tasks: TaskSums) -> None:
        """Replace what one row has; `ZERO` and `NO_TASKS` where it is gone."""
        before = self._rows.pop(key, ZERO)
        if allocated != ZERO:
            self._rows[key] = allocated
        self.allocated = Resources(
            self.allocated.cpu_milli + allocated.cpu_milli - before.cpu_milli,
            self.allocated.memory_bytes + allocated.memory_bytes - before.memory_bytes,
        )
        old = self._tasks.pop(key, NO_TASKS)
        if tasks is not NO_TASKS:
            self._tasks[key] = tasks
        if tasks == old:
            return
        self._shapes.subtract(old.shapes)
        self._shapes.update(tasks.shapes)
        self._shapes = +self._shapes
        self.largest = self._largest(old.largest, tasks.largest)

    def shape(self, *, honours_cpu: bool) -> TaskShape:
        """The shape of the tasks that run. `mib_per_core` is the lower median."""
        return TaskShape(largest=self.largest, mib_per_core=self._median(), honours_cpu=honours_cpu)

    def _largest(self, before: Resources, now: Resources) -> Resources:
        """Looks at all rows only where the largest task may have gone."""
        amounts = []
        for name in RESOURCE_NAMES:
            most, old, new = self.largest.amount(name), before.amount(name), now.amount(name)
            if old == most and new < old:
                most = max((each.largest.amount(name) for each in self._tasks.values()), default=0)
            amounts.append(max(most, new))
        return Resources(*amounts)

    def _median(self) -> int | None:
        left = (self._shapes.total() + 1) // 2
        for ratio in sorted(self._shapes):
            left -= self._shapes[ratio]
            if left <= 0:
                return ratio
        return None
