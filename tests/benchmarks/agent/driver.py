"""`fallow agent` whose node is what runs below the group of all, so that it does not see what else this host does.

Without cluster files it has a framework of the stage: its tasks are the groups below one.
That has no daemon of which they were children; each counts as one, so that it is known to be batch.
"""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from tests.benchmarks.agent.stage import ACCOUNTING, CPU, start_ticks

from fallow_core import log
from fallow_core.config.settings import ClusterSettings
from fallow_core.model.plugin import LoadedPlugin, PluginSource
from fallow_core.model.policy import AccountPolicy
from fallow_core.model.sample import Usage
from fallow_core.node import signals
from fallow_core.node.host_sampler import HostSampler
from fallow_core.node.procfs import TICKS_PER_SECOND, CpuCounters
from fallow_core.node.quick_probe import KeptFile
from fallow_core.runtime import config_subprocess
from fallow_core.runtime.agent import AgentProcess
from fallow_hookspecs import (
    API_LEVEL,
    ClusterConfig,
    Daemon,
    Finding,
    KillAnswer,
    KillOrder,
    KillOutcome,
    KillResult,
    Node,
    Placement,
    Plugin,
    Process,
    Resources,
    Role,
    Task,
    TaskList,
    TaskPlacement,
    TaskState,
    hookimpl,
)

STILL_SHARE = 0.1
REQUESTED = Resources(10, 1 << 20)


class Groups:
    """The instance."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.known: dict[str, Task] = {}

    @hookimpl
    def list_tasks(self) -> TaskList:
        """One task a group. What was read once is not read again."""
        names = {entry.name for entry in os.scandir(CPU / self.group) if entry.is_dir()}
        for name in names - self.known.keys():
            if (task := self.read(name)) is not None:
                self.known[name] = task
        self.known = {name: task for name, task in self.known.items() if name in names}
        tasks = tuple(self.known.values())
        daemons = tuple(Daemon(process=process, framework_node="nm") for task in tasks for process in task.processes)
        return TaskList(tasks=tasks, age_seconds=0.0, complete=True, daemons=daemons)

    def read(self, name: str) -> Task | None:
        """The task of a group; none before its first process is in it."""
        try:
            pids = [int(pid) for pid in (CPU / self.group / name / "cgroup.procs").read_text().split()]
            processes = tuple(Process(pid, start_ticks(pid)) for pid in pids)
        except OSError:
            return None
        if not processes:
            return None
        return Task(
            id=name,
            application_id="app",
            framework_node="nm",
            state=TaskState.RUNNING,
            requested=REQUESTED,
            processes=processes,
            age_seconds=1.0,
        )

    @hookimpl
    def kill_tasks(self, order: KillOrder) -> KillOutcome:
        """Signal the processes."""
        for name in order.task_ids:
            signals.terminate(self.known[name].processes, order.force)
        return KillOutcome(answers=dict.fromkeys(order.task_ids, KillAnswer(result=KillResult.TERMINATING)))

    @hookimpl
    def set_cgroup_parent(self) -> Placement:
        """Each task has a group of its own."""
        return Placement(
            new_tasks_follow=True,
            tasks=tuple(TaskPlacement(task_id=name, cgroups=(f"{self.group}/{name}",)) for name in self.known),
        )

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        """Nothing to say."""
        return ()

    def close(self) -> None:
        """Nothing to close."""


class StillHost(HostSampler):
    """It reads memory, and finds as much in use as the first time: on a node that changes, probes are more frequent."""

    first: Usage | None = None

    def _memory(self) -> Usage:
        found = super()._memory()
        self.first = self.first or found
        return replace(found, used=self.first.used)


def main() -> None:
    """Arguments: the folder with fallow.yaml, the group of all, and `still` for a node whose use stays the same."""
    folder, top = Path(sys.argv[1]), sys.argv[2]
    levels = (API_LEVEL, API_LEVEL)
    plugin = Plugin(
        name="bench", api_levels=levels, config_model=lambda: cast("Any", dict), build=lambda _: Groups(f"{top}/batch")
    )
    source = PluginSource(name="bench", distribution="bench", version="1", target="driver")
    cluster = ClusterSettings(
        file=folder / "c.yaml",
        plugin=LoadedPlugin(plugin=plugin, source=source),
        config=ClusterConfig(name="b", roles=frozenset({Role.AGENT}), spec=None),
        account=AccountPolicy(),
        node_selector={},
    )
    config = config_subprocess.Reading(folder).result()
    if not config.clusters:
        config = replace(config, clusters=(cluster,))
    log.set_up("info")
    agent = AgentProcess(config)
    total = ACCOUNTING / top / "cpuacct.usage"
    agent.sampler = HostSampler(cpu=lambda _: counters(total))
    agent.prober.quick.total = KeptFile(str(total))
    if sys.argv[3:] == ["still"]:
        agent.sampler = StillHost(cpu=lambda _: still_counters())
        memory_used, first = agent.prober.quick.memory_used, agent.prober.quick.memory_used(0)
        agent.prober.quick.memory_used = lambda near: memory_used(near) and first  # type: ignore[method-assign]
    agent.run()


def counters(total: Path) -> CpuCounters:
    """The CPU time of the group of all."""
    used = int(total.read_text()) * TICKS_PER_SECOND // 1_000_000_000
    return CpuCounters(busy_ticks=used, online_cpus=os.cpu_count() or 1)


def still_counters() -> CpuCounters:
    """The same share of a core is used all the time."""
    return CpuCounters(
        busy_ticks=int(time.monotonic() * TICKS_PER_SECOND * STILL_SHARE), online_cpus=os.cpu_count() or 1
    )


if __name__ == "__main__":
    main()
