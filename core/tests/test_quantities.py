from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.model import quantities
from fallow_core.model.policy import Limit


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("500m", 500),
        ("2", 2000),
        (2, 2000),
        ("0.5", 500),
        (0.5, 500),
        (0.29, 290),
        ("0.001", 1),
        ("1500m", 1500),
        (0, 0),
    ],
)
def test_cpu_in_milli_cores(text: object, milli: int) -> None:
    assert quantities.cpu_milli(text) == milli


@pytest.mark.parametrize(
    "text", ["0.3333", "0.5m", "-1", -1, "2 cores", "", None, True, "1e3", float("nan"), 1e30, [2], "٣"]
)
def test_cpu_that_is_no_whole_number_of_milli_cores_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="500m"):
        quantities.cpu_milli(text)


@given(st.integers(0, 10**9))
def test_no_milli_core_is_lost_in_a_decimal_fraction(milli: int) -> None:
    assert quantities.cpu_milli(f"{milli // 1000}.{milli % 1000:03d}") == milli
    assert quantities.cpu_milli(float(Fraction(milli, 1000))) == milli


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512Mi", 512 << 20),
        ("4GiB", 4 << 30),
        ("4 GiB", 4 << 30),
        ("1.5Gi", 3 << 29),
        ("1000000000", 10**9),
        (1000000000, 10**9),
        ("2G", 2 * 10**9),
        ("2GB", 2 * 10**9),
        ("1k", 1000),
        ("1Ki", 1024),
        ("3P", 3 * 10**15),
    ],
)
def test_memory_in_bytes(text: object, size: int) -> None:
    assert quantities.memory_bytes(text) == size


@pytest.mark.parametrize("text", ["100m", "0.1Ki", "4gib", "-1Gi", "1.5", 1.5, "4iB", "GiB", True, None])
def test_memory_that_is_no_whole_number_of_bytes_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="512Mi"):
        quantities.memory_bytes(text)


@pytest.mark.parametrize(("text", "share"), [(95, 95), ("95", 95), ("95%", 95), (0, 0), ("100%", 100)])
def test_percent(text: object, share: int) -> None:
    assert quantities.percent(text) == share


@pytest.mark.parametrize("text", [0.29, "0.29", 250, "250%", -1, "-1%", 95.0, True, None, "95 %", "half"])
def test_a_share_that_is_no_whole_percent_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="from 0 to 100"):
        quantities.percent(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("20s", 20.0), ("5m", 300.0), ("1h", 3600.0), ("1h30m", 5400.0), ("0s", 0.0)]
)
def test_duration_in_seconds(text: str, seconds: float) -> None:
    assert quantities.duration_seconds(text) == seconds


@pytest.mark.parametrize("text", [5, 5.0, "5", "5 s", "-5s", "1.5s", "30m1h", "5d", "", None, True])
def test_a_duration_without_a_unit_or_with_an_odd_one_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="500ms, 20s, 5m"):
        quantities.duration_seconds(text)


def test_a_limit_is_an_amount_or_a_share() -> None:
    assert quantities.cpu_limit("80%") == Limit(percent=80)
    assert quantities.cpu_limit(80) == Limit(amount=80_000)
    assert quantities.memory_limit("100GiB") == Limit(amount=100 << 30)


@pytest.mark.parametrize("text", ["101%", "0.5%", "lots"])
def test_a_limit_beyond_the_whole_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="%"):
        quantities.cpu_limit(text)


@pytest.mark.parametrize("text", ["999999999999999P", "1153P", "9" * 400, 1 << 70])
def test_more_bytes_than_any_host_has_are_refused(text: object) -> None:
    with pytest.raises(ValueError, match="512Mi"):
        quantities.memory_bytes(text)


@pytest.mark.parametrize("text", ["1152P", "999999999999999"])
def test_what_fits_is_accepted(text: str) -> None:
    assert 0 < quantities.memory_bytes(text) <= quantities.LARGEST
