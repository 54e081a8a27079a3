import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from core.tests.fake_framework import FLOOR, Framework, size
from core.tests.fake_standalone import FakeHost, config, running, standalone, until

from fallow_core.api.control_socket import ask
from fallow_core.config.problems import Problem
from fallow_core.errors import ControlError, FallowError, StateError
from fallow_core.model.policy import ExitMode, PublishingMode, PublishingPolicy
from fallow_core.model.sample import NodeSample
from fallow_core.qos.termination import FloorLoss, Terminations
from fallow_core.runtime import instance_builds, node_process
from fallow_core.runtime import standalone as process
from fallow_core.runtime.standalone import Standalone
from fallow_core.state import publish_journal
from fallow_core.state.run_marker import RunMarker
from fallow_core.state.terminations_file import TerminationsFile
from fallow_hookspecs import Process, Resources

Lines = Callable[[str], list[str]]


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short path: the kernel takes no long one for a socket."""
    return tmp_path_factory.mktemp("f")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    caplog.set_level("INFO")
    return lambda name: [r.getMessage() for r in caplog.records if r.getMessage().split()[0] == name]


@pytest.fixture
def framework() -> Framework:
    framework = Framework(time.monotonic, a1=size(8))
    framework.delay_seconds = 0.02
    return framework


def loaded_host() -> FakeHost:
    host = FakeHost()
    host.used = size(4)
    return host


@contextmanager
def signals_put_back() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_until(fallow: Standalone, condition: Callable[[], object], number: int = signal.SIGTERM) -> None:
    """`fallow run` in this thread, which gets a signal when something is so."""
    ended, came = threading.Event(), []

    def watch() -> None:
        deadline = time.monotonic() + 20
        while not condition() and time.monotonic() < deadline:
            if ended.wait(0.01):
                return
        came.append(time.monotonic() < deadline)
        os.kill(os.getpid(), number)

    watcher = threading.Thread(target=watch)
    with signals_put_back():
        watcher.start()
        try:
            fallow.run()
        finally:
            ended.set()
            watcher.join()
        assert signal.getsignal(number) is signal.SIG_DFL  # a second signal would have ended it at once
    assert came == [True], "it did not come to that"


def sized(framework: Framework, expected: Resources) -> Callable[[], bool]:
    return lambda: framework.sizes() == {"a1": expected}


def test_a_floor_that_an_earlier_process_saw_losing_tasks_is_not_offered(folder: Path, framework: Framework) -> None:
    losses = tuple(FloorLoss("alpha/etl", "a1", time.monotonic() - ago) for ago in (60, 1))
    (folder / "state").mkdir()
    TerminationsFile(folder / "state").save(Terminations(floor_losses=losses))
    host = FakeHost()
    host.used = size(10)
    fallow = standalone(config(folder, {"etl": framework}), host)
    until(fallow, sized(framework, size(0)))
    fallow.evictor.terminations = Terminations()
    until(fallow, sized(framework, FLOOR))


# Stopping


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_and_the_floors_are_left_behind(
    folder: Path, framework: Framework, lines: Lines, number: int
) -> None:
    fallow = standalone(config(folder, {"etl": framework}), loaded_host())
    run_until(fallow, sized(framework, size(6)), number)
    time.sleep(0.05)
    assert framework.sizes() == {"a1": FLOOR}
    assert framework.closed.is_set()
    assert not fallow.config.control_socket.exists()
    assert lines("leaving") == ["leaving mode=floor"]
    assert [lines(name) != [] for name in ("started", "stopped", "left_without_answer")] == [True, True, False]
    os.close(publish_journal.lock(folder / "state"))


@pytest.mark.parametrize(
    ("on_exit", "left"), [(ExitMode.FLOOR, FLOOR), (ExitMode.KEEP, size(6)), (ExitMode.ORIGINAL, size(8))]
)
def test_the_sizes_of_on_exit_are_left_behind(
    folder: Path, framework: Framework, on_exit: ExitMode, left: Resources
) -> None:
    fallow = standalone(config(folder, {"etl": framework}, on_exit=on_exit), loaded_host())
    run_until(fallow, sized(framework, size(6)))
    time.sleep(0.05)
    assert framework.sizes() == {"a1": left}


def test_in_observe_mode_nothing_is_left_behind(folder: Path, framework: Framework, lines: Lines) -> None:
    observe = PublishingPolicy(mode=PublishingMode.OBSERVE)
    fallow = standalone(config(folder, {"etl": framework}, publishing=observe), loaded_host())
    run_until(fallow, lambda: fallow.controller.state.due)
    assert framework.calls == []
    assert lines("leaving") == []


def test_a_framework_that_does_not_answer_does_not_keep_it_from_stopping(
    folder: Path, framework: Framework, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LEAVE_SECONDS", 0.2)
    monkeypatch.setattr(node_process, "CLOSE_SECONDS", 0.1)
    hangs = threading.Event()
    framework.seen = lambda offers: hangs.wait(20)
    fallow = standalone(config(folder, {"etl": framework}), loaded_host())
    run_until(fallow, lambda: framework.calls)
    hangs.set()
    assert lines("left_without_answer") == ["left_without_answer seconds=0.2"]
    assert lines("stop_waits") == [f'stop_waits cluster=alpha/etl at_most_seconds=0.2 skip="{process.SKIP}"']


def test_a_stop_says_that_the_cluster_it_waits_for_fails(
    folder: Path, framework: Framework, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LEAVE_SECONDS", 0.2)
    fallow = standalone(config(folder, {"etl": framework}), loaded_host())

    def dies() -> bool:
        framework.fails = framework.reports_fail = ConnectionError("refused")
        return bool(fallow.clusters["alpha/etl"].failing)

    until(fallow, sized(framework, size(6)))
    run_until(fallow, dies)
    (told,) = lines("stop_waits")
    assert told.endswith('report failed: ConnectionError: refused"')


def test_while_it_stops_requests_are_refused_at_once(
    folder: Path, framework: Framework, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LEAVE_SECONDS", 5)
    answers: list[str] = []

    def ask_now(offers: object) -> None:
        if fallow._stopping:
            with pytest.raises(ControlError) as caught:
                ask(fallow.config.control_socket, {"request": "status"})
            answers.append(str(caught.value))

    framework.seen = ask_now
    fallow = standalone(config(folder, {"etl": framework}), loaded_host())
    run_until(fallow, sized(framework, size(6)))
    assert answers == ["Fallow is stopping"]


def test_a_restored_cluster_keeps_its_sizes_when_it_stops(folder: Path, framework: Framework) -> None:
    fallow = standalone(config(folder, {"etl": framework}), loaded_host())
    asked: list[object] = []

    def restored() -> bool:
        if not asked and framework.sizes() == {"a1": size(6)}:
            asked.append(ask(fallow.config.control_socket, {"request": "restore"}))
        return bool(asked) and framework.sizes() == {"a1": size(8)} and fallow.controller.left

    run_until(fallow, restored)
    time.sleep(0.05)
    assert framework.sizes() == {"a1": size(8)}


# Starting


def test_a_second_process_with_the_same_state_is_refused(folder: Path) -> None:
    first = standalone(config(folder, {}))
    with pytest.raises(StateError, match="a Fallow is running already: it uses the state directory"):
        standalone(config(folder, {}, control_socket=folder / "other"))
    first.close()
    standalone(config(folder, {})).close()


def test_a_control_socket_that_cannot_be_opened_ends_it_with_nothing_left(folder: Path) -> None:
    (folder / "control").write_text("in the way")
    with signals_put_back(), pytest.raises(ControlError, match="exists and is no socket"):
        standalone(config(folder, {})).run()
    os.close(publish_journal.lock(folder / "state"))


def test_a_metrics_address_that_is_taken_ends_it_with_nothing_left(folder: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = ("127.0.0.1", int(other.getsockname()[1]))
        with signals_put_back(), pytest.raises(FallowError, match="cannot serve metrics"):
            standalone(config(folder, {}, metrics=address)).run()
    assert not (folder / "control").exists()
    os.close(publish_journal.lock(folder / "state"))


def test_what_was_wrong_before_it_started_is_told(folder: Path, framework: Framework, lines: Lines) -> None:
    (folder / "state").mkdir()
    (folder / "state" / "published.jsonl").write_text("{\n")
    problem = Problem(file=folder / "clusters.d" / "ops.yaml", line=3, message="unknown key 'usr'")
    fallow = standalone(config(folder, {"etl": framework}, problems=(problem,)), loaded_host())
    run_until(fallow, lambda: fallow.controller.rows)
    assert "published.jsonl" in lines("state_lost")[0]
    assert "is not JSON in line 1" in lines("state_lost")[0]
    assert lines("cluster_file_refused") == [f'cluster_file_refused problem="{problem}"']


def test_a_journal_whose_last_line_was_not_written_whole_is_told(
    folder: Path, framework: Framework, lines: Lines
) -> None:
    (folder / "state").mkdir()
    (folder / "state" / "published.jsonl").write_text('{"version": 1}\n{"known')
    fallow = standalone(config(folder, {"etl": framework}), loaded_host())
    run_until(fallow, lambda: fallow.controller.rows)
    assert lines("journal_cut_off") == [f"journal_cut_off file={folder}/state/published.jsonl"]
    assert lines("state_lost") == []


def test_metrics_are_served_while_it_runs(folder: Path, framework: Framework) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = ("127.0.0.1", int(probe.getsockname()[1]))
    fallow = standalone(config(folder, {"etl": framework}, metrics=address), loaded_host())
    pages: list[str] = []

    def scraped() -> bool:
        if framework.sizes() == {"a1": size(6)}:
            with urllib.request.urlopen(f"http://127.0.0.1:{address[1]}/metrics", timeout=5) as answer:
                pages.append(answer.read().decode())
        return bool(pages)

    run_until(fallow, scraped)
    assert 'fallow_node_batch_cpu_cores{node="n1"} 6.0' in pages[0]


# Instances


def test_a_build_that_fails_is_told_tried_again_and_stops_no_other(
    folder: Path, framework: Framework, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance_builds, "AGAIN_SECONDS", 0.1)
    later, tried = Framework(time.monotonic, a2=size(5)), []

    def build(_: object) -> Framework:
        tried.append(1)
        if len(tried) < 3:
            raise ConnectionError("name not found")
        return later

    fallow = standalone(config(folder, {"etl": framework, "ops": build}), loaded_host())
    until(fallow, lambda: fallow.builds.failed)
    assert "ConnectionError: name not found" in fallow.builds.failed["alpha/ops"]
    assert fallow.builds.building == []
    until(fallow, lambda: len(fallow.controller.clusters) == 2)
    assert fallow.builds.failed == {}
    assert len(lines("cluster_failed")) == 2
    until(fallow, lambda: framework.calls)
    fallow.close()
    assert later.closed.is_set()
    assert len(tried) == 3


def test_a_build_that_hangs_delays_no_other_cluster(folder: Path, framework: Framework) -> None:
    hangs = threading.Event()
    fallow = standalone(config(folder, {"etl": framework, "ops": lambda _: hangs.wait(20)}), loaded_host())
    until(fallow, sized(framework, size(6)))
    assert fallow.builds.building == ["alpha/ops"]
    hangs.set()
    fallow.close()


# The loop


def test_a_resource_that_cannot_be_read_keeps_its_last_reading(folder: Path, lines: Lines) -> None:
    host = FakeHost()
    fallow = standalone(config(folder, {}), host)
    host.lacks = {"cpu": "CPU use needs two readings, and this was the first"}
    fallow.step()
    assert fallow.sample.cpu is None
    assert lines("sample_failed") == []  # it is not worth a warning before there ever was one
    host.lacks = {}
    fallow.step()
    before = fallow.sample
    host.lacks = {"cpu": "it went backwards"}
    fallow.step()
    assert fallow.sample.cpu == before.cpu
    assert fallow.sample.memory != before.memory
    assert lines("sample_failed") == ['sample_failed resource=cpu reason="it went backwards"']
    fallow.close()


def test_the_daemons_of_all_clusters_are_told_apart_on_the_host(folder: Path, framework: Framework) -> None:
    other = Framework(time.monotonic, b1=size(1))
    other.nodes["b1"].process = Process(99, 7)
    host = FakeHost()
    fallow = standalone(config(folder, {"etl": framework, "ops": other}), host)
    until(fallow, lambda: len(host.daemons) == 2)
    assert sorted(daemon.pid for daemon in host.daemons) == [99, 4711]
    fallow.close()


def test_requests_are_answered_when_sampling_takes_longer_than_its_interval(folder: Path) -> None:
    class SlowHost(FakeHost):
        def sample(self, daemons: Collection[Process] = ()) -> NodeSample:
            time.sleep(0.03)
            return super().sample(daemons)

    fallow = standalone(config(folder, {}, sample_interval_seconds=0.001), SlowHost())
    with running(fallow):
        assert fallow.inbox.ask(lambda: 42) == 42
    fallow.close()


def test_a_flood_of_requests_does_not_keep_the_host_from_being_sampled(folder: Path) -> None:
    fallow = standalone(config(folder, {}, sample_interval_seconds=0.01))

    def again() -> None:
        time.sleep(0.005)
        fallow.inbox._jobs.put(again)

    again()
    again()
    for _ in range(3):
        before = fallow.sample
        fallow.step()
        assert fallow.sample != before
    fallow.close()


def test_a_call_that_ends_is_taken_before_the_next_sample(folder: Path, framework: Framework) -> None:
    fallow = standalone(config(folder, {"etl": framework}, sample_interval_seconds=20), loaded_host())
    with running(fallow):
        deadline = time.monotonic() + 10
        while not framework.calls and time.monotonic() < deadline:
            time.sleep(0.01)
    assert framework.calls
    fallow.close()


def test_an_error_that_ends_the_process_is_an_event_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch, lines: Lines
) -> None:
    fallow = standalone(config(folder, {}))

    def fail() -> None:
        raise LookupError("no")

    monkeypatch.setattr(fallow, "step", fail)
    with signals_put_back(), pytest.raises(LookupError):
        fallow.run()
    (told,) = lines("unhandled_error")
    assert told.startswith("unhandled_error thread=main error=LookupError('no') at=")
    assert RunMarker(folder / "state").last_run() is not None


# The command


def test_the_command_runs_answers_refuses_a_second_one_and_stops(folder: Path) -> None:
    (folder / "fallow.yaml").write_text(
        "apiVersion: fallow/v1\nkind: Fallow\nstateDir: state\ncontrolSocket: control\nmetrics: off\n"
        "sampleInterval: 100ms\n"
    )

    def fallow(*arguments: str) -> list[str]:
        code = "import sys; from fallow_core.cli.main import main; sys.exit(main(sys.argv[1:]))"
        return [sys.executable, "-c", code, *arguments, "-c", str(folder)]

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(fallow(*arguments), capture_output=True, text=True, timeout=30, check=False)

    with subprocess.Popen(fallow("run"), stderr=subprocess.PIPE, text=True) as first:
        try:
            assert first.stderr is not None
            assert "started" in first.stderr.readline()
            status = call("status")
            assert (status.returncode, status.stderr) == (0, "")
            assert "publishing mode observe (nothing is sent)" in status.stdout
            second = call("run")
            assert second.returncode == 1
            assert "a Fallow is running already" in second.stderr
            assert "Traceback" not in second.stderr
        finally:
            first.terminate()
        assert first.wait(20) == 0
        assert first.stderr.read().splitlines()[-1].endswith("stopped")
    with subprocess.Popen(fallow("run"), stderr=subprocess.PIPE, text=True) as killed:
        assert killed.stderr is not None
        assert "started" in killed.stderr.readline()  # nothing is said of the first one, which stopped in order
        killed.kill()
    with subprocess.Popen(fallow("run"), stderr=subprocess.PIPE, text=True) as next_one:
        assert next_one.stderr is not None
        assert f"last_run_not_stopped pid={killed.pid} since=" in next_one.stderr.readline()
        next_one.terminate()
    gone = call("status")
    assert (gone.returncode, gone.stdout) == (1, "")
    assert gone.stderr == f"no Fallow is running: nobody serves {folder}/control\n"
