"""How many sizes found first are kept of rows that are gone."""

from pathlib import Path

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.planner.memory import MOST_GONE, Change, Memory, Original, Sending, change_of
from fallow_core.state import publish_journal
from fallow_hookspecs import NodeState, Resources

SIZE = Resources(cpu_milli=8000, memory_bytes=1 << 33)
UNIT = Resources(cpu_milli=1000, memory_bytes=1 << 20)
STARTS = 20_000


def key(number: int, node: str = "n1", cluster: str = "yarn/etl") -> RowKey:
    return RowKey(node, cluster, f"{node}:{number}")


def sending(row: RowKey) -> Sending:
    seen = Row(key=row, state=NodeState.RUNNING, unit=UNIT, floor=UNIT, allocated=UNIT, measured_at=0.0, in_force=SIZE)
    return Sending(row=seen, due=DueOffer(key=row, size=UNIT, urgent=False, why=""), started=row.framework_node)


def shrunk(memory: Memory, row: RowKey, *named: RowKey) -> Change:
    """What is remembered when a row is sent its first size, while its cluster names these rows besides."""
    there = {row, *named}
    return change_of(memory, {}, (), [sending(row)], 0.0, lends=True, is_gone=lambda each: each not in there)


def after_starts(memory: Memory, starts: int) -> None:
    """A NodeManager without a fixed port starts so often, and each time it is sent a size."""
    for number in range(starts):
        memory.apply(shrunk(memory, key(number)))


def test_however_often_a_node_manager_starts_the_journal_stays_small(tmp_path: Path) -> None:
    memory = Memory()
    after_starts(memory, STARTS)
    assert list(memory.originals) == [key(number) for number in range(STARTS - MOST_GONE - 1, STARTS)]
    memory.in_flight.clear()  # what a report settles
    memory.refreshed.clear()  # and what goes with the row
    journal = publish_journal.load(tmp_path)
    journal.write(Change(originals=dict(memory.originals)))
    assert journal.path.stat().st_size < 4000


def test_the_size_found_first_is_kept_while_the_row_is_named_or_its_cluster_says_nothing() -> None:
    memory = Memory(originals={key(number): Original(size=SIZE) for number in range(100)})
    memory.apply(shrunk(memory, key(1000), *(key(number) for number in range(100))))
    assert len(memory.originals) == 101
    silent = change_of(memory, {}, (), [sending(key(1001))], 0.0, lends=True, is_gone=lambda _: False)
    assert None not in silent.originals.values()


def test_rows_of_other_nodes_and_clusters_are_not_counted() -> None:
    others = [key(number, node, cluster) for number in range(10) for node in "ab" for cluster in ("yarn/x", "yarn/y")]
    memory = Memory(originals={each: Original(size=SIZE) for each in others})
    memory.apply(shrunk(memory, key(0, "a", "yarn/x")))
    after_starts(memory, MOST_GONE + 5)
    assert set(others) <= memory.originals.keys()


def test_a_node_that_is_lost_and_comes_back_has_its_size() -> None:
    memory = Memory()
    memory.apply(shrunk(memory, key(1)))
    for number in range(2, 2 + MOST_GONE):
        memory.apply(shrunk(memory, key(number)))
    assert memory.originals[key(1)] == Original(size=SIZE, started="n1:1")


def test_a_change_that_finds_no_new_size_forgets_none() -> None:
    memory = Memory(originals={key(number): Original(size=SIZE, started=f"n1:{number}") for number in range(100)})
    assert shrunk(memory, key(1)).originals == {}
