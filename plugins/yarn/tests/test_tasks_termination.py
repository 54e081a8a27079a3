"""Real processes: this test is their NodeManager. It ends its own children alone."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from fallow_hookspecs import KillAnswer, KillResult, Process
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.nm.procfs import PROC_ROOT, Stat, read_environment, read_stat
from fallow_yarn.tasks import termination
from fallow_yarn.tasks.container_processes import ContainerProcesses
from fallow_yarn.tasks.process_check import ProcessCheck
from fallow_yarn.tasks.process_tree import Processes
from fallow_yarn.tasks.termination import Terminator

ENDING = KillAnswer(result=KillResult.TERMINATING)
LAUNCH = 'setsid sh -c "$1" & wait $!; exit $?'
SLEEP = "exec sleep 600"
ONE = "container_1_0001_01_000001"
NUMBERS = count(1)


class Host:
    """Containers that this test has started, and a terminator that notes whom it signals."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.containers = ContainerProcesses()
        self.signals: list[tuple[int, int]] = []
        self.wrong: list[int] = []
        self.terminator = Terminator(self.containers, send=self._send)
        own = read_stat(PROC_ROOT, os.getpid())
        assert own is not None
        self.daemon = own.process
        self.launchers: dict[str, subprocess.Popen[bytes]] = {}

    def launch(self, script: str, processes: int) -> str:
        """Start a container, and return its id when it has so many processes."""
        container_id = f"container_{time.time_ns() // 1000}_0001_01_{next(NUMBERS):06}"
        environment = {"PATH": os.environ["PATH"], "CONTAINER_ID": container_id, "FOLDER": str(self.folder)}
        command = ["sh", "-c", LAUNCH, f"/local/{container_id}/default_container_executor.sh", script]
        self.launchers[container_id] = subprocess.Popen(command, env=environment)
        until(lambda: len(self.members(container_id)) == processes)
        return container_id

    def found(self, container_id: str) -> Processes:
        return self.containers.find((self.daemon,))[container_id]

    def members(self, container_id: str) -> list[int]:
        found = self.containers.find((self.daemon,)).get(container_id)
        return [] if found is None else [stat.pid for stat in found.members]

    def end(self, *container_ids: str, force: bool = False) -> Mapping[str, KillAnswer]:
        return self.terminator.terminate(container_ids, (self.daemon,), Deadline.after(30), force=force)

    def exit_code(self, container_id: str) -> int:
        return self.launchers[container_id].wait(30)

    def signalled(self, number: int) -> list[int]:
        return sorted(pid for pid, sent in self.signals if sent == number)

    def clean(self) -> None:
        Terminator(self.containers).terminate(self.launchers, (self.daemon,), Deadline.after(30), force=True)
        for launcher in self.launchers.values():
            launcher.wait(30)

    def _send(self, descriptor: int, number: int) -> None:
        pid = pid_of(descriptor)
        if number:
            environment = read_environment(PROC_ROOT, pid)
            if environment is not None and environment.container_id not in self.launchers:
                self.wrong.append(pid)
            self.signals.append((pid, number))
        signal.pidfd_send_signal(descriptor, number)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    host.clean()
    assert host.wrong == []


@pytest.fixture
def decoy() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the same user that is nobody's container, in a session of its own."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        yield process
        process.kill()


def pid_of(descriptor: int) -> int:
    for line in Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines():
        if line.startswith("Pid:"):
            return int(line.split()[1])
    raise AssertionError(f"descriptor {descriptor} is no pidfd")


def stat_of(pid: int) -> Stat:
    stat = read_stat(PROC_ROOT, pid)
    assert stat is not None
    return stat


def until(test: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(("force", "number"), [(False, signal.SIGTERM), (True, signal.SIGKILL)])
def test_all_processes_of_a_container_are_signalled_and_those_of_another_are_not(
    host: Host, decoy: subprocess.Popen[bytes], force: bool, number: int
) -> None:
    """Two process groups in one session, a session of its own, and one without an environment."""
    own_group = "import os; os.setpgid(0, 0); os.execlp('sleep', 'sleep', '600')"
    script = f'{sys.executable} -c "{own_group}" & setsid sleep 601 & env -i sleep 602 & exec sleep 603'
    one, two = host.launch(script, 4), host.launch(SLEEP, 1)
    until(lambda: len({os.getpgid(pid) for pid in host.members(one)}) == 3)
    members, others = host.members(one), host.members(two)
    assert host.end(one, force=force) == {one: ENDING}
    assert host.signalled(number) == sorted(members)
    assert host.exit_code(one) == 128 + number
    until(lambda: host.members(one) == [])
    assert host.members(two) == others
    assert decoy.poll() is None


def test_several_containers_end_in_one_call_and_each_process_is_signalled_once(host: Host) -> None:
    ids = [host.launch("sleep 600 & exec sleep 601", 2) for _ in range(5)]
    members = sorted(pid for container_id in ids for pid in host.members(container_id))
    assert host.end(*ids, *ids) == dict.fromkeys(ids, ENDING)
    assert host.signalled(signal.SIGTERM) == members
    assert {host.exit_code(container_id) for container_id in ids} == {128 + signal.SIGTERM}


def test_a_container_without_a_process_here_has_no_answer(host: Host) -> None:
    assert host.end(ONE) == {}
    gone = host.launch(SLEEP, 1)
    host.end(gone, force=True)
    host.exit_code(gone)
    assert host.end(gone) == {}


def test_a_container_that_ignores_term_gets_it_once_and_is_ended_by_force(host: Host) -> None:
    one = host.launch("trap '' TERM; sleep 600 & wait; exec sleep 601", 2)
    members = host.members(one)
    assert host.end(one) == {one: ENDING}
    assert host.end(one) == {one: ENDING}
    assert host.signalled(signal.SIGTERM) == sorted(members)
    assert host.members(one) != []
    assert host.end(one, force=True) == {one: ENDING}
    assert host.exit_code(one) == 128 + signal.SIGKILL


def test_what_a_container_starts_in_order_to_end_is_left_to_do_its_work(host: Host) -> None:
    one = host.launch("trap 'sleep 0.1; touch $FOLDER/began; sleep 600' TERM; while :; do sleep 0.02; done", 2)
    host.end(one)
    until((host.folder / "began").exists)
    until(lambda: len(host.members(one)) == 2)
    before = host.signalled(signal.SIGTERM)
    assert host.end(one) == {one: ENDING}
    assert host.signalled(signal.SIGTERM) == before
    host.end(one, force=True)
    assert host.exit_code(one) == 128 + signal.SIGKILL


def test_processes_that_start_while_the_container_is_ended_by_force_are_ended_too(host: Host) -> None:
    one = host.launch("for i in 1 2 3 4; do (while :; do sleep 0.01; done) & done; exec sleep 600", 9)
    assert host.end(one, force=True) == {one: ENDING}
    until(lambda: host.members(one) == [])


def test_no_wrong_process_is_signalled_while_fifty_start_and_end_all_the_time(
    host: Host, decoy: subprocess.Popen[bytes]
) -> None:
    """Neighbours use up pids while containers are ended one after the other."""
    churn = "for i in 1 2 3 4 5; do (while :; do sleep 0.01; done) & done; wait"
    noise = [subprocess.Popen(["sh", "-c", churn], start_new_session=True) for _ in range(5)]
    try:
        neighbour = host.launch(SLEEP, 1)
        kept = host.members(neighbour)
        for force in (False, True):
            for _ in range(3):
                one = host.launch("(while :; do sleep 0.01; done) & exec sleep 600", 3)
                host.end(one)
                host.end(one, force=force)
                host.end(one, force=True)
                until(lambda one=one: host.members(one) == [])  # type: ignore[misc]
        assert host.members(neighbour) == kept
        assert decoy.poll() is None
        assert [process.poll() for process in noise] == [None] * len(noise)
    finally:
        for process in noise:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def test_a_forged_pid_file_leads_nowhere(host: Host, decoy: subprocess.Popen[bytes]) -> None:
    script = f"""cd "$FOLDER"; for name in "$CONTAINER_ID" container; do
        mkdir -p nmPrivate/app/$CONTAINER_ID; echo {decoy.pid} > nmPrivate/app/$CONTAINER_ID/$name.pid; done; {SLEEP}"""
    one = host.launch(script, 1)
    until(lambda: len(list(host.folder.glob("nmPrivate/app/*/*.pid"))) == 2)
    host.end(one)
    host.exit_code(one)
    assert decoy.poll() is None


class Told(ContainerProcesses):
    """Finds what it is told: as if a process had been another one when the containers were found."""

    def __init__(self, found: Mapping[str, Processes]) -> None:
        super().__init__()
        self.told = found

    def find(self, daemons: object, stats: object = None) -> Mapping[str, Processes]:
        return self.told


def told(host: Host, container_id: str, *members: Stat, roots: tuple[Stat, ...] | None = None) -> KillAnswer:
    """The answer when these were found as the processes of a container."""
    found = Processes(members=members, roots=members if roots is None else roots)
    terminator = Terminator(Told({container_id: found}), send=host._send)
    return terminator.terminate((container_id,), (host.daemon,), Deadline.after(30), force=True)[container_id]


def test_a_pid_that_is_another_process_by_now_is_not_signalled(host: Host, decoy: subprocess.Popen[bytes]) -> None:
    one = host.launch(SLEEP, 1)
    for stat in (stat_of(decoy.pid), *host.found(one).roots):
        told(host, one, replace(stat, process=Process(stat.pid, stat.start_ticks - 1)))
    assert host.signals == []
    assert decoy.poll() is None


def test_a_process_in_another_session_than_it_was_found_in_is_not_signalled(host: Host) -> None:
    one = host.launch(SLEEP, 1)
    (root,) = host.found(one).roots
    answer = told(host, one, replace(root, session=1))
    assert (answer.result, answer.reason) == (
        KillResult.FAILED,
        f"process {root.pid} could not be verified to belong to it",
    )
    assert host.signals == []


def test_a_process_that_nothing_shows_to_be_the_containers_is_not_signalled(
    host: Host, decoy: subprocess.Popen[bytes]
) -> None:
    one = host.launch(SLEEP, 1)
    (root,) = host.found(one).roots
    assert told(host, one, stat_of(decoy.pid)).result is KillResult.FAILED
    assert host.signals == []
    assert told(host, one, stat_of(decoy.pid), root) == ENDING
    assert host.signalled(signal.SIGKILL) == [root.pid]
    assert decoy.poll() is None


def test_a_process_of_another_user_than_the_roots_is_not_signalled(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    one = host.launch("sleep 600 & exec sleep 601", 2)
    root, child = host.found(one).members
    monkeypatch.setattr("fallow_yarn.tasks.process_check.read_user", lambda _root, pid: pid)
    assert told(host, one, root, child, roots=(root,)) == ENDING
    assert host.signalled(signal.SIGKILL) == [root.pid]


def test_this_process_and_init_are_never_signalled(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessCheck, "belongs", lambda *_, **__: True)
    noted: list[int] = []
    members = (stat_of(1), stat_of(os.getpid()))
    terminator = Terminator(
        Told({ONE: Processes(members=members, roots=members)}), send=lambda _fd, number: noted.append(number)
    )
    terminator.terminate((ONE,), (host.daemon,), Deadline.after(30), force=True)
    assert noted == []


def test_a_container_that_only_its_launcher_names_can_be_ended(host: Host) -> None:
    one = host.launch("exec env -i sleep 600", 1)
    assert host.end(one) == {one: ENDING}
    assert host.exit_code(one) == 128 + signal.SIGTERM


def test_a_process_that_may_not_be_signalled_is_no_access(host: Host) -> None:
    def refuse(_descriptor: int, _number: int) -> None:
        raise PermissionError

    one = host.launch(SLEEP, 1)
    (pid,) = host.members(one)
    terminator = Terminator(host.containers, send=refuse)
    answer = terminator.terminate((one,), (host.daemon,), Deadline.after(30), force=False)[one]
    assert (answer.result, answer.reason) == (
        KillResult.NO_ACCESS,
        f"process {pid} belongs to another user, and may not be signalled from here",
    )


@pytest.mark.parametrize(
    ("code", "result", "words"),
    [
        (errno.ENOSYS, KillResult.NO_ACCESS, "kernel has no pidfds"),
        (errno.EMFILE, KillResult.FAILED, "cannot be held: Too many open files"),
    ],
)
def test_without_a_pidfd_nobody_is_signalled(
    host: Host, monkeypatch: pytest.MonkeyPatch, code: int, result: KillResult, words: str
) -> None:
    def fail(_pid: int) -> int:
        raise OSError(code, os.strerror(code))

    one = host.launch(SLEEP, 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pidfd_open", fail)
        answer = host.end(one)[one]
    assert answer.result is result
    assert words in answer.reason
    assert host.signals == []


def test_a_container_that_starts_processes_for_ever_is_given_up_and_said_so(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = host.launch("trap '' TERM; sleep 600 & sleep 601 & exec sleep 602", 3)
    monkeypatch.setattr(termination, "MAX_HELD", 1)
    monkeypatch.setattr(termination, "MAX_ROUNDS", 2)
    assert host.end(one, force=True)[one].result is KillResult.FAILED
    assert len(host.signals) == 2


def test_more_processes_than_can_be_held_at_once_are_signalled_in_turns(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = host.launch("for i in 1 2 3 4 5 6; do sleep 600 & done; exec sleep 601", 7)
    members = host.members(one)
    monkeypatch.setattr(termination, "MAX_HELD", 3)
    assert host.end(one, force=True) == {one: ENDING}
    assert host.signalled(signal.SIGKILL) == sorted(members)
