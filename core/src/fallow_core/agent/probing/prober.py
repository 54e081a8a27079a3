"""Between two full looks: quick ones at the pace that the danger asks for, and what the kernel says by itself."""

import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace

from fallow_core.agent.probing import schedule
from fallow_core.agent.probing.schedule import PaceState, ProbeDue, Quick, Thresholds
from fallow_core.config.settings import Config
from fallow_core.errors import CgroupError
from fallow_core.model.qos_policy import StrategyMode
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import find
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.kernel_events import KernelEvents
from fallow_core.node.quick_probe import QuickProbe

CONTENDED_SECONDS = 5.0
"""For so long after pressure on CPUs the quick looks stay close to one another."""
MOST_FOLDERS = 100
LIST_AGAIN_SECONDS = 0.3
"""Directories may come and go without end: tasks are listed no more often for that."""
LISTS = 2
"""So often: a directory is made before a process is in it."""


class Prober:
    """Belongs to the loop's thread. `pause`: in how many seconds the next quick look is due.

    `others_milli`: CPU in use besides batch groups, as of the newest one.
    """

    def __init__(self, config: Config, clock: Callable[[], float], wake: Callable[[], None]) -> None:
        self.pause = schedule.LONGEST_SECONDS
        self.quick = QuickProbe(clock, host_root=str(config.host_root))
        self.wakes = KernelEvents(self._on_pressure, self._on_change)
        self._clock, self._wake = clock, wake
        self._folders: list[str] = []
        self._tree: Hierarchy | None = None
        with suppress(CgroupError):
            self._tree = find("cpu", Files(), host_root=str(config.host_root))
        self._state = PaceState(last=Quick(at=clock()))
        self._contended_at = clock()
        self._lists_left = 0
        self._listed_at = clock()

    @property
    def missing(self) -> list[str]:
        """What does not wake the loop here, and what quick looks do not see: that is noticed by the clock alone."""
        missing = [f"{what} does not wake Fallow: {why}" for what, why in self.wakes.missing.items()]
        if self.quick.missing:
            missing.append(f"CPU besides batch is seen with full looks only: {self.quick.missing}")
        return missing

    @property
    def others_milli(self) -> int | None:
        """CPU in use besides batch groups, as of the newest quick look."""
        return self._state.last.others_milli

    def look(self, config: Config, sample: NodeSample, groups: Collection[str]) -> ProbeDue:
        """A quick look. `groups` are those of batch that are limited."""
        now, thresholds = self._clock(), self._thresholds(config, sample, groups)
        near = thresholds.memory_capacity if thresholds.memory_threshold is None else thresholds.memory_threshold
        cpu = self.quick.cpu(groups) if thresholds.cpu_is_quick else None
        if self.quick.missing:
            thresholds = replace(thresholds, cpu_is_quick=False)  # to look more often would show no more
        quick = Quick(
            at=now,
            memory_used=self.quick.memory_used(near),
            batch_milli=None if cpu is None else cpu.batch_milli,
            others_milli=None if cpu is None else cpu.others_milli,
        )
        self._state, self.pause, due = schedule.after(self._state, quick, thresholds)
        return due

    def decided(self, sample: NodeSample, groups: Iterable[str]) -> None:
        """Decisions were made with this sample. `groups`: where tasks appear as groups."""
        self._state = schedule.decided(self._state, None if sample.memory is None else sample.memory.used)
        if self._tree is not None:
            # A framework's group stays worth watching when its last task has ended.
            self._folders = self.wakes.watch([*map(self._tree.path, groups), *self._folders][:MOST_FOLDERS])

    def lists_again(self) -> bool:
        """Whether directories came or went since tasks were listed, and it is time to list them again."""
        now = self._clock()
        if not self._lists_left or now - self._listed_at < LIST_AGAIN_SECONDS:
            return False
        self._lists_left, self._listed_at = self._lists_left - 1, now
        return True

    @property
    def lists_in(self) -> float:
        """In how many seconds tasks are listed again because of what came or went."""
        due_in = max(self._listed_at + LIST_AGAIN_SECONDS - self._clock(), 0.0)
        return due_in if self._lists_left else schedule.LONGEST_SECONDS

    def close(self) -> None:
        """End what waits, and close all files."""
        self.wakes.close()
        self.quick.close()

    def _thresholds(self, config: Config, sample: NodeSample, groups: Collection[str]) -> Thresholds:
        memory, evicts, limits = sample.memory, config.qos.memory_evict, config.qos.cpu_suppress
        capacity = 0 if memory is None else memory.capacity
        acts = memory is not None and evicts.mode is not StrategyMode.OFF
        contended = not self.wakes.has("cpu") or self._clock() - self._contended_at < CONTENDED_SECONDS
        return Thresholds(
            memory_threshold=-(-capacity * evicts.threshold_percent // 100) if acts else None,
            memory_capacity=capacity,
            cpu_capacity=sample.cpu.capacity if sample.cpu is not None else 1000 * (os.cpu_count() or 1),
            cpu_is_quick=bool(groups) and limits.mode is StrategyMode.ENFORCE and contended,
        )

    def _on_pressure(self, name: str) -> None:
        """In the thread of `wakes`."""
        if name == "cpu":
            self._contended_at = self._clock()
        self._wake()

    def _on_change(self) -> None:
        """In the thread of `wakes`."""
        self._lists_left = LISTS
        self._wake()


def with_others(sample: NodeSample, others_milli: int, at: float) -> NodeSample:
    """The sample as if only what is not batch had changed: that is what limits of batch go by."""
    cpu = sample.cpu
    if cpu is None:
        return sample
    others = min(others_milli, cpu.capacity)
    batch = min(cpu.batch_used, cpu.capacity - others)
    terms = {**cpu.terms, "others_at_a_quick_look": others}
    newer = Usage(measured_at=at, capacity=cpu.capacity, used=others + batch, batch_used=batch, terms=terms)
    return NodeSample(cpu=newer, memory=sample.memory)
