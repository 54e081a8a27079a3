"""Reclaims cold memory of batch step by step, in a thread of its own, since the kernel may take long for a step."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fallow_core.agent.throttling.batch_groups import BatchGroup
from fallow_core.agent.throttling.refusals import RETRY_SECONDS, UNSUPPORTED
from fallow_core.agent.throttling.tree import Tree
from fallow_core.errors import CgroupError
from fallow_core.log import event
from fallow_core.model.control_file import ControlFile
from fallow_core.model.qos_policy import MemoryReclaimPolicy, StrategyMode
from fallow_core.node.cgroups import memory
from fallow_core.qos import memory_reclaim
from fallow_core.qos.memory_reclaim import GroupMemory, MemoryReclaimState, Reclaim
from fallow_core.qos.need import NodeView

log = logging.getLogger("fallow.agent")

REMEMBERED_STEPS = 50


@dataclass(slots=True, kw_only=True)
class ReclaimStep:
    """One step, decided at `at`. `reclaimed`: how much the charge of each group fell, once the step is `finished`.

    `unsupported`: the groups whose kernel refused it for good, and why.
    """

    at: float
    reclaim: Reclaim
    reclaimed: dict[str, int] = field(default_factory=dict)
    problem: str = ""
    unsupported: dict[str, str] = field(default_factory=dict)
    finished: bool = False


def in_thread(act: Callable[[], None]) -> None:
    """Run it in a new thread, without waiting."""
    threading.Thread(target=act, name="reclaim", daemon=True).start()


class MemoryReclaimer:
    """Decides steps and runs them, one at a time. Every method belongs to the thread of the loop.

    `unavailable`: why no memory of a group can be reclaimed.
    """

    def __init__(self, tree: Tree, start: Callable[[Callable[[], None]], None] = in_thread) -> None:
        self.state = MemoryReclaimState()
        self.steps: deque[ReclaimStep] = deque(maxlen=REMEMBERED_STEPS)
        self.unavailable: dict[str, str] = {}
        self.reclaimed_bytes = 0
        self._tree = tree
        self._start = start
        self._running: ReclaimStep | None = None
        self._mode = StrategyMode.OFF
        self._unsupported: dict[str, tuple[float, str]] = {}

    def untouched(self, group: str) -> frozenset[ControlFile]:
        """The files that the running step changes."""
        if self._running is None or group not in self._running.reclaim.groups:
            return frozenset()
        return frozenset({ControlFile.MEMORY, ControlFile.HIGH})

    def take_result(self) -> None:
        """Take the result of the running step if it has finished."""
        step = self._running
        if step is None or not step.finished:
            return
        self._running = None
        self._unsupported |= {group: (step.at, why) for group, why in step.unsupported.items()}
        self.reclaimed_bytes += sum(step.reclaimed.values())
        if step.problem:
            event(log, logging.WARNING, "memory_not_reclaimed", reason=step.problem)

    def step(self, view: NodeView, groups: Mapping[str, BatchGroup], policy: MemoryReclaimPolicy) -> None:
        """Start the next step if it is due."""
        if policy.mode is not self._mode:
            # Steps that were only observed freed nothing: the time that reclaiming has begins with the first real one.
            self._mode, self.state = policy.mode, MemoryReclaimState()
        if policy.mode is StrategyMode.OFF:
            self.unavailable = {}
            return
        refused = {group: found for group, found in self._unsupported.items() if view.now - found[0] < RETRY_SECONDS}
        self._unsupported = refused
        lowered = self._lowered(groups)
        before = self.state
        self.state, reclaim = memory_reclaim.decide(view, self._cold(lowered), policy, self.state)
        if reclaim is None or self._running is not None:
            return
        step = ReclaimStep(at=view.now, reclaim=reclaim, finished=not reclaim.enforce)
        if before.begun_at is None:
            name = "memory_reclaim" if reclaim.enforce else "memory_would_reclaim"
            event(log, logging.INFO, name, groups=",".join(reclaim.groups), why=reclaim.why, **reclaim.terms)
        self.steps.append(step)
        if not reclaim.enforce:
            return
        writer = self._tree.writer
        for group in reclaim.groups:
            file = lowered[group]
            if file is not None and not writer.save_original(group, file, groups[group].clusters):
                step.problem, step.finished = writer.problems.get(group, "the group is gone"), True
                return
        try:
            self._start(lambda: self._run(step, lowered))
        except RuntimeError as error:
            step.problem, step.finished = f"no thread can be started: {error}", True
        else:
            self._running = step

    def _lowered(self, groups: Mapping[str, BatchGroup]) -> dict[str, ControlFile | None]:
        """For each group whose memory can be reclaimed, the limit that is lowered to do so."""
        self.unavailable, found = {}, {}
        for path, group in groups.items():
            if group.home is not None and path not in self._tree.writer.changed_groups:
                self.unavailable[path] = "its group is not made yet"
                continue
            if path in self._unsupported:
                self.unavailable[path] = f"{self._unsupported[path][1]}; it is tried again every 10 minutes"
                continue
            try:
                found[path] = memory.lowered_limit(self._tree.hierarchy, path)
            except (OSError, CgroupError) as error:
                self.unavailable[path] = str(error)
        return found

    def _cold(self, lowered: Mapping[str, ControlFile | None]) -> dict[str, GroupMemory]:
        swap_free, found = memory.swap_free_bytes(self._tree.hierarchy), {}
        for path in lowered:
            try:
                found[path] = memory.cold_memory(self._tree.hierarchy, path, swap_free)
            except (OSError, CgroupError) as error:
                self.unavailable[path] = str(error)
        return found

    def _run(self, step: ReclaimStep, lowered: Mapping[str, ControlFile | None]) -> None:
        """In a thread of its own; it changes nothing but the step."""
        hierarchy = self._tree.hierarchy
        for group, amount in step.reclaim.groups.items():
            try:
                before = memory.used_bytes(hierarchy, group)
                memory.reclaim(hierarchy, group, amount, lowered[group])
                step.reclaimed[group] = max(before - memory.used_bytes(hierarchy, group), 0)
            except (OSError, CgroupError) as error:
                step.problem = f"/{group}: {error}"
                if isinstance(error, OSError) and error.errno in UNSUPPORTED:
                    step.unsupported[group] = str(error)
        step.finished = True
