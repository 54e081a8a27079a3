from fallow_hookspecs import Process
from fallow_yarn.nm.foreign import Foreign
from fallow_yarn.nm.procfs import TURNS

ONE, OTHER = Process(10, 1), Process(10, 2)


def examined(foreign: Foreign, searches: int, process: Process = ONE, node_id: str = "worker-1:45454") -> list[int]:
    """The searches in which a process was examined, and found to be foreign."""
    found = []
    for number in range(searches):
        foreign.start([process], [node_id])
        if not foreign.passes_over(process):
            foreign.note(process)
            found.append(number)
    return found


def test_a_node_manager_of_another_cluster_is_examined_ever_more_rarely_and_never_forgotten() -> None:
    found = examined(Foreign(), 10 * TURNS)
    assert found[:4] == [0, 2, 6, 14]
    assert found[-1] - found[-2] == TURNS


def test_another_process_and_other_nodes_are_examined_at_once() -> None:
    foreign = Foreign()
    examined(foreign, 5)
    assert examined(foreign, 1, OTHER) == [0]
    examined(foreign, 5, OTHER)
    assert examined(foreign, 1, OTHER, "worker-1:8041") == [0]


def test_an_ended_process_leaves_nothing() -> None:
    foreign = Foreign()
    examined(foreign, 5)
    foreign.start([], ["worker-1:45454"])
    assert foreign._pauses == {}
