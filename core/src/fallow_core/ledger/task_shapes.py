"""In which shape the tasks of a cluster use a node."""

from dataclasses import dataclass

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


def mib_per_core(size: Resources) -> int | None:
    """The memory of a task per core that it asked for; `None` where it asked for none."""
    return size.memory_bytes * 1000 // size.cpu_milli // MIB if size.cpu_milli > 0 else None
