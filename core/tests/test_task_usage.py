from fallow_core.model.task import TaskKey
from fallow_core.node.procfs import ProcessStat
from fallow_core.node.task_usage import BatchPass, owners, unattributed, usages
from fallow_hookspecs import Process, Resources

ONE, TWO = TaskKey("yarn/etl", "one"), TaskKey("yarn/etl", "two")


def table(*rows: tuple[int, int, int]) -> dict[int, ProcessStat]:
    """Processes as (pid, parent pid, start ticks)."""
    return {
        pid: ProcessStat(pid=pid, parent_pid=parent, start_ticks=start, own_ticks=0, reaped_ticks=0)
        for pid, parent, start in rows
    }


def leaders(**of: tuple[int, int]) -> dict[TaskKey, tuple[Process, ...]]:
    return {TaskKey("yarn/etl", name): (Process(*process),) for name, process in of.items()}


def test_all_that_runs_below_a_leader_belongs_to_its_task() -> None:
    found = owners(
        table((10, 1, 1), (11, 10, 2), (12, 11, 3), (20, 1, 1), (5, 1, 1)), leaders(one=(10, 1), two=(20, 1)), {}
    )
    assert found == {Process(10, 1): ONE, Process(11, 2): ONE, Process(12, 3): ONE, Process(20, 1): TWO}


def test_the_nearest_leader_counts_where_one_task_runs_below_another() -> None:
    found = owners(table((10, 1, 1), (11, 10, 2), (12, 11, 3)), leaders(one=(10, 1), two=(11, 2)), {})
    assert found[Process(12, 3)] == TWO


def test_a_process_stays_with_its_task_when_its_parent_has_ended() -> None:
    before = {Process(12, 3): ONE}
    found = owners(table((10, 1, 1), (12, 1, 3), (13, 12, 4)), leaders(one=(10, 1)), before)
    assert found == {Process(10, 1): ONE, Process(12, 3): ONE, Process(13, 4): ONE}


def test_a_pid_that_is_anothers_now_belongs_to_nobody() -> None:
    assert owners(table((10, 1, 9), (12, 1, 9)), leaders(one=(10, 1)), {Process(12, 3): ONE}) == {}


def test_a_task_that_is_no_longer_listed_owns_nothing() -> None:
    assert owners(table((12, 1, 3)), leaders(two=(20, 1)), {Process(12, 3): ONE}) == {}


def test_usage_is_the_sum_over_the_processes_that_live() -> None:
    seen = BatchPass(
        at=7.0,
        processes=table((10, 1, 1), (11, 10, 2)),
        cpu_milli={Process(10, 1): 250.4, Process(11, 2): 500.0, Process(99, 1): 1000.0},
        memory_bytes={Process(10, 1): 100, Process(11, 2): 20},
    )
    used = usages(seen, {Process(10, 1): ONE, Process(11, 2): ONE, Process(99, 1): TWO})
    assert set(used) == {ONE}
    assert (used[ONE].cpu_milli, used[ONE].memory_bytes, used[ONE].measured_at) == (750, 120, 7.0)


def test_what_belongs_to_no_task_and_is_no_daemon_is_attributed_to_nobody() -> None:
    seen = BatchPass(
        at=7.0,
        cpu_milli={Process(5, 1): 80.0, Process(10, 1): 250.0, Process(12, 3): 30.5, Process(13, 3): 1.0},
        memory_bytes={Process(5, 1): 1000, Process(10, 1): 200, Process(12, 3): 30, Process(14, 3): 4},
    )
    assert unattributed(seen, {Process(10, 1): ONE}, [Process(5, 1)]) == Resources(32, 34)
