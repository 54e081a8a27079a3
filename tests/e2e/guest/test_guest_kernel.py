"""What this kernel has beyond the knobs: all of a group ended at once, and whoever waits for pressure woken."""

import os
import select

from tests.e2e.guest.conftest import Start, until

from fallow_core.node.cgroups.hierarchy import Hierarchy


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
            start(online, "taskset", "-c", "0", "sh", "-c", "while :; do :; done")
        assert {triggers[file] for file, _ in poll.poll(40_000)} == {online}
    finally:
        for file in triggers:
            os.close(file)
