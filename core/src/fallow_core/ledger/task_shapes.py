"""What is known of the tasks of a cluster: how large they are, and in which shape they use a node."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median_low

from fallow_core.ledger.rows import ZERO
from fallow_hookspecs import Resources

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskShape:
    """`largest`: the largest task that runs, in each resource. `mib_per_core`: the median memory of the tasks that run,
    `None` where none does. `honours_cpu`: the framework's scheduler heeds the CPU of a size; where it does not, the
    memory it is offered is all that keeps it from filling a node with more tasks than have CPU there.
    """

    largest: Resources = ZERO
    mib_per_core: int | None = None
    honours_cpu: bool = True

    def memory_bytes_for(self, cpu_milli: int) -> int | None:
        """The memory of as many such tasks as that CPU suffices for; `None` if that is no bound."""
        if self.honours_cpu or self.mib_per_core is None:
            return None
        return cpu_milli * self.mib_per_core // 1000 * MIB


def task_shape(tasks: Iterable[Resources], *, honours_cpu: bool) -> TaskShape:
    """The shape of the tasks that run, from what each one asked for."""
    sizes = list(tasks)
    ratios = [size.memory_bytes * 1000 // size.cpu_milli // MIB for size in sizes if size.cpu_milli > 0]
    return TaskShape(
        largest=Resources(
            max((size.cpu_milli for size in sizes), default=0), max((size.memory_bytes for size in sizes), default=0)
        ),
        mib_per_core=median_low(ratios) if ratios else None,
        honours_cpu=honours_cpu,
    )
