import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_yarn.model.size import MIB_BYTES, Size, cpu_milli, memory_bytes, size_within


def test_a_hundred_gib_are_102400_mb_and_back_and_1001_milli_are_one_vcore() -> None:
    size = size_within(cpu_milli=1001, memory_bytes=107374182400, vcore_milli=1000)
    assert size == Size(102400, 1)
    assert memory_bytes(size) == 107374182400
    assert cpu_milli(size, 1000) == 1000


@pytest.mark.parametrize(("milli", "vcores"), [(0, 0), (99, 0), (100, 1), (1999, 19), (2000, 20)])
def test_a_vcore_may_stand_for_less_than_a_core(milli: int, vcores: int) -> None:
    assert size_within(cpu_milli=milli, memory_bytes=0, vcore_milli=100).vcores == vcores


@given(st.integers(0, 1 << 50), st.integers(0, 10**7), st.integers(1, 10**4))
def test_a_size_is_the_largest_that_is_not_above_the_amounts(memory: int, milli: int, vcore_milli: int) -> None:
    size = size_within(cpu_milli=milli, memory_bytes=memory, vcore_milli=vcore_milli)
    assert memory_bytes(size) <= memory < memory_bytes(size) + MIB_BYTES
    assert cpu_milli(size, vcore_milli) <= milli < cpu_milli(size, vcore_milli) + vcore_milli
    back = size_within(cpu_milli=cpu_milli(size, vcore_milli), memory_bytes=memory_bytes(size), vcore_milli=vcore_milli)
    assert back == size
