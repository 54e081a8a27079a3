"""What this kernel tells by itself, and what it counts; and that it ends all of a group at once."""

import os
import select
import threading
from collections import defaultdict

from tests.e2e.guest.conftest import Start, until

from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.kernel_events import KernelEvents
from fallow_core.node.quick_probe import CpuReading, QuickProbe

SPINS = ("sh", "-c", "while :; do :; done")


def test_a_group_is_ended_with_all_that_it_starts_meanwhile(hierarchy: Hierarchy, top: str, start: Start) -> None:
    batch = f"{top}/batch"
    hierarchy.make(batch, "cpu.weight")
    start(batch, "sh", "-c", "while :; do sleep 0.05 & done")
    until(lambda: len(hierarchy.processes(batch)) > 3, "its children")
    hierarchy.write(batch, "cgroup.kill", "1")
    until(lambda: "populated 0" in hierarchy.read(batch, "cgroup.events"), "the end of the group")
    hierarchy.remove(batch)


def test_pressure_in_a_group_wakes_who_waits_for_it(hierarchy: Hierarchy, top: str, start: Start) -> None:
    online, other = f"{top}/online", f"{top}/other"
    for group in (online, other):
        hierarchy.make(group, "cpu.weight")
    triggers = {}
    poll = select.poll()
    for group in (online, other):
        file = os.open(hierarchy.path(group, "cpu.pressure"), os.O_RDWR | os.O_NONBLOCK)
        os.write(file, b"some 50000 1000000")
        poll.register(file, select.POLLPRI)
        triggers[file] = group
    try:
        for _ in range(3):
            start(online, "taskset", "-c", "0", *SPINS)
        assert {triggers[file] for file, _ in poll.poll(40_000)} == {online}
    finally:
        for file in triggers:
            os.close(file)


def test_pressure_on_the_node_and_groups_that_come_and_go_wake_the_loop(
    hierarchy: Hierarchy, top: str, start: Start
) -> None:
    heard: defaultdict[str, threading.Event] = defaultdict(threading.Event)
    wakes = KernelEvents(lambda name: heard[name].set(), lambda: heard["changed"].set())
    try:
        assert (wakes.missing, wakes.has("cpu"), wakes.has("memory")) == ({}, True, True)
        wakes.watch([hierarchy.path(top)])
        hierarchy.make(f"{top}/task", "cpu.weight")
        assert heard["changed"].wait(40)
        heard["changed"].clear()
        hierarchy.remove(f"{top}/task")
        assert heard["changed"].wait(40)
        for _ in range(3):
            start("", "taskset", "-c", "0", *SPINS)
        assert heard["cpu"].wait(40)
    finally:
        wakes.close()


def test_a_quick_look_tells_batch_from_the_rest(hierarchy: Hierarchy, top: str, start: Start) -> None:
    batch = f"{top}/batch"
    hierarchy.make(batch, "cpu.weight")
    start(batch, *SPINS)
    quick = QuickProbe()
    idle, busy = CpuReading(0, 9999), CpuReading(0, 0)
    try:
        until(lambda: (quick.cpu([batch]) or idle).others_milli < 600, "a look at a node where only batch is busy")
        until(lambda: (quick.cpu([batch]) or busy).batch_milli > 600, "a look at the batch that is busy")
        until(lambda: (quick.cpu([]) or busy).others_milli > 600, "a look at a node that is busy")
        memory = quick.memory_used(1 << 40)
        assert memory is not None
        assert 0 < memory < 1 << 30
    finally:
        quick.close()
