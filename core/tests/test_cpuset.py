from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.model.qos_policy import Placing
from fallow_core.qos.cpuset import DEAD_BAND_MILLI, Cpu, choose, cpu_count

SPREAD, PACKED = Placing.SPREAD, Placing.PACKED


def node(zones: int, cores: int, threads: int) -> tuple[Cpu, ...]:
    """A node with so many cores a zone; the second threads have numbers above all first ones, as Linux counts them."""
    total = zones * cores
    return tuple(
        Cpu(number=thread * total + core, core=core, zone=core // cores)
        for thread in range(threads)
        for core in range(total)
    )


BIG = node(2, 4, 2)
ALL = frozenset(cpu.number for cpu in BIG)


def chosen(
    count: int, *, within: frozenset[int] = ALL, exclusive: Sequence[int] = (), placing: Placing = PACKED
) -> list[int]:
    return sorted(choose(BIG, count, within=within, exclusive=exclusive, placing=placing))


def test_whole_cores_come_first() -> None:
    assert chosen(2) == [7, 15]
    assert chosen(3) == [6, 7, 15] or chosen(3) == [7, 14, 15]


def test_packed_stays_in_one_zone_and_spread_takes_each_in_turn() -> None:
    assert chosen(8) == [4, 5, 6, 7, 12, 13, 14, 15]
    assert chosen(4, placing=SPREAD) == [3, 7, 11, 15]


def test_cpu_0_comes_last() -> None:
    assert 0 not in chosen(14)
    assert chosen(16) == sorted(ALL)


def test_the_sibling_of_a_cpu_that_somebody_has_alone_comes_last() -> None:
    assert 15 not in chosen(14, exclusive=[7])
    assert 15 in chosen(15, exclusive=[7])
    assert 7 not in chosen(16, exclusive=[7])


def test_eight_cpus_of_which_four_are_owned_leave_batch_the_other_four() -> None:
    cpus = node(1, 8, 1)
    all_eight = frozenset(range(8))
    assert choose(cpus, 5, within=all_eight, exclusive={0, 1, 2, 3}, placing=PACKED) == {4, 5, 6, 7}


def test_where_every_cpu_is_owned_batch_gets_what_it_needs_all_the_same() -> None:
    cpus = node(1, 4, 1)
    assert len(choose(cpus, 1, within=frozenset(range(4)), exclusive=range(4), placing=SPREAD)) == 1


def test_no_cpu_is_outside_of_what_a_group_may_have() -> None:
    assert chosen(16, within=frozenset({2, 3})) == [2, 3]


@pytest.mark.parametrize(
    ("limit", "before", "count"),
    [
        (10, None, 1),
        (1000, None, 1),
        (1001, None, 2),
        (4000, 4, 4),
        (2999, 4, 4),
        (3000 - DEAD_BAND_MILLI, 4, 3),
        (1000, 4, 1),
    ],
)
def test_a_little_noise_takes_no_cpu_away(limit: int, before: int | None, count: int) -> None:
    assert cpu_count(limit, before) == count


NODES = st.builds(node, st.integers(1, 3), st.integers(1, 5), st.integers(1, 2))


@given(data=st.data(), cpus=NODES, placing=st.sampled_from([SPREAD, PACKED]))
def test_a_set_is_never_empty_never_foreign_and_grows_and_shrinks_by_itself(
    data: st.DataObject, cpus: tuple[Cpu, ...], placing: Placing
) -> None:
    numbers = [cpu.number for cpu in cpus]
    within = data.draw(st.frozensets(st.sampled_from(numbers), min_size=1))
    barred = data.draw(st.frozensets(st.sampled_from(numbers)))
    free = within - barred or within
    before: frozenset[int] = frozenset()
    for count in range(len(numbers) + 2):
        found = choose(cpus, count, within=within, exclusive=barred, placing=placing)
        assert found <= free
        assert len(found) == min(max(count, 1), len(free))
        assert before <= found
        before = found
        parts = {cpu.core for cpu in cpus if cpu.number in found}
        split = [c for c in parts if not {cpu.number for cpu in cpus if cpu.core == c and cpu.number in free} <= found]
        assert len(split) <= 1


@given(cpus=NODES, count=st.integers(1, 30))
def test_spread_takes_of_each_zone_alike_and_packed_of_as_few_as_will_do(cpus: tuple[Cpu, ...], count: int) -> None:
    threads = len(cpus) // len({cpu.core for cpu in cpus})
    zones = {cpu.zone for cpu in cpus}
    usable = [cpu for cpu in cpus if cpu.core != 0]
    count = min(count, len(usable))
    within = frozenset(cpu.number for cpu in usable)
    if not usable:
        return
    spread = choose(cpus, count, within=within, exclusive=(), placing=SPREAD)
    sizes = {zone: sum(cpu.zone == zone for cpu in usable) for zone in zones}
    taken = {zone: sum(cpu.zone == zone and cpu.number in spread for cpu in usable) for zone in zones}
    for zone in zones:
        for other in zones:
            assert taken[zone] == sizes[zone] or taken[zone] >= taken[other] - threads
    packed = choose(cpus, count, within=within, exclusive=(), placing=PACKED)
    assert len({cpu.zone for cpu in usable if cpu.number in packed}) <= -(-count // min(filter(None, sizes.values())))
