import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from fallow_core.model.sample import NodeSample, Usage
from fallow_core.node.host_sampler import HostSampler
from fallow_core.node.memory_info import PAGE_BYTES
from fallow_core.node.procfs import PROC_ROOT, TICKS_PER_SECOND, read_processes
from fallow_hookspecs import Process

if TYPE_CHECKING:
    from core.tests.conftest import FakeProc

pytestmark = pytest.mark.skipif(TICKS_PER_SECOND != 100, reason="the numbers below are of 100 ticks a second")

DAEMON = Process(5, 50)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sampler(fake_proc: "FakeProc", clock: Clock) -> HostSampler:
    """A sampler of a 2-core host with a daemon, that has read once."""
    fake_proc.host(busy=1000)
    fake_proc.process(5, start=50, own=10)
    sampler = HostSampler(clock, fake_proc.root)
    sampler.sample([DAEMON])
    clock.now += 2
    return sampler


def cpu_of(sampler: HostSampler) -> Usage:
    cpu = sampler.sample([DAEMON]).cpu
    assert cpu is not None, sampler.missing
    return cpu


def test_the_first_sample_has_memory_and_says_why_it_has_no_cpu(fake_proc: "FakeProc", clock: Clock) -> None:
    sampler = HostSampler(clock, fake_proc.root)
    sample = sampler.sample()
    assert sample.cpu is None
    assert sample.memory is not None
    assert sampler.missing == {"cpu": "CPU use needs two readings, and this was the first"}


def test_cpu_use_is_divided_by_the_time_that_passed(sampler: HostSampler, fake_proc: "FakeProc") -> None:
    fake_proc.host(busy=1300)
    fake_proc.process(5, start=50, own=110)
    cpu = cpu_of(sampler)
    assert (cpu.measured_at, cpu.capacity, cpu.used, cpu.batch_used) == (1002.0, 2000, 1500, 500)
    assert cpu.terms == {
        "online_cpus": 2,
        "elapsed_milliseconds": 2000,
        "ticks_per_second": 100,
        "busy_ticks": 300,
        "stolen_ticks": 0,
        "batch_ticks": 100,
        "batch_processes": 1,
    }
    assert sampler.missing == {}


def test_time_that_a_hypervisor_gave_to_others_cannot_be_used(fake_proc: "FakeProc", clock: Clock) -> None:
    sampler = HostSampler(clock, fake_proc.root)
    fake_proc.host(cpus=8, busy=1000, stolen=50)
    sampler.sample()
    clock.now += 2
    fake_proc.host(cpus=8, busy=1800, stolen=850)
    cpu = cpu_of(sampler)
    assert (cpu.capacity, cpu.used, cpu.unusable) == (8000, 4000, {"stolen": 4000})


@pytest.mark.parametrize("stolen", [0, 777])
def test_a_counter_of_stolen_time_that_falls_or_stays_is_no_stolen_time(
    sampler: HostSampler, fake_proc: "FakeProc", stolen: int
) -> None:
    fake_proc.host(busy=1300, stolen=stolen)
    assert cpu_of(sampler).unusable == {}


def test_use_is_rounded_up_and_batch_down(sampler: HostSampler, fake_proc: "FakeProc", clock: Clock) -> None:
    clock.now += 1
    fake_proc.host(busy=1100)
    fake_proc.process(5, start=50, own=60)
    cpu = cpu_of(sampler)
    assert (cpu.used, cpu.batch_used) == (334, 166)


def test_use_is_at_most_the_capacity_and_batch_at_most_the_use(sampler: HostSampler, fake_proc: "FakeProc") -> None:
    fake_proc.host(busy=1000 + 450)
    fake_proc.process(5, start=50, own=10 + 460)
    cpu = cpu_of(sampler)
    assert (cpu.used, cpu.batch_used) == (2000, 2000)


def test_what_an_ended_child_used_in_its_last_moments_is_batch(
    sampler: HostSampler, fake_proc: "FakeProc", clock: Clock
) -> None:
    fake_proc.host(busy=1400)
    fake_proc.process(6, parent=5, start=60, own=70)
    assert cpu_of(sampler).batch_used == 350
    clock.now += 2
    fake_proc.host(busy=1700)
    fake_proc.end(6)
    fake_proc.process(5, start=50, own=10, reaped=70 + 200)
    assert cpu_of(sampler).batch_used == 1000


def test_an_orphan_that_ends_keeps_its_rate_for_one_interval(
    sampler: HostSampler, fake_proc: "FakeProc", clock: Clock
) -> None:
    fake_proc.process(6, parent=5, start=60)
    fake_proc.host(busy=1100)
    cpu_of(sampler)
    clock.now += 2
    fake_proc.end(5)
    fake_proc.process(6, parent=1, start=60, own=100)
    fake_proc.host(busy=1300)
    assert cpu_of(sampler).batch_used == 500
    clock.now += 2
    fake_proc.end(6)
    fake_proc.host(busy=1500)
    assert cpu_of(sampler).batch_used == 500
    clock.now += 2
    fake_proc.host(busy=1700)
    assert cpu_of(sampler).batch_used == 0


def test_a_killed_group_of_which_the_daemon_waits_for_the_leader_alone_keeps_its_rate(
    sampler: HostSampler, fake_proc: "FakeProc", clock: Clock
) -> None:
    fake_proc.process(6, parent=5, start=60, own=0)
    fake_proc.process(7, parent=6, start=61, own=100)
    fake_proc.host(busy=1200)
    assert cpu_of(sampler).batch_used == 500
    clock.now += 2
    fake_proc.end(6)
    fake_proc.end(7)
    fake_proc.process(5, start=50, own=10, reaped=1)
    fake_proc.host(busy=1400)
    assert cpu_of(sampler).batch_used == 500


def test_a_parent_read_just_before_it_waits_does_not_count_the_child_twice(
    sampler: HostSampler, fake_proc: "FakeProc", clock: Clock
) -> None:
    fake_proc.process(6, parent=5, start=60, own=100)
    fake_proc.host(busy=1200)
    assert cpu_of(sampler).batch_used == 500
    clock.now += 2
    fake_proc.end(6)
    fake_proc.host(busy=1400)
    assert cpu_of(sampler).batch_used == 500
    clock.now += 2
    fake_proc.process(5, start=50, own=10, reaped=104)
    fake_proc.host(busy=1600)
    assert cpu_of(sampler).batch_used == 20


def test_a_daemon_named_later_does_not_bring_the_past_of_its_tree(fake_proc: "FakeProc", clock: Clock) -> None:
    fake_proc.process(5, start=50, own=9000, reaped=8000)
    fake_proc.process(6, parent=5, start=60, own=7000)
    fake_proc.process(7, parent=5, start=60, own=6000)
    sampler = HostSampler(clock, fake_proc.root)
    sampler.sample()
    clock.now += 2
    fake_proc.host(busy=400)
    fake_proc.end(7)
    fake_proc.process(5, start=50, own=9010, reaped=8000 + 6020)
    fake_proc.process(6, parent=5, start=60, own=7030)
    assert cpu_of(sampler).batch_used == (10 + 20 + 30) * 5


def test_a_process_that_was_hidden_does_not_bring_its_past(
    sampler: HostSampler, fake_proc: "FakeProc", clock: Clock
) -> None:
    fake_proc.host(busy=1400)
    fake_proc.process(7, start=70)
    cpu_of(sampler)
    clock.now += 2
    fake_proc.host(busy=1800)
    fake_proc.process(6, parent=5, start=60, own=300)
    assert cpu_of(sampler).batch_used == 0
    clock.now += 2
    fake_proc.host(busy=2200)
    fake_proc.process(6, parent=5, start=60, own=310)
    assert cpu_of(sampler).batch_used == 50


def test_a_host_counter_that_goes_backwards_costs_one_cpu_reading(
    sampler: HostSampler, fake_proc: "FakeProc", clock: Clock
) -> None:
    fake_proc.host(busy=200)
    sample = sampler.sample([DAEMON])
    assert sample.cpu is None
    assert sample.memory is not None
    assert sampler.missing == {"cpu": "CPU time of the host went backwards, from 1000 to 200 ticks"}
    clock.now += 1
    fake_proc.host(busy=220)
    assert cpu_of(sampler).used == 200


def test_a_process_counter_that_goes_backwards_costs_one_cpu_reading(
    sampler: HostSampler, fake_proc: "FakeProc", clock: Clock
) -> None:
    fake_proc.process(5, start=50, own=3)
    assert sampler.sample([DAEMON]).cpu is None
    assert sampler.missing == {"cpu": "process 5: its CPU time went backwards, from 10 to 3 ticks"}
    clock.now += 1
    assert cpu_of(sampler).batch_used == 0


def test_a_cpu_that_comes_online_costs_one_cpu_reading(
    sampler: HostSampler, fake_proc: "FakeProc", clock: Clock
) -> None:
    fake_proc.host(busy=1200, cpus=3)
    assert sampler.sample([DAEMON]).cpu is None
    assert "online CPUs went from 2 to 3" in sampler.missing["cpu"]
    clock.now += 1
    assert cpu_of(sampler).capacity == 3000


@pytest.mark.parametrize("step", [0.0, -5.0])
def test_without_time_between_there_is_no_cpu_reading(
    sampler: HostSampler, fake_proc: "FakeProc", clock: Clock, step: float
) -> None:
    clock.now = 1000.0 + step
    assert sampler.sample([DAEMON]).cpu is None
    assert "needs time between two readings" in sampler.missing["cpu"]
    clock.now = 1001.0
    fake_proc.host(busy=1050)
    assert cpu_of(sampler).used == 500


def test_unreadable_counters_do_not_cost_memory_and_the_next_reading_spans_the_gap(
    sampler: HostSampler, fake_proc: "FakeProc", clock: Clock
) -> None:
    fake_proc.write("stat", "")
    sample = sampler.sample([DAEMON])
    assert sample.cpu is None
    assert sample.memory is not None
    assert f"{fake_proc.root}/stat: expected" in sampler.missing["cpu"]
    clock.now += 2
    fake_proc.host(busy=1100)
    assert cpu_of(sampler).used == 250


def test_unreadable_memory_does_not_cost_cpu(sampler: HostSampler, fake_proc: "FakeProc") -> None:
    fake_proc.write("meminfo", "")
    sample = sampler.sample([DAEMON])
    assert sample.cpu is not None
    assert sample.memory is None
    assert list(sampler.missing) == ["memory"]


def test_without_the_list_of_processes_nothing_is_known(sampler: HostSampler, fake_proc: "FakeProc") -> None:
    fake_proc.write("5/stat", "garbage")
    assert sampler.sample([DAEMON]) == NodeSample()
    assert list(sampler.missing) == ["cpu", "memory"]


def test_memory_of_batch_is_the_private_memory_of_its_tree(sampler: HostSampler, fake_proc: "FakeProc") -> None:
    fake_proc.host(busy=1000, total_kib=1_000_000, available_kib=600_000)
    fake_proc.process(5, start=50, own=10, private_pages=1000)
    fake_proc.process(6, parent=5, start=60, private_pages=2000)
    fake_proc.process(7, parent=1, start=60, private_pages=4000)
    memory = sampler.sample([DAEMON]).memory
    assert memory is not None
    assert (memory.capacity, memory.used, memory.batch_used) == (1_024_000_000, 409_600_000, 3000 * PAGE_BYTES)
    assert memory.terms == {
        "memory_total_bytes": 1_024_000_000,
        "memory_unused_bytes": 614_400_000,
        "memory_behind_watermarks_bytes": 0,
        "memory_in_cpu_lists_bytes": 0,
        "batch_memory_bytes": 3000 * PAGE_BYTES,
        "batch_processes": 2,
    }


def test_memory_of_batch_is_at_most_the_use(sampler: HostSampler, fake_proc: "FakeProc") -> None:
    fake_proc.host(busy=1000, total_kib=1_000, available_kib=600)
    fake_proc.process(5, start=50, own=10, private_pages=1000)
    memory = sampler.sample([DAEMON]).memory
    assert memory is not None
    assert memory.batch_used == memory.used == 400 * 1024


BURN = "while True: pass"
DAEMON_WITH_CHILD = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {BURN!r}])
print(child.pid, flush=True)
time.sleep(60)
"""


def test_on_this_host_a_task_is_batch_even_after_its_daemon_was_killed() -> None:
    with running(BURN), running(DAEMON_WITH_CHILD) as daemon:
        assert daemon.stdout is not None
        child = os.pidfd_open(int(daemon.stdout.readline()))
        try:
            daemons = [read_processes(PROC_ROOT)[daemon.pid].process]
            sampler = HostSampler()
            cpu = sample_until(sampler, daemons, lambda cpu: cpu.terms["batch_ticks"] >= 1)
            assert cpu.terms["batch_processes"] == 2
            assert cpu.terms["busy_ticks"] > cpu.terms["batch_ticks"]
            daemon.kill()
            daemon.wait()
            sampler.sample(daemons)
            cpu = sample_until(sampler, daemons, lambda cpu: cpu.terms["batch_ticks"] >= 1)
            assert cpu.terms["batch_processes"] == 1
            assert 0 < cpu.batch_used <= cpu.used <= cpu.capacity
        finally:
            signal.pidfd_send_signal(child, signal.SIGKILL)
            os.close(child)


def sample_until(sampler: HostSampler, daemons: list[Process], enough: Callable[[Usage], bool]) -> Usage:
    for _ in range(100):
        time.sleep(0.15)
        cpu = sampler.sample(daemons).cpu
        if cpu is not None and enough(cpu):
            return cpu
    raise AssertionError(sampler.missing)


@contextmanager
def running(code: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_memory_behind_watermarks_is_not_in_use_and_cannot_be_used(fake_proc: "FakeProc", clock: Clock) -> None:
    fake_proc.host(total_kib=64 << 20, available_kib=0, free_kib=24 << 20)
    memory = HostSampler(clock, fake_proc.root).sample().memory
    assert memory is not None
    assert (memory.used, memory.unusable) == (40 << 30, {"behind watermarks": 24 << 30})
