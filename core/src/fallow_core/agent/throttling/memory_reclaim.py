"""Pushes cold memory of batch out, step by step, in a thread of its own: the kernel takes as long as it takes."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fallow_core.agent.throttling.batch_groups import BatchGroup
from fallow_core.agent.throttling.tree import Tree
from fallow_core.errors import CgroupError
from fallow_core.log import event
from fallow_core.model.qos_policy import MemoryReclaimPolicy, StrategyMode
from fallow_core.node.cgroups import memory
from fallow_core.node.cgroups.control_file import Knob
from fallow_core.qos import memory_reclaim
from fallow_core.qos.memory_reclaim import GroupMemory, MemoryReclaimState, Reclaim
from fallow_core.qos.need import NodeView

log = logging.getLogger("fallow.agent")

REMEMBERED_STEPS = 50


@dataclass(slots=True, kw_only=True)
class Step:
    """One step that was decided at `at`. `brought`: by how much each group's charge fell meanwhile, once it is over."""

    at: float
    reclaim: Reclaim
    brought: dict[str, int] = field(default_factory=dict)
    problem: str = ""
    over: bool = False


def in_thread(act: Callable[[], None]) -> None:
    """Start it, and do not wait for its end."""
    threading.Thread(target=act, name="reclaim", daemon=True).start()


class Reclaiming:
    """What was decided and done about memory of batch. Every method belongs to the thread that ticks it.

    `unavailable` says of a group why nothing can be pushed out of it.
    """

    def __init__(self, tree: Tree, start: Callable[[Callable[[], None]], None] = in_thread) -> None:
        self.state = MemoryReclaimState()
        self.steps: deque[Step] = deque(maxlen=REMEMBERED_STEPS)
        self.unavailable: dict[str, str] = {}
        self.pushed_out_bytes = 0
        self._tree = tree
        self._start = start
        self._running: Step | None = None

    def untouched(self, group: str) -> frozenset[Knob]:
        """The knobs that a step under way changes."""
        running = self._running
        return frozenset({Knob.MEMORY, Knob.HIGH}) if running is not None and group in running.reclaim.groups else _NONE

    def step(self, view: NodeView, groups: Mapping[str, BatchGroup], policy: MemoryReclaimPolicy) -> None:
        """Take the result of the newest step, and begin the next if one is due."""
        self._settle()
        if policy.mode is StrategyMode.OFF:
            self.state, self.unavailable = MemoryReclaimState(), {}
            return
        lowered = self._lowered(groups)
        before = self.state
        self.state, reclaim = memory_reclaim.decide(view, self._cold(lowered), policy, self.state)
        if reclaim is None or self._running is not None:
            return
        step = Step(at=view.now, reclaim=reclaim, over=not reclaim.enforce)
        if before.begun_at is None:
            name = "memory_reclaim" if reclaim.enforce else "memory_would_reclaim"
            event(log, logging.INFO, name, groups=",".join(reclaim.groups), why=reclaim.why, **reclaim.terms)
        self.steps.append(step)
        if not reclaim.enforce:
            return
        for group in reclaim.groups:
            knob = lowered[group]
            if knob is not None and not self._tree.knobs.keep(group, knob, groups[group].clusters):
                step.problem, step.over = self._tree.knobs.problems.get(group, "the group is gone"), True
                return
        self._running = step
        self._start(lambda: self._push_out(step, lowered))

    def _lowered(self, groups: Mapping[str, BatchGroup]) -> dict[str, Knob | None]:
        """Of each group that memory can be pushed out of, which limit is lowered for it."""
        self.unavailable, found = {}, {}
        for path, group in groups.items():
            if group.home is not None and path not in self._tree.knobs.kept:
                self.unavailable[path] = "its group is not made yet"
                continue
            try:
                found[path] = memory.lowered_knob(self._tree.hierarchy, path)
            except (OSError, CgroupError) as error:
                self.unavailable[path] = str(error)
        return found

    def _cold(self, lowered: Mapping[str, Knob | None]) -> dict[str, GroupMemory]:
        swap_free, found = memory.swap_free_bytes(self._tree.hierarchy), {}
        for path in lowered:
            try:
                found[path] = memory.cold_memory(self._tree.hierarchy, path, swap_free)
            except (OSError, CgroupError) as error:
                self.unavailable[path] = str(error)
        return found

    def _push_out(self, step: Step, lowered: Mapping[str, Knob | None]) -> None:
        """In a thread of its own; nothing but the step is touched."""
        hierarchy = self._tree.hierarchy
        for group, amount in step.reclaim.groups.items():
            try:
                before = memory.used_bytes(hierarchy, group)
                memory.push_out(hierarchy, group, amount, lowered[group])
                step.brought[group] = max(before - memory.used_bytes(hierarchy, group), 0)
            except (OSError, CgroupError) as error:
                step.problem = f"/{group}: {error}"
        step.over = True

    def _settle(self) -> None:
        step = self._running
        if step is None or not step.over:
            return
        self._running = None
        self.pushed_out_bytes += sum(step.brought.values())
        if step.problem:
            event(log, logging.WARNING, "memory_not_reclaimed", reason=step.problem)


_NONE: frozenset[Knob] = frozenset()
