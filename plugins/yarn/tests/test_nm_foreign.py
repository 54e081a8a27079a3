from fallow_hookspecs import Process
from fallow_yarn.nm.foreign import STARTED_TICKS, Foreign
from fallow_yarn.nm.procfs import TURNS

NOW_TICKS = 10 * STARTED_TICKS
OLD, YOUNG = Process(10, 1), Process(10, NOW_TICKS - STARTED_TICKS + 1)


def foreign() -> Foreign:
    return Foreign(lambda: NOW_TICKS)


def examined(seen: Foreign, searches: int, process: Process = OLD, node_id: str = "worker-1:45454") -> list[int]:
    """The searches in which a process was examined, and found to be foreign."""
    found = []
    for number in range(searches):
        seen.start([process], [node_id])
        if not seen.passes_over(process):
            seen.note(process)
            found.append(number)
    return found


def test_a_node_manager_of_another_cluster_is_examined_once_in_some_searches() -> None:
    assert examined(foreign(), 2 * TURNS + 1) == [0, TURNS, 2 * TURNS]


def test_one_that_starts_is_examined_each_time() -> None:
    assert examined(foreign(), 3, YOUNG) == [0, 1, 2]


def test_for_other_nodes_it_is_examined_at_once() -> None:
    seen = foreign()
    examined(seen, 5)
    assert examined(seen, 2, node_id="worker-1:8041") == [0]


def test_an_ended_process_leaves_nothing() -> None:
    seen = foreign()
    examined(seen, 5)
    seen.start([], ["worker-1:45454"])
    assert seen._left == {}
