import json
import os
from pathlib import Path

import pytest

from fallow_core.errors import StateError
from fallow_core.state.run_marker import FILE_NAME, RunMarker

BEGUN = 1_700_000_000.0


class Host:
    """A /proc with a boot and a count of kills."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.state = folder / "proc", folder / "state"
        (self.proc / "sys/kernel/random").mkdir(parents=True)
        self.state.mkdir()
        self.marker = RunMarker(self.state, self.proc)
        self.is_at("boot-1", 3)

    def is_at(self, boot: str, oom_kills: int) -> None:
        (self.proc / "sys/kernel/random/boot_id").write_text(f"{boot}\n")
        (self.proc / "vmstat").write_text(f"nr_free_pages 12\noom_kill {oom_kills}\n")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_an_orderly_stop_leaves_nothing(host: Host) -> None:
    assert host.marker.last_run() is None
    host.marker.begin(BEGUN)
    host.marker.end()
    assert host.marker.last_run() is None
    assert list(host.state.iterdir()) == []


@pytest.mark.parametrize(
    ("boot", "oom_kills", "why"),
    [
        ("boot-1", 3, "not for lack of memory"),
        ("boot-1", 5, "2 processes killed for lack of memory"),
        ("boot-2", 0, "the host has restarted"),
    ],
)
def test_a_run_without_an_orderly_stop_is_told_with_what_is_known_of_its_end(
    host: Host, boot: str, oom_kills: int, why: str
) -> None:
    host.marker.begin(BEGUN)
    host.is_at(boot, oom_kills)
    last = host.marker.last_run()
    assert last is not None
    assert last.pid == f"{os.getpid()}"
    assert last.since.startswith("2023-11-1")
    assert why in last.why


@pytest.mark.parametrize("content", ["", "[]", "{", json.dumps({"pid": "x"}), json.dumps({"pid": 1, "since": 1e30})])
def test_a_marker_that_cannot_be_read_still_says_that_the_stop_was_not_in_order(host: Host, content: str) -> None:
    (host.state / FILE_NAME).write_text(content)
    last = host.marker.last_run()
    assert last is not None
    assert "unreadable" in last.why
    assert last.pid == last.since == ""


def test_a_marker_that_cannot_be_written_is_an_error_that_names_it(host: Host) -> None:
    host.state.rmdir()
    with pytest.raises(StateError, match=FILE_NAME):
        host.marker.begin(BEGUN)
