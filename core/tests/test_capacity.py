import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.ledger.capacity import BatchCapacity, batch_capacity
from fallow_core.model.policy import ResourcePolicy
from fallow_core.model.sample import Usage

GIB = 1 << 30


def lent(
    capacity: int, used: int, *, batch_used: int = 0, watermark: int = 100, reserved: int = 0, cap: int = 100
) -> int:
    usage = Usage(measured_at=0, capacity=capacity, used=used, batch_used=batch_used)
    policy = ResourcePolicy(watermark_percent=watermark, reserved=reserved, cap_percent=cap)
    return batch_capacity(usage, policy).batch


def test_what_is_lent_is_what_neither_margin_nor_other_use_needs() -> None:
    assert lent(100, 20, watermark=60) == 40


def test_the_cap_counts_where_the_formula_says_more() -> None:
    assert lent(100_000, 5_000, watermark=60, cap=40) == 40_000


def test_a_percentage_is_the_same_for_memory_as_for_cpu() -> None:
    assert lent(64 * GIB, 30 * GIB, watermark=90) == int(27.6 * GIB)


@pytest.mark.parametrize(
    ("capacity", "watermark", "batch"), [(107_374_182, 65, 69_793_218), (333, 100, 333), (999, 33, 329)]
)
def test_whole_units_are_lent_rounded_down(capacity: int, watermark: int, batch: int) -> None:
    assert lent(capacity, 0, watermark=watermark) == batch


def test_what_batch_itself_uses_does_not_lower_the_offer() -> None:
    assert lent(10, 6, batch_used=6, watermark=60) == lent(10, 0, watermark=60) == 6


def test_the_reservation_counts_until_more_is_used() -> None:
    assert lent(10, 1, reserved=3) == 7
    assert lent(10, 4, reserved=3) == 6


def test_more_use_than_there_is_lends_nothing() -> None:
    assert lent(10, 12) == 0


def test_batch_use_above_all_use_is_no_gain() -> None:
    assert lent(10, 2, batch_used=5) == 10


@given(
    st.builds(
        Usage,
        measured_at=st.just(0.0),
        capacity=st.integers(1, 10**12),
        used=st.integers(0, 10**12),
        batch_used=st.integers(0, 10**12),
    ),
    st.builds(
        ResourcePolicy,
        watermark_percent=st.integers(0, 100),
        reserved=st.integers(0, 10**12),
        cap_percent=st.integers(0, 100),
    ),
)
def test_batch_recomputes_from_what_is_shown(usage: Usage, policy: ResourcePolicy) -> None:
    shown: BatchCapacity = batch_capacity(usage, policy)
    assert shown.margin * 100 >= shown.capacity * (100 - shown.watermark_percent)
    assert shown.system == max(shown.used - shown.batch_used, shown.reserved)
    assert shown.cap * 100 <= usage.capacity * policy.cap_percent
    assert shown.batch == max(0, min(shown.capacity - shown.margin - shown.system, shown.cap))
