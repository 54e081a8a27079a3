import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fallow_core.node.kernel_events import KernelEvents


class Heard:
    """What woke, and a signal to wait for."""

    def __init__(self) -> None:
        self.pressures: list[str] = []
        self.changed = threading.Event()

    def events(self, proc_root: Path) -> KernelEvents:
        return KernelEvents(self.pressures.append, self.changed.set, proc_root)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def events(heard: Heard, tmp_path: Path) -> Iterator[KernelEvents]:
    """On a kernel without pressure files."""
    events = heard.events(tmp_path / "proc")
    yield events
    events.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "batch").mkdir()
    return tmp_path / "batch"


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as the kernel lists it


def test_a_directory_that_comes_or_goes_is_heard(heard: Heard, events: KernelEvents, folder: Path) -> None:
    events.watch([str(folder)])
    (folder / "task").mkdir()
    assert heard.changed.wait(5)
    heard.changed.clear()
    (folder / "task").rmdir()
    assert heard.changed.wait(5)


def test_what_is_watched_no_longer_is_not_heard(
    heard: Heard, events: KernelEvents, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    events.watch([str(folder)])
    events.watch([str(other)])
    (folder / "task").mkdir()
    assert not heard.changed.wait(0.05)
    (other / "task").mkdir()
    assert heard.changed.wait(5)


def test_a_directory_that_was_made_anew_is_watched_again(heard: Heard, events: KernelEvents, folder: Path) -> None:
    events.watch([str(folder)])
    folder.rmdir()
    assert heard.changed.wait(5)
    folder.mkdir()
    events.watch([str(folder)])
    heard.changed.clear()
    (folder / "task").mkdir()
    assert heard.changed.wait(5)


def test_a_directory_that_is_not_there_is_no_error(events: KernelEvents, tmp_path: Path) -> None:
    assert events.watch([str(tmp_path / "none"), str(tmp_path)]) == [str(tmp_path)]


def test_a_kernel_without_pressure_says_what_is_missing(events: KernelEvents) -> None:
    assert set(events.missing) == {"pressure of cpu", "pressure of memory"}
    assert not events.has("cpu")
    assert "No such file" in events.missing["pressure of cpu"]


def test_pressure_files_that_take_no_trigger_say_so(heard: Heard, tmp_path: Path) -> None:
    (tmp_path / "pressure" / "cpu").mkdir(parents=True)
    events = heard.events(tmp_path)
    assert "Is a directory" in events.missing["pressure of cpu"]
    events.close()


def test_no_descriptor_is_left_open(heard: Heard, tmp_path: Path) -> None:
    before = descriptors()
    for root in (Path("/proc"), tmp_path):
        events = heard.events(root)
        events.watch([str(tmp_path)])
        events.close()
    assert descriptors() == before
