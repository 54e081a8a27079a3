import pytest

from fallow_yarn.model.container_id import ContainerId, named_in

PLAIN = "container_1700000000000_0012_02_000345"
EPOCH = "container_e17_1410901177871_0001_01_000005"


def test_an_id_says_which_application_attempt_and_number_it_is() -> None:
    found = ContainerId.parse(PLAIN)
    assert found is not None
    assert (found.application_id, found.cluster_timestamp) == ("application_1700000000000_0012", 1700000000000)
    assert (found.application, found.attempt, found.epoch, found.number) == (12, 2, 0, 345)
    assert not found.is_first


def test_an_epoch_is_no_part_of_the_application() -> None:
    found = ContainerId.parse(EPOCH)
    assert found is not None
    assert (found.application_id, found.epoch, found.number) == ("application_1410901177871_0001", 17, 5)


def test_numbers_grow_longer_than_they_are_padded_to() -> None:
    found = ContainerId.parse("container_1700000000000_12345_101_1234567")
    assert found is not None
    assert (found.application_id, found.attempt, found.number) == ("application_1700000000000_12345", 101, 1234567)
    first = ContainerId.parse("container_1700000000000_0001_03_000001")
    assert first is not None
    assert first.is_first


@pytest.mark.parametrize(
    "text",
    [
        "",
        "container_",
        PLAIN + " ",
        PLAIN + "\n",
        "x" + PLAIN,
        "container_1700000000000_1_02_000345",
        "container_1700000000000_0012_2_000345",
        "container_1700000000000_0012_02_345",
        "container_e1_1700000000000_0012_02_000345",
        "container_1700000000000_9999999999_02_000345",
        "container_1700000000000_0012_02_99999999999999",
        "application_1700000000000_0012",
        "container_1700000000000_0012_02_00034\u0665",
    ],
)
def test_what_is_no_id_is_none(text: str) -> None:
    assert ContainerId.parse(text) is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (f"/local/{PLAIN}/x.sh", {PLAIN}),
        (f"{PLAIN}", {PLAIN}),
        (f"a\0{PLAIN}\0{EPOCH}", {PLAIN, EPOCH}),
        (f"cgroups=/sys/fs/cgroup/{PLAIN}/tasks%/x/{PLAIN}/tasks", {PLAIN}),
        (f"{PLAIN}.pid", {PLAIN}),
        (f"x{PLAIN}", set()),
        (f"{PLAIN}x", set()),
        (f"{PLAIN}-1", set()),
        (f"my_{PLAIN}", set()),
        ("container_e", set()),
        ("", set()),
    ],
)
def test_ids_are_found_as_words_of_their_own(raw: str, expected: set[str]) -> None:
    assert named_in(raw.encode()) == expected
