"""Combines the strategies of one node: which tasks to terminate now, and for which need.

The order is fixed: memory pressure, CPU, overdraft. For each strategy the victims of the earlier ones are already
terminating, so no task is chosen twice, and what is freed counts for both needs.

A strategy in observe mode takes the same steps. For all observing strategies its victims count as terminating until
they are gone, so each termination is reported once, and then what would have followed. Enforcing strategies see only
real terminations.

Throttling comes first (`relief`): while it may still free what is lacking, no task is terminated.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from fallow_core.model.qos_policy import QosPolicy, StrategyMode, TerminationPolicy
from fallow_core.model.task import TaskKey
from fallow_core.qos import cpu_evict, memory_evict, overdraft_evict
from fallow_core.qos.cpu_evict import CpuEvictState
from fallow_core.qos.memory_evict import MemoryEvictState
from fallow_core.qos.need import Need, NodeView
from fallow_core.qos.overdraft_evict import OverdraftEvictState
from fallow_core.qos.victims import Choice, History, choose

PRESSURE = ("memory_evict", "cpu_evict")
"""The strategies that act on measured pressure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanState:
    """The states of the strategies. `would_terminate`: the victims of observing strategies."""

    memory_evict: MemoryEvictState = field(default_factory=MemoryEvictState)
    cpu_evict: CpuEvictState = field(default_factory=CpuEvictState)
    overdraft_evict: OverdraftEvictState = field(default_factory=OverdraftEvictState)
    would_terminate: frozenset[TaskKey] = frozenset()


def plan(view: NodeView, policy: QosPolicy, state: PlanState, history: History) -> tuple[PlanState, tuple[Choice, ...]]:
    """The choices for a node; only those whose need says `enforce` are carried out.

    A choice without victims means that no task may be terminated for the need.
    """
    view = replace(view, stale_seconds=policy.stale_seconds)
    would_terminate = (
        state.would_terminate & {task.key for task in view.tasks} if view.tasks_complete else state.would_terminate
    )
    combined = _Combined(view, policy.termination, history, would_terminate)
    memory = partial(memory_evict.decide, critical_percent=policy.memory_reclaim.critical_percent)
    state = PlanState(
        memory_evict=combined.step(memory, policy.memory_evict, state.memory_evict, MemoryEvictState()),
        cpu_evict=combined.step(cpu_evict.decide, policy.cpu_evict, state.cpu_evict, CpuEvictState()),
        overdraft_evict=combined.step(
            overdraft_evict.decide, policy.overdraft_evict, state.overdraft_evict, OverdraftEvictState()
        ),
        would_terminate=combined.would_terminate,
    )
    return state, tuple(combined.choices)


def still_lacking(view: NodeView, policy: QosPolicy, state: PlanState) -> frozenset[str]:
    """The strategies against pressure whose condition is true at this moment, with the state that `plan` returned."""
    view, memory = replace(view, stale_seconds=policy.stale_seconds), policy.memory_evict
    lacks = {
        "memory_evict": memory.mode is not StrategyMode.OFF and memory_evict.lacking(view, memory) > 0,
        "cpu_evict": state.cpu_evict.low.samples > 0,
    }
    return frozenset(name for name in PRESSURE if lacks[name])


class _StrategyPolicy(Protocol):
    @property
    def mode(self) -> StrategyMode: ...


_Policy = TypeVar("_Policy", bound=_StrategyPolicy)
_State = TypeVar("_State")


@dataclass(slots=True)
class _Combined:
    """The strategies so far. `chosen`: the victims of enforcing ones."""

    view: NodeView
    policy: TerminationPolicy
    history: History
    would_terminate: frozenset[TaskKey]
    chosen: frozenset[TaskKey] = frozenset()
    choices: list[Choice] = field(default_factory=list)

    def step(
        self,
        decide: Callable[[NodeView, _Policy, _State], tuple[_State, Need | None]],
        policy: _Policy,
        state: _State,
        unused: _State,
    ) -> _State:
        """Ask one strategy; `unused` is the state of a strategy that is off."""
        if policy.mode is StrategyMode.OFF:
            return unused
        observes = policy.mode is StrategyMode.OBSERVE
        victims_before = self.chosen | self.would_terminate if observes else self.chosen
        view = replace(self.view, terminating=self.view.terminating | victims_before)
        state, need = decide(view, policy, state)
        if need is not None:
            choice = choose(need, view, self.policy, self._history(victims_before - self.view.terminating))
            victims = frozenset(victim.task.key for victim in choice.victims)
            self.choices.append(choice)
            self.would_terminate |= victims if observes else frozenset()
            self.chosen |= frozenset() if observes else victims
        return state

    def _history(self, victims: frozenset[TaskKey]) -> History:
        """With the terminations that were chosen in this round."""
        counts = Counter(task.application_key for task in self.view.tasks if task.key in victims)
        return replace(self.history, recent_terminations=counts + Counter(self.history.recent_terminations))
