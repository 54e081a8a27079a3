import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fallow_core.errors import StateError
from fallow_core.state.node_grant import (
    LONGEST_SECONDS,
    SKEW_SECONDS,
    AccountGrant,
    GrantFile,
    NodeGrant,
    decoded,
    encoded,
)

RESTORED = frozenset({"alpha/b"})
WALL = 1_000_000.0
ACCOUNT = AccountGrant(allocated=8, target=4, floor=1, may_pay=2)
ROW = NodeGrant(node="n1", written_at=WALL, lasts_seconds=15.0, to_take_back=4, accounts={"alpha/a": ACCOUNT})


def put(path: Path, row: NodeGrant = ROW) -> None:
    """Another file in its place, as a writer does it."""
    part = path.with_suffix(".part")
    part.write_text(encoded(row))
    part.replace(path)


@pytest.fixture
def file(tmp_path: Path) -> GrantFile:
    path = tmp_path / "row.json"
    put(path)
    return GrantFile(path, "n1")


def test_a_row_survives_writing_and_reading() -> None:
    for row in (ROW, replace(ROW, restored=tuple(RESTORED))):
        assert decoded(encoded(row).encode(), "n1") == row


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": 2}, "its version is 2, expected 1"),
        ({"node": "n2"}, "it is of the node 'n2'"),
        ({"node": 7}, "node is 7, expected a str"),
        ({"restored": "alpha/b"}, "restored is 'alpha/b', expected a list"),
        ({"restored": [7]}, "restored is 7, expected a str"),
        ({"written_at": "now"}, "written_at is 'now'"),
        ({"written_at": float("nan")}, "written_at is nan"),
        ({"lasts_seconds": -1}, "lasts_seconds is -1"),
        ({"lasts_seconds": True}, "lasts_seconds is True"),
        ({"to_take_back": -1}, "to_take_back is -1"),
        ({"to_take_back": 1.5}, "to_take_back is 1.5"),
        ({"to_take_back": 1 << 61}, "expected a number of bytes"),
        ({"accounts": []}, "accounts is [], expected a dict"),
        ({"accounts": {"alpha/a": 1}}, "alpha/a is 1"),
        ({"accounts": {"alpha/a": {}}}, "it lacks 'allocated'"),
        ({"accounts": {"alpha/a": {"allocated": 1, "target": 1, "floor": 1, "may_pay": 1, "stopped": 1}}}, "stopped"),
    ],
)
def test_what_is_no_row_is_refused_and_says_why(change: dict[str, Any], why: str) -> None:
    with pytest.raises(StateError) as caught:
        decoded(json.dumps(json.loads(encoded(ROW)) | change).encode(), "n1")
    assert why in str(caught.value)


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"{", b"[" * 100_000, b"null", b"3", encoded(ROW).encode()[:-1]])
def test_garbage_and_half_a_file_are_no_row(text: bytes, file: GrantFile) -> None:
    file.path.write_bytes(text)
    assert file.row(0.0, WALL) is None
    assert str(file.path) in file.why


def test_a_row_counts_until_it_expires(file: GrantFile) -> None:
    assert file.row(100.0, WALL + 1) == ROW
    assert file.why == ""
    assert file.row(113.9, WALL + 14.9) == ROW
    assert file.row(114.0, WALL + 15) is None
    assert "it expired 0 s ago" in file.why


def test_no_row_lasts_longer_than_a_minute_whatever_it_says(file: GrantFile) -> None:
    put(file.path, NodeGrant(node="n1", written_at=WALL, lasts_seconds=1e9, to_take_back=0, accounts={}))
    assert file.row(0.0, WALL) is not None
    assert file.row(0.0, WALL + LONGEST_SECONDS) is None


def test_a_row_expires_although_the_clock_on_the_wall_was_set_back(file: GrantFile) -> None:
    assert file.row(0.0, WALL + 10) == ROW
    assert file.row(15.0, WALL - 1) is None


def test_a_row_expires_when_the_clock_on_the_wall_jumps_ahead(file: GrantFile) -> None:
    assert file.row(0.0, WALL) == ROW
    assert file.row(0.1, WALL + 3600) is None


def test_a_row_from_the_future_is_none(file: GrantFile) -> None:
    assert file.row(0.0, WALL - SKEW_SECONDS) == ROW
    assert file.row(0.0, WALL - SKEW_SECONDS - 1) is None
    assert "from the future" in file.why


def test_a_row_by_which_tasks_were_ended_does_not_count_again(file: GrantFile) -> None:
    assert file.row(0.0, WALL) == ROW
    file.spend()
    assert file.row(0.0, WALL) is None
    put(file.path)
    assert file.row(0.1, WALL) is None  # the same row, written again
    newer = NodeGrant(node="n1", written_at=WALL + 1, lasts_seconds=15.0, to_take_back=2, accounts={})
    put(file.path, newer)
    assert file.row(0.2, WALL + 1) == newer


def test_a_file_that_goes_and_comes_back_is_seen(file: GrantFile) -> None:
    assert file.row(0.0, WALL) == ROW
    file.path.unlink()
    assert file.row(0.0, WALL) is None
    assert "No such file" in file.why
    put(file.path)
    assert file.row(0.0, WALL) == ROW


def test_what_is_restored_counts_until_a_newer_row_says_otherwise(file: GrantFile, tmp_path: Path) -> None:
    assert file.restored == frozenset()
    put(file.path, replace(ROW, restored=tuple(RESTORED)))
    for path in (file.path, tmp_path / "missing"):
        file.path = path
        assert (file.row(0.0, WALL + 3600), file.restored) == (None, RESTORED)
    file.path = tmp_path / "wrong.json"
    file.path.write_text("{")
    assert (file.row(0.0, WALL), file.restored) == (None, RESTORED)
    put(file.path)
    file.row(0.0, WALL)
    assert file.restored == frozenset()


def test_a_file_that_may_not_be_read_is_no_row(tmp_path: Path) -> None:
    (tmp_path / "row.json").mkdir()
    file = GrantFile(tmp_path / "row.json", "n1")
    assert file.row(0.0, WALL) is None
    assert os.strerror(21) in file.why


def test_a_pipe_is_no_row_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "row.json")
    file = GrantFile(tmp_path / "row.json", "n1")
    assert file.row(0.0, WALL) is None
    assert "it is no regular file" in file.why
