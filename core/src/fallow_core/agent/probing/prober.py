"""Between two full probes: quick probes at the interval that `schedule` asks for, and kernel events."""

import math
import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace

from fallow_core.agent.probing import schedule
from fallow_core.agent.probing.schedule import ProbeDue, ProbeReading, ProbeState, Thresholds
from fallow_core.config.settings import Config
from fallow_core.errors import CgroupError
from fallow_core.model.qos_policy import StrategyMode
from fallow_core.model.sample import NodeSample
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import find
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.kernel_events import KernelEvents
from fallow_core.node.quick_probe import QuickProbe

CONTENDED_SECONDS = 5.0
"""How long quick probes stay frequent after pressure on CPUs."""
MOST_FOLDERS = 100
LIST_INTERVAL_SECONDS = 0.3
"""The shortest interval between two lists of tasks that directory events cause."""
LONGEST_LIST_INTERVAL_SECONDS = 2.0
"""The interval doubles up to this one while events go on, so that a list does not cost more with each task that comes
and goes. It is that of lists without events; a crossed threshold causes a list at once.
"""
LISTS = 2
"""List twice: the directory of a group appears before its first process."""


class Prober:
    """Belongs to the thread of the loop. `pause`: the seconds until the next quick probe."""

    def __init__(self, config: Config, clock: Callable[[], float], on_event: Callable[[], None]) -> None:
        """Open the files of quick probes, and start to wait for kernel events.

        :param on_event: is called after each kernel event, in another thread.
        """
        self.pause = schedule.LONGEST_SECONDS
        self.quick = QuickProbe(clock, host_root=str(config.host_root))
        self.kernel_events = KernelEvents(self._on_pressure, self._on_change)
        self._clock, self._on_event = clock, on_event
        self._folders: list[str] = []
        self._tree: Hierarchy | None = None
        with suppress(CgroupError):
            self._tree = find("cpu", Files(), host_root=str(config.host_root))
        self._state = ProbeState(last=ProbeReading(at=clock()))
        self._contended_at = clock()
        self._lists_left = 0
        self._list_interval = LIST_INTERVAL_SECONDS
        self._listed_at = -math.inf

    @property
    def missing(self) -> list[str]:
        """The kernel events and readings that this host lacks: full probes notice these changes at their interval."""
        missing = [f"no kernel events for {what}: {why}" for what, why in self.kernel_events.missing.items()]
        if self.quick.missing:
            missing.append(f"CPU besides batch is measured by full probes only: {self.quick.missing}")
        return missing

    @property
    def others_milli(self) -> int | None:
        """CPU in use outside of batch groups, by the newest quick probe."""
        return self._state.last.others_milli

    def probe(self, config: Config, sample: NodeSample, groups: Collection[str]) -> ProbeDue:
        """Make a quick probe; what is due. `groups`: the batch groups that are limited."""
        now, thresholds = self._clock(), self._thresholds(config, sample, groups)
        near = thresholds.memory_capacity if thresholds.memory_threshold is None else thresholds.memory_threshold
        cpu = self.quick.cpu(groups) if thresholds.cpu_is_quick else None
        if self.quick.missing:
            thresholds = replace(thresholds, cpu_is_quick=False)  # more probes would show nothing
        reading = ProbeReading(
            at=now,
            memory_used=self.quick.memory_used(near),
            batch_milli=None if cpu is None else cpu.batch_milli,
            others_milli=None if cpu is None else cpu.others_milli,
        )
        self._state, self.pause, due = schedule.after(self._state, reading, thresholds)
        return due

    def decided(self, sample: NodeSample, groups: Iterable[str]) -> None:
        """Decisions were made with this sample. `groups`: the groups below which the groups of tasks appear."""
        self._state = schedule.decided(self._state, None if sample.memory is None else sample.memory.used)
        if self._tree is not None:
            # The group of a framework stays watched after its last task has ended.
            self._folders = self.kernel_events.watch([*map(self._tree.path, groups), *self._folders][:MOST_FOLDERS])

    def list_tasks_now(self) -> bool:
        """Whether tasks have to be listed now, because directories appeared or disappeared."""
        now = self._clock()
        since = now - self._listed_at
        if not self._lists_left or since < self._list_interval:
            return False
        calm = since >= self._list_interval + LONGEST_LIST_INTERVAL_SECONDS
        doubled = min(2 * self._list_interval, LONGEST_LIST_INTERVAL_SECONDS)
        self._list_interval = LIST_INTERVAL_SECONDS if calm else doubled
        self._lists_left, self._listed_at = self._lists_left - 1, now
        return True

    @property
    def list_tasks_in_seconds(self) -> float:
        """The seconds until tasks have to be listed for that reason."""
        due_in = max(self._listed_at + self._list_interval - self._clock(), 0.0)
        return due_in if self._lists_left else schedule.LONGEST_SECONDS

    def close(self) -> None:
        """Stop waiting for kernel events, and close all files."""
        self.kernel_events.close()
        self.quick.close()

    def _thresholds(self, config: Config, sample: NodeSample, groups: Collection[str]) -> Thresholds:
        memory, evict, suppress = sample.memory, config.qos.memory_evict, config.qos.cpu_suppress
        capacity = 0 if memory is None else memory.capacity
        acts = memory is not None and evict.mode is not StrategyMode.OFF
        contended = not self.kernel_events.has("cpu") or self._clock() - self._contended_at < CONTENDED_SECONDS
        return Thresholds(
            memory_threshold=-(-capacity * evict.threshold_percent // 100) if acts else None,
            memory_capacity=capacity,
            cpu_capacity=sample.cpu.capacity if sample.cpu is not None else 1000 * (os.cpu_count() or 1),
            cpu_is_quick=bool(groups) and suppress.mode is StrategyMode.ENFORCE and contended,
        )

    def _on_pressure(self, name: str) -> None:
        """In the thread of the kernel events."""
        if name == "cpu":
            self._contended_at = self._clock()
        self._on_event()

    def _on_change(self) -> None:
        """In the thread of the kernel events."""
        self._lists_left = LISTS
        self._on_event()


def with_others(sample: NodeSample, others_milli: int, at: float) -> NodeSample:
    """The sample with a newer CPU use outside of batch, which the limits of batch depend on."""
    cpu = sample.cpu
    if cpu is None:
        return sample
    others = min(others_milli, cpu.capacity)
    batch = min(cpu.batch_used, cpu.capacity - others)
    terms = {**cpu.terms, "others_at_a_quick_probe": others}
    newer = replace(cpu, measured_at=at, used=others + batch, batch_used=batch, terms=terms)
    return NodeSample(cpu=newer, memory=sample.memory)
