import errno
import os
import signal
from pathlib import Path

import pytest
from core.tests.conftest import FakeProc
from core.tests.fake_agent import DEAF, child, identity

from fallow_core.node import signals
from fallow_core.node.procfs import PROC_ROOT, read_process
from fallow_core.node.signals import Signalled, terminate
from fallow_hookspecs import Process

OTHER_USER = PermissionError(errno.EPERM, "Operation not permitted")
NO_SUCH_CALL = OSError(errno.ENOSYS, "Function not implemented")


def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The signals that would be sent: none is."""
    numbers: list[int] = []
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda _descriptor, number: numbers.append(number))
    return numbers


def test_a_process_is_asked_to_end() -> None:
    with child() as process:
        assert terminate([identity(process)], force=False) == Signalled(sent=1)
        assert process.wait(5) == -signal.SIGTERM


def test_force_ends_a_process_that_does_not_heed_the_first_signal() -> None:
    with child(*DEAF) as process:
        who = identity(process)
        assert terminate([who], force=False) == Signalled(sent=1)
        assert terminate([who], force=True) == Signalled(sent=1)
        assert process.wait(5) == -signal.SIGKILL


def test_a_pid_that_is_anothers_by_now_is_not_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = sent(monkeypatch)
    with child() as process:
        who = identity(process)
        assert terminate([Process(who.pid, who.start_ticks - 1)], force=True) == Signalled(gone=1)
        assert numbers == []
        assert terminate([who], force=True) == Signalled(sent=1)
    assert numbers == [signal.SIGKILL]


def test_a_pid_that_becomes_anothers_before_it_is_held_is_not_signalled(
    fake_proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers, real_open = sent(monkeypatch), os.pidfd_open

    def reused(pid: int) -> int:
        fake_proc.process(pid, start=99)
        return real_open(pid)

    monkeypatch.setattr(os, "pidfd_open", reused)
    with child() as process:
        fake_proc.process(process.pid, start=10)
        assert terminate([Process(process.pid, 10)], force=True, proc_root=fake_proc.root) == Signalled(gone=1)
        assert terminate([Process(process.pid, 99)], force=True, proc_root=fake_proc.root) == Signalled(sent=1)
    assert numbers == [signal.SIGKILL]


def test_a_process_that_has_ended_is_gone() -> None:
    with child() as process:
        who = identity(process)
        process.kill()
    assert terminate([who], force=False) == Signalled(gone=1)


def test_a_process_that_nobody_waited_for_is_gone_as_well() -> None:
    with child() as process:
        who = identity(process)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert terminate([who], force=True) == Signalled(gone=1)


def test_neither_init_nor_this_process_is_ever_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = sent(monkeypatch)
    found = [read_process(PROC_ROOT, pid) for pid in (1, os.getpid())]
    assert terminate([stat.process for stat in found if stat is not None], force=True) == Signalled()
    assert terminate([Process(0, 0), Process(-1, 0)], force=True) == Signalled()
    assert numbers == []


@pytest.mark.parametrize(
    ("owner", "call", "error"),
    [(signal, "pidfd_send_signal", OTHER_USER), (os, "pidfd_open", NO_SUCH_CALL)],
    ids=["another user's", "a kernel without pidfds"],
)
def test_a_process_that_cannot_be_signalled_is_not_taken_for_gone(
    monkeypatch: pytest.MonkeyPatch, owner: object, call: str, error: OSError
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(owner, call, fail)
    with child() as process:
        assert terminate([identity(process)], force=True) == Signalled(refused=1)


def test_a_process_that_cannot_be_recognized_is_left_alone(
    fake_proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = sent(monkeypatch)
    with child() as process:
        fake_proc.process(process.pid)
        fake_proc.write(f"{process.pid}/stat", "nonsense\n")
        assert terminate([Process(process.pid, 10)], force=True, proc_root=fake_proc.root) == Signalled(refused=1)
    assert numbers == []


def test_the_processes_of_a_task_are_counted_each_and_no_descriptor_stays_open() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with child() as first, child() as second, child() as other:
        who = identity(other)
        processes = [identity(first), identity(second), Process(who.pid, who.start_ticks + 1)]
        assert signals.terminate(processes, force=True) == Signalled(sent=2, gone=1)
        assert (first.wait(5), second.wait(5), other.poll()) == (-9, -9, None)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
