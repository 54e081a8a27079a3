from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from fallow_core.ledger.cross_resource import Need, cut
from fallow_core.ledger.sharing import Claim

EVERYTHING = None


def need(
    allocated: int, next_up: int, *, demand: int | None = EVERYTHING, spare: int = 0, weight: int = 1, floor: int = 0
) -> Need:
    claim = Claim(weight=weight, allocated=allocated, demand=demand, limit=None, floor=floor, unit=1)
    return Need(claim=claim, next_up=next_up, spare=spare)


def demands(batches: tuple[int, int], *accounts: tuple[Need, Need]) -> list[tuple[int | None, int | None]]:
    """(CPU, memory) of each account."""
    claims, _ = cut(batches, [[cpu for cpu, _ in accounts], [memory for _, memory in accounts]])
    return [(cpu.demand, memory.demand) for cpu, memory in zip(*claims, strict=True)]


def test_memory_that_cannot_be_used_for_want_of_cpu_is_not_wanted() -> None:
    cpu_heavy = need(0, 200), need(0, 200)
    memory_heavy = need(0, 10), need(0, 1000)
    assert demands((100, 1000), cpu_heavy, memory_heavy) == [(EVERYTHING, 95), (10, EVERYTHING)]


def test_an_account_that_is_alone_is_cut_to_what_it_can_use() -> None:
    assert demands((10, 1000), (need(4, 20), need(4, 20))) == [(EVERYTHING, 10)]


def test_a_part_of_a_task_is_of_no_use_so_a_whole_one_is_spared() -> None:
    assert demands((10, 1000), (need(4, 20, spare=2), need(40, 200, spare=20))) == [(EVERYTHING, 120)]


def test_an_account_above_its_fair_share_of_one_resource_adds_nothing_of_the_other() -> None:
    over, other = (need(10, 10), need(900, 900)), (need(10, 10), need(100, 100))
    assert demands((100, 1000), over, other)[0] == (10, EVERYTHING)


def test_nothing_is_cut_where_nothing_is_known_of_the_next_task() -> None:
    assert demands((100, 1000), (need(0, 0), need(0, 0)), (need(50, 50), need(100, 100)))[0] == (EVERYTHING, EVERYTHING)


def test_a_task_that_needs_one_resource_alone_runs_out_of_that_one() -> None:
    assert demands((100, 1000), (need(0, 50), need(0, 0))) == [(EVERYTHING, 0)]


def test_a_cut_never_raises_a_demand() -> None:
    assert demands((100, 10), (need(0, 5, demand=5), need(0, 100, demand=100)))[0] == (1, 100)
    assert demands((100, 200), (need(0, 5, demand=5), need(0, 100, demand=100)))[0] == (5, 100)


needs = st.builds(
    need,
    st.integers(0, 50),
    st.integers(0, 200),
    demand=st.none() | st.integers(0, 300).map(lambda more: 50 + more),
    spare=st.integers(0, 20),
    weight=st.integers(1, 3),
    floor=st.integers(0, 10),
)
accounts = st.lists(st.tuples(needs, needs), min_size=1, max_size=4)


@given(st.tuples(st.integers(0, 400), st.integers(0, 400)), accounts)
def test_one_resource_of_each_account_is_never_cut_and_none_below_what_is_allocated(
    batches: tuple[int, int], accounts: list[tuple[Need, Need]]
) -> None:
    for (cpu, memory), found in zip(accounts, demands(batches, *accounts), strict=True):
        wanted = cpu.claim.demand, memory.claim.demand
        assert found[0] == wanted[0] or found[1] == wanted[1]
        for need, demand in zip((cpu, memory), found, strict=True):
            assert demand is None or demand >= need.claim.allocated


@given(st.tuples(st.integers(0, 400), st.integers(0, 400)), accounts)
def test_what_accounts_can_use_does_not_depend_on_their_order(
    batches: tuple[int, int], accounts: list[tuple[Need, Need]]
) -> None:
    found = demands(batches, *accounts)
    for order in permutations(range(len(accounts))):
        assert demands(batches, *(accounts[i] for i in order)) == [found[i] for i in order]
