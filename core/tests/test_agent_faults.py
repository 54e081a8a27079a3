"""What may go wrong around an agent: one strategy or one plugin suffers, and the node is protected all the same."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from core.tests.fake_agent import POLICY, Host, child, identity
from core.tests.fake_agent_process import QOS, Started, Tasks, row
from core.tests.fake_framework import GIB, size

from fallow_core.errors import StateError
from fallow_core.node.host_sampler import HostSampler
from fallow_core.node.process_tree import self_and_ancestors
from fallow_core.node.procfs import PROC_ROOT, read_processes
from fallow_core.state import durable
from fallow_hookspecs import Daemon, Node, TaskList, hookimpl


def test_cpu_that_cannot_be_read_keeps_no_task_from_being_ended_for_memory(started: Started, tasks: Tasks) -> None:
    started.host.lacks = {"cpu": "/proc/stat: expected counters, found 'x'"}
    started.host.used = size(1, 9.5)
    started.until(lambda: tasks.ended)
    assert started.ask(request="status")["sample_problems"] == started.host.lacks


def test_memory_that_cannot_be_read_ends_nobody(started: Started, tasks: Tasks) -> None:
    started.host.used = size(1, 9.5)
    started.host.lacks = {"memory": "/proc/meminfo: found ''"}
    started.steps(20)
    assert tasks.ended == []


def test_on_a_full_disk_tasks_end_and_it_is_shown(
    started: Started, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(durable, "write", full)
    started.host.used = size(1, 9.5)
    started.until(lambda: tasks.ended)
    assert "No space left" in started.ask(request="tasks")["terminations_error"]
    with pytest.raises(StateError, match="No space left"):
        started.ask(request="switch", state="stop", scope="all")
    assert started.agent.followed.stopped == frozenset()  # nothing is half done


def test_a_plugin_whose_list_never_comes_delays_no_other(agent_folder: Path, tasks: Tasks) -> None:
    class Hangs(Tasks):
        @hookimpl
        def list_tasks(self, node: Node) -> TaskList:
            time.sleep(3)
            return self.listing

    started = Started(agent_folder, {"ops": Hangs(), "etl": tasks}, qos=QOS)
    started.host.used = size(1, 9.5)
    began = time.monotonic()
    started.until(lambda: tasks.ended)
    assert time.monotonic() - began < 3
    started.agent.close()


def test_while_not_all_tasks_are_known_nobody_is_ended_for_overdraft(started: Started, tasks: Tasks) -> None:
    tasks.listing = replace(tasks.listing, complete=False)
    started.agent._list_soon()
    started.until(lambda: started.agent.evictor.incomplete)
    started.put(row())
    started.steps(20)
    assert tasks.ended == []


def test_core_signals_no_process_that_is_not_batch_whatever_a_plugin_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path, monkeypatch, POLICY)
    with child() as stranger, child() as process:
        host.add("liar", gib=2, process=identity(stranger))
        host.add("honest", gib=2, process=identity(process))
        host.strangers = frozenset({identity(stranger)})
        host.killer.fails = RuntimeError("the plugin cannot")  # so that core does it itself
        host.fill(99)
        host.run(3)
        process.wait(5)
        assert stranger.poll() is None


def test_a_daemon_that_is_an_ancestor_of_fallow_makes_nothing_batch() -> None:
    processes = read_processes(PROC_ROOT)
    above = [processes[pid].process for pid in self_and_ancestors(processes, os.getpid())]
    sampler = HostSampler()
    sampler.sample(above)
    assert sampler.batch.batch == frozenset()
    sampler.close()


def test_a_daemon_beside_fallow_makes_what_is_below_it_batch() -> None:
    with child() as process:
        sampler = HostSampler()
        sampler.sample([identity(process)])
        assert sampler.batch.batch == {identity(process)}
        sampler.close()


def test_after_a_minute_in_which_it_was_stopped_nothing_old_counts(agent_folder: Path, tasks: Tasks) -> None:
    stopped_for = 0.0

    def clock() -> float:
        return time.monotonic() + stopped_for

    started = Started(agent_folder, {"etl": tasks}, clock=clock, qos=replace(QOS, stale_seconds=10.0))
    started.until(lambda: len(started.agent.evictor.tasks) == 2)
    started.put(row(lasts=60.0))
    assert started.agent.followed.row_file.row(clock(), time.time()) is not None
    tasks.listing = replace(tasks.listing, complete=False)  # and now nobody tells any more
    stopped_for = 60.0
    started.steps(10)
    assert tasks.ended == []
    assert "expired" in started.ask(request="status")["node_grant"]
    started.agent.close()


def test_a_cluster_that_is_removed_while_it_is_asked_is_left_out(started: Started, tasks: Tasks) -> None:
    started.agent._list_soon()
    started.agent._take(replace(started.settings, clusters=()))
    started.steps(3)
    assert started.ask(request="status")["clusters"] == []
    started.until(tasks.closed.is_set)
    assert tasks.ended == []


def test_a_daemon_that_lies_about_its_tasks_pids_is_seen_in_the_numbers_only(started: Started, tasks: Tasks) -> None:
    init = read_processes(PROC_ROOT)[1].process
    tasks.nodes = {}
    tasks.listing = replace(tasks.listing, daemons=(Daemon(process=init, framework_node="nm"),))
    started.agent.sampler = HostSampler()
    started.steps(20)
    assert init not in started.agent.sampler.batch.batch
    started.agent.sampler.close()


CONFIG = "apiVersion: fallow/v1\nkind: Fallow\nstateDir: state\ncontrolSocket: s\nmetrics: off\n"


@pytest.fixture
def command(agent_folder: Path) -> Iterator[Callable[[], "subprocess.Popen[str]"]]:
    """Starts `fallow agent`; all that were started are gone in the end."""
    (agent_folder / "fallow.yaml").write_text(CONFIG)
    code = "import sys; from fallow_core.cli.main import main; sys.exit(main())"
    started: list[subprocess.Popen[str]] = []

    def start() -> "subprocess.Popen[str]":
        arguments = [sys.executable, "-c", code, "agent", "-c", str(agent_folder)]
        process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def first_line(process: "subprocess.Popen[str]", name: str) -> str:
    assert process.stderr is not None
    return next(line for line in process.stderr if f" {name} " in line or f" {name}\n" in line)


def test_a_signal_ends_the_command_and_a_kill_leaves_nothing_that_keeps_it_from_starting(
    agent_folder: Path, command: Callable[[], "subprocess.Popen[str]"]
) -> None:
    killed = command()
    assert "role=agent" in first_line(killed, "started")
    killed.kill()
    killed.wait()
    again = command()
    first_line(again, "started")
    again.send_signal(signal.SIGTERM)
    assert "stopped" in first_line(again, "stopped")
    assert again.wait(10) == 0
    assert not (agent_folder / "s").exists()


def test_without_its_files_it_starts_with_what_they_said_last(
    agent_folder: Path, command: Callable[[], "subprocess.Popen[str]"]
) -> None:
    first = command()
    first_line(first, "started")
    first.send_signal(signal.SIGTERM)
    first.wait()
    (agent_folder / "fallow.yaml").write_text(CONFIG + "sampleInterval: soon\n")
    again = command()
    assert "role=agent" in first_line(again, "started")
    assert "the last good version is in force" in first_line(again, "cluster_file_refused")


def test_wrong_files_and_no_earlier_ones_are_a_mistake_of_the_user(
    agent_folder: Path, command: Callable[[], "subprocess.Popen[str]"]
) -> None:
    (agent_folder / "fallow.yaml").write_text("kind: Fallow\nstateDir: state\n")
    process = command()
    _, said = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "apiVersion" in said
    assert "Traceback" not in said


def test_the_row_that_fallow_run_writes_is_one_that_an_agent_takes(agent_folder: Path) -> None:
    from core.tests.fake_framework import Framework
    from core.tests.fake_standalone import FakeHost, config, until

    from fallow_core.runtime.standalone import Standalone
    from fallow_core.state.node_grant import GrantFile

    framework = Framework(time.monotonic, a1=size(8))
    framework.nodes["a1"].allocated = size(2, 2)
    path = agent_folder / "row"
    fallow = Standalone(config(agent_folder, {"etl": framework}), row_file=path)
    fallow.sampler = FakeHost()
    file = GrantFile(path, "n1")
    until(fallow, lambda: (found := file.row(time.monotonic(), time.time())) is not None and found.accounts)
    found = file.row(time.monotonic(), time.time())
    assert found is not None
    assert found.accounts["alpha/etl"].allocated == 2 * GIB
    assert (found.to_take_back, found.accounts["alpha/etl"].may_pay) == (0, 0)
    fallow.close()
