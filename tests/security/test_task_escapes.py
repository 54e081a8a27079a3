"""Processes that a container leaves to init still belong to it, and end with it."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.security.conftest import Attack

from fallow_hookspecs import KillResult, Process
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.nm.procfs import PROC_ROOT, read_cgroup_mounts, read_stat
from fallow_yarn.tasks.container_processes import ContainerProcesses
from fallow_yarn.tasks.termination import Terminator


@pytest.fixture
def container_id() -> str:
    return f"container_{time.time_ns() // 1_000_000}_0001_01_000001"


@pytest.fixture
def node_manager() -> Process:
    """This process: the ancestor of all that the attacks start."""
    own = read_stat(PROC_ROOT, os.getpid())
    assert own is not None
    return own.process


@pytest.fixture
def cgroup(container_id: str) -> Iterator[Path]:
    """A container's own cgroup, as a NodeManager makes it: with CPU limits, and without a freezer."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes a control group")
    mounts = [mount for mount in read_cgroup_mounts(PROC_ROOT) if (mount / "cpu.shares").exists()] or [
        mount for mount in read_cgroup_mounts(PROC_ROOT) if (mount / "cgroup.controllers").exists()
    ]
    if not mounts:
        pytest.skip("this host has no control groups for CPU")
    folder = mounts[0] / "fallow-test" / container_id
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    yield folder
    for pid in (folder / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    for path in (folder, folder.parent):
        with suppress(OSError):
            path.rmdir()


def escape(attack: Attack, container_id: str, *arguments: str, cgroup: Path | None = None) -> int:
    """Start a container's process, in its cgroup if there is one; the pid of what it leaves to init."""
    process = attack("double_fork", *arguments, env={} if cgroup else {"CONTAINER_ID": container_id})
    if cgroup is not None:
        (cgroup / "cgroup.procs").write_text(str(process.pid))
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    orphan = int(process.stdout.readline())
    process.wait(10)
    return orphan


def is_alive(pid: int) -> bool:
    stat = read_stat(PROC_ROOT, pid)
    return stat is not None and stat.is_alive


def until_ended(pid: int) -> None:
    deadline = Deadline.after(10)
    while is_alive(pid):
        assert deadline.left_seconds() > 0
        time.sleep(0.01)


def test_a_process_that_forked_twice_in_a_containers_cgroup_ends_by_force(
    attack: Attack, container_id: str, cgroup: Path, node_manager: Process
) -> None:
    orphan = escape(attack, container_id, cgroup=cgroup)
    assert is_alive(orphan)
    answers = Terminator(ContainerProcesses()).terminate([container_id], [node_manager], Deadline.after(30), force=True)
    assert answers[container_id].result is KillResult.TERMINATING
    until_ended(orphan)


def test_a_process_that_forked_twice_with_a_containers_environment_ends_by_force(
    attack: Attack, container_id: str, node_manager: Process
) -> None:
    orphan = escape(attack, container_id)
    assert is_alive(orphan)
    answers = Terminator(ContainerProcesses()).terminate([container_id], [node_manager], Deadline.after(30), force=True)
    assert answers[container_id].result is KillResult.TERMINATING
    until_ended(orphan)


def test_a_process_that_is_replaced_by_its_child_again_and_again_ends_with_its_cgroup(
    attack: Attack, container_id: str, cgroup: Path, node_manager: Process
) -> None:
    escape(attack, container_id, "hop", cgroup=cgroup)
    path = str(cgroup.relative_to(cgroup.parents[1]))
    answers = Terminator(ContainerProcesses()).terminate(
        [container_id], [node_manager], Deadline.after(30), force=True, cgroups={container_id: (path,)}
    )
    assert answers[container_id].result is KillResult.TERMINATING
    deadline = Deadline.after(10)
    while (cgroup / "cgroup.procs").read_text():
        assert deadline.left_seconds() > 0
        time.sleep(0.01)
