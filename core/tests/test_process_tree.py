from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from fallow_core.node.batch_cpu import BatchCpu, next_batch_cpu
from fallow_core.node.process_tree import batch_processes
from fallow_core.node.procfs import ProcessStat
from fallow_hookspecs import Process


def test_a_daemon_and_all_its_descendants_are_batch() -> None:
    processes = table((1, 0, 0), (5, 1, 3), (6, 5, 4), (7, 6, 4), (8, 1, 4))
    assert pids(batch_processes(processes, [Process(5, 3)], frozenset())) == {5, 6, 7}


def test_a_daemon_whose_pid_is_another_process_now_is_ignored() -> None:
    processes = table((1, 0, 0), (5, 1, 30), (6, 5, 31))
    assert batch_processes(processes, [Process(5, 3)], frozenset()) == frozenset()


def test_an_orphan_of_a_killed_daemon_stays_batch_with_its_new_children() -> None:
    before = frozenset({Process(5, 3), Process(6, 4)})
    processes = table((1, 0, 0), (6, 1, 4), (9, 6, 40), (10, 1, 41))
    assert pids(batch_processes(processes, [Process(5, 3)], before)) == {6, 9}


def test_a_reused_pid_does_not_inherit() -> None:
    before = frozenset({Process(5, 3), Process(6, 4)})
    processes = table((1, 0, 0), (5, 1, 3), (6, 1, 50))
    assert pids(batch_processes(processes, [Process(5, 3)], before)) == {5}


def test_a_process_that_is_older_than_its_parent_is_not_its_child() -> None:
    processes = table((1, 0, 0), (5, 1, 50), (6, 5, 4))
    assert pids(batch_processes(processes, [Process(5, 50)], frozenset())) == {5}


def test_parents_in_a_circle_end() -> None:
    processes = table((5, 6, 3), (6, 5, 3))
    assert pids(batch_processes(processes, [Process(5, 3)], frozenset())) == {5, 6}


@dataclass
class Living:
    pid: int
    parent: int
    start: int
    batch: bool
    own: int = 0
    reaped: int = 0


@dataclass
class Kernel:
    """Processes as Linux keeps them: an orphan goes to init, who waits takes over, a free pid is used again."""

    ticks: int = 100
    batch_ticks: int = 0
    living: dict[int, Living] = field(default_factory=lambda: {1: Living(1, 0, 0, batch=False)})

    def fork(self, parent: Living, *, batch: bool | None = None) -> Living:
        self.ticks += 1
        pid = next(pid for pid in range(2, 1000) if pid not in self.living)
        child = Living(pid, parent.pid, self.ticks, parent.batch if batch is None else batch)
        self.living[pid] = child
        return child

    def burn(self, process: Living, ticks: int) -> None:
        process.own += ticks
        self.batch_ticks += ticks if process.batch else 0

    def exit(self, process: Living) -> None:
        del self.living[process.pid]
        self.living[process.parent].reaped += process.own + process.reaped
        for child in self.living.values():
            child.parent = 1 if child.parent == process.pid else child.parent

    def is_needed(self, process: Living) -> bool:
        is_daemon = process.batch and process.parent == 1
        return is_daemon or any(other.parent == process.pid for other in self.living.values())

    def table(self) -> dict[int, ProcessStat]:
        return {p.pid: ProcessStat(p.pid, p.parent, p.start, p.own, p.reaped) for p in self.living.values()}


STEPS = st.lists(
    st.tuples(st.sampled_from(["fork", "burn", "exit", "look"]), st.integers(0, 20), st.integers(1, 50)), max_size=60
)


@given(STEPS)
def test_batch_is_exact_while_every_parent_outlives_its_children(steps: list[tuple[str, int, int]]) -> None:
    for kernel, _, after, true_ticks in looks(steps, orderly=True):
        assert pids(after.batch) == {process.pid for process in kernel.living.values() if process.batch}
        assert after.used_ticks == true_ticks


@given(STEPS)
def test_whatever_dies_batch_is_what_was_born_below_the_daemon_and_its_use_is_never_negative(
    steps: list[tuple[str, int, int]],
) -> None:
    for kernel, before, after, _ in looks(steps, orderly=False):
        living = {Process(p.pid, p.start): p for p in kernel.living.values()}
        assert before.batch & living.keys() <= after.batch
        assert all(living[process].batch for process in after.batch)
        assert after.used_ticks >= 0


def looks(steps: list[tuple[str, int, int]], *, orderly: bool) -> Iterable[tuple[Kernel, BatchCpu, BatchCpu, int]]:
    """Play the steps; at each look: the kernel, the reading before, the new one, what batch used in between."""
    kernel = Kernel()
    kernel.fork(kernel.living[1])
    daemon = kernel.fork(kernel.living[1], batch=True)
    daemons = [Process(daemon.pid, daemon.start)]
    before = BatchCpu(processes=kernel.table(), batch=batch_processes(kernel.table(), daemons, frozenset()))
    used_before = 0
    for step, index, ticks in [*steps, ("look", 0, 1)]:
        process = list(kernel.living.values())[index % len(kernel.living)]
        if step == "fork":
            kernel.fork(process)
        elif step == "burn":
            kernel.burn(process, ticks)
        elif step == "exit" and process.pid != 1 and not (orderly and kernel.is_needed(process)):
            kernel.exit(process)
        elif step == "look":
            batch = batch_processes(kernel.table(), daemons, before.batch)
            after = next_batch_cpu(before, kernel.table(), batch, elapsed_seconds=1.0)
            yield kernel, before, after, kernel.batch_ticks - used_before
            before, used_before = after, kernel.batch_ticks


def table(*rows: tuple[int, int, int]) -> dict[int, ProcessStat]:
    """Processes by (pid, parent, start)."""
    return {pid: ProcessStat(pid, parent, start, 0, 0) for pid, parent, start in rows}


def pids(processes: Iterable[Process]) -> set[int]:
    return {process.pid for process in processes}
