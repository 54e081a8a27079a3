from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.largest_node import Kept, keep_largest
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import KeepLargest
from fallow_hookspecs import NodeState, Resources

TASK = Resources(4, 40)


def key(name: str) -> RowKey:
    return RowKey(name, "yarn/a", name)


def row(name: str, cpu: int, memory: int, state: NodeState = NodeState.RUNNING) -> Row:
    return Row(
        key=key(name),
        state=state,
        unit=Resources(1, 1),
        floor=Resources(0, 0),
        allocated=Resources(0, 0),
        measured_at=0,
        in_force=Resources(cpu, memory),
    )


def due(name: str, cpu: int, memory: int, *, take_back: bool = False) -> DueOffer:
    taken = {"memory": 60} if take_back else {}
    return DueOffer(key=key(name), size=Resources(cpu, memory), urgent=True, why="", take_back=taken)  # type: ignore[arg-type]


def rows(*found: Row) -> dict[RowKey, Row]:
    return {each.key: each for each in found}


ALL = (row("n1", 8, 80), row("n2", 8, 80), row("n3", 2, 20))
ROWS = rows(*ALL)
FALLS = (due("n1", 8, 30), due("n2", 2, 20))


def test_nothing_is_said_while_another_node_is_large_enough() -> None:
    assert keep_largest(FALLS[:1], ROWS, TASK, KeepLargest.KEEP) == Kept(due=FALLS[:1])
    assert keep_largest(FALLS, rows(*ALL, row("n4", 4, 40)), TASK, KeepLargest.KEEP) == Kept(due=FALLS)


def test_a_node_elsewhere_that_is_large_enough_lets_all_here_shrink() -> None:
    assert keep_largest(FALLS, ROWS, TASK, KeepLargest.KEEP, Resources(4, 40)) == Kept(due=FALLS)
    assert keep_largest(FALLS, ROWS, TASK, KeepLargest.KEEP, Resources(8, 39)).warning


def test_a_node_that_is_gone_is_not_large() -> None:
    assert keep_largest(FALLS, rows(*ALL, row("n4", 4, 40, NodeState.GONE)), TASK, KeepLargest.WARN).warning


def test_before_no_node_is_as_large_as_the_largest_task_that_is_said() -> None:
    kept = keep_largest(FALLS, ROWS, TASK, KeepLargest.WARN)
    assert kept.due == FALLS
    assert kept.warning == "no node is as large as the largest task (4 milli-cores and 40 bytes) any more"


def test_a_node_must_be_large_enough_in_both_resources() -> None:
    assert keep_largest([due("n1", 8, 30), due("n2", 3, 80)], ROWS, TASK, KeepLargest.WARN).warning


def test_the_node_that_is_held_is_the_one_that_misses_least() -> None:
    kept = keep_largest(FALLS, ROWS, TASK, KeepLargest.KEEP)
    assert [(d.key.node, d.size) for d in kept.due] == [("n1", Resources(8, 40)), ("n2", Resources(2, 20))]
    assert "n1 is held at 8 milli-cores and 40 bytes" in kept.warning


def test_a_node_that_is_as_large_as_the_task_now_is_not_sent_its_size_again() -> None:
    kept = keep_largest([due("n1", 1, 10)], rows(row("n1", 4, 40)), TASK, KeepLargest.KEEP)
    assert kept.due == ()
    assert kept.warning


def test_what_is_taken_back_is_not_held() -> None:
    falls = [due("n1", 8, 30, take_back=True), due("n2", 2, 20)]
    held = keep_largest(falls, ROWS, TASK, KeepLargest.KEEP)
    assert [(d.key.node, d.size) for d in held.due] == [("n2", Resources(4, 40)), ("n1", Resources(8, 30))]
    only = [due("n1", 8, 30, take_back=True)]
    assert keep_largest(only, rows(ALL[0]), TASK, KeepLargest.KEEP).due == tuple(only)


def test_where_no_node_was_large_enough_there_is_nothing_to_keep() -> None:
    assert keep_largest(FALLS, ROWS, Resources(9, 40), KeepLargest.KEEP) == Kept(due=FALLS)
