"""Tests on a real kernel with cgroup v2 alone. They run as root in a guest that `guest.py` boots."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from subprocess import DEVNULL, PIPE, Popen

import pytest

from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import hierarchies
from fallow_core.node.cgroups.hierarchy import Hierarchy

Start = Callable[..., int]


def until(test: Callable[[], object], what: str, seconds: float = 40) -> None:
    """Long, since the guest is slow and may have to wait for its CPUs."""
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def hierarchy() -> Hierarchy:
    """The control groups of the guest, with all controllers passed on to the groups below the root."""
    if "FALLOW_GUEST" not in os.environ:
        pytest.skip("runs in the guest: tox -e guest")
    found, lacking = hierarchies(Files())
    assert lacking == {}
    found["cpu"].pass_on("")
    return found["cpu"]


@pytest.fixture
def start(hierarchy: Hierarchy) -> Iterator[Start]:
    """Starts processes in a group; they end with the test. It returns when one has said something, or at once."""
    with ExitStack() as stack:

        def start(group: str, *command: str, says: bool = False) -> int:
            process = stack.enter_context(Popen(command, stdout=PIPE if says else DEVNULL))
            stack.callback(process.kill)
            hierarchy.move(process.pid, group)
            if process.stdout is not None:
                process.stdout.readline()
            return process.pid

        yield start


@pytest.fixture
def top(hierarchy: Hierarchy, start: Start) -> Iterator[str]:
    """A group for one test. What is left in it and below it ends."""
    top = "test"
    hierarchy.make(top, "cpu.weight")
    hierarchy.pass_on(top)
    yield top
    hierarchy.write(top, "cgroup.kill", "1")

    def gone() -> bool:
        for group in reversed([top, *hierarchy.below(top)]):
            with suppress(OSError):
                hierarchy.remove(group)
        return hierarchy.identity(top) is None

    until(gone, "the end of the test's groups")
