import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_yarn.model.size import Size
from fallow_yarn.rm.in_force import is_consistent, is_open, is_proven
from fallow_yarn.rm.nodes import Node, State

BIG, SMALL, BUSY, IDLE = Size(8192, 8), Size(2048, 2), Size(1024, 1), Size(0, 0)


def node(name: str, capability: Size, used: Size = BUSY, state: State = State.RUNNING) -> Node:
    return Node(
        node_id=name,
        host=name,
        http_address="",
        state=state,
        capability=capability,
        custom=(),
        used=used,
        containers=int(used.memory_mb > 0),
    )


def possible(**sizes: tuple[Size, ...]) -> dict[str, frozenset[Size]]:
    return {name: frozenset(values) for name, values in sizes.items()}


def test_totals_of_quiet_nodes_prove_them() -> None:
    nodes = [node("a", BIG), node("b", SMALL, used=IDLE)]
    assert is_proven(nodes, possible(a=(BIG,), b=(SMALL,)), Size(10240, 10))


def test_other_totals_prove_nothing() -> None:
    nodes = [node("a", BIG), node("b", SMALL)]
    for total in (None, Size(10240, 9), Size(10239, 10), Size(2048, 2)):
        assert not is_proven(nodes, possible(a=(BIG,), b=(SMALL,)), total)


def test_nodes_that_all_shrink_are_proven_by_the_totals() -> None:
    nodes = [node("a", SMALL), node("b", SMALL)]
    assert is_proven(nodes, possible(a=(BIG, SMALL), b=(BIG, SMALL)), Size(4096, 4))


def test_totals_prove_nothing_if_one_shrinks_by_what_another_grows() -> None:
    nodes = [node("a", SMALL), node("b", BIG)]
    assert not is_proven(nodes, possible(a=(BIG, SMALL), b=(BIG, SMALL)), Size(10240, 10))


def test_a_node_never_seen_in_the_scheduler_is_not_proven() -> None:
    assert not is_proven([node("a", BIG)], {}, BIG)


def test_an_open_node_that_seems_idle_is_not_proven() -> None:
    nodes = [node("a", SMALL, used=IDLE)]
    assert not is_proven(nodes, possible(a=(BIG, SMALL)), SMALL)


def test_a_decommissioning_node_is_always_open() -> None:
    leaving = node("a", BIG, state=State.DECOMMISSIONING)
    assert is_open(leaving, possible(a=(BIG,)))
    assert not is_proven([leaving], possible(a=(BIG,)), BIG)


@pytest.mark.parametrize("state", sorted(set(State) - {State.RUNNING, State.DECOMMISSIONING}))
def test_a_node_that_is_not_in_the_scheduler_does_not_count(state: State) -> None:
    nodes = [node("a", BIG), node("b", SMALL, state=state)]
    assert is_proven(nodes, possible(a=(BIG,)), BIG)
    assert is_consistent(nodes, {}, BIG)


def test_sizes_that_were_read_and_the_others_capabilities_add_up_to_the_totals_or_not() -> None:
    nodes = [node("a", BIG), node("b", SMALL)]
    assert is_consistent(nodes, {"a": SMALL}, Size(4096, 4))
    assert not is_consistent(nodes, {"a": SMALL}, Size(10240, 10))
    assert is_consistent(nodes, {"a": SMALL}, None)


# Few and small amounts, so that sums coincide often.
SIZES = st.builds(Size, st.integers(0, 3), st.integers(0, 2))


@given(st.data(), st.integers(1, 4))
def test_what_the_totals_prove_is_so(data: st.DataObject, count: int) -> None:
    """Each node was sent a row of sizes; its capability is one of them, and the scheduler's that one or an earlier."""
    nodes, sizes, held = [], {}, {}
    for name in (str(number) for number in range(count)):
        row = data.draw(st.lists(SIZES, min_size=1, max_size=3))
        reached = data.draw(st.integers(0, len(row) - 1))
        nodes.append(node(name, row[reached]))
        sizes[name] = frozenset(row)
        held[name] = row[data.draw(st.integers(0, reached))]
    total = Size(sum(size.memory_mb for size in held.values()), sum(size.vcores for size in held.values()))
    if is_proven(nodes, sizes, total):
        assert held == {node.node_id: node.capability for node in nodes}
