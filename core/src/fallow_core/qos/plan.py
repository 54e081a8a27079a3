"""All strategies of one node, joined: who is to end now, and for which need.

The order is fixed: memory pressure, CPU, overdraft. Who was chosen for one need is terminating when the next strategy
looks, so nobody ends twice and what is freed serves both.

A strategy that only observes goes through the same steps. Whom it would have ended is terminating from then on in the
eyes of observing strategies, until the task is gone: so it says each termination once, and then what would have come
next. An enforcing strategy sees only what is really termination.

Throttling comes before all of them (`throttling_first`): as long as it may still bring what is lacking, nothing ends.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from fallow_core.model.qos_policy import QosPolicy, StrategyMode, TerminationPolicy
from fallow_core.model.task import TaskKey
from fallow_core.qos import cpu_evict, memory_evict, overdraft_evict
from fallow_core.qos.cpu_evict import CpuEvictState
from fallow_core.qos.memory_evict import MemoryEvictState
from fallow_core.qos.need import Need, NodeView
from fallow_core.qos.overdraft_evict import OverdraftEvictState
from fallow_core.qos.victims import Choice, Past, choose


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanState:
    """What the strategies of a node remember. `pretended`: tasks that observing strategies would have ended."""

    memory_evict: MemoryEvictState = field(default_factory=MemoryEvictState)
    cpu_evict: CpuEvictState = field(default_factory=CpuEvictState)
    overdraft_evict: OverdraftEvictState = field(default_factory=OverdraftEvictState)
    pretended: frozenset[TaskKey] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """`possible`: it can bring something. `begun_at`: since when it does, for what is lacking now."""

    possible: bool = False
    begun_at: float | None = None

    def may_still_bring(self, window_seconds: float, now: float) -> bool:
        """Whether it is to be waited for."""
        return self.possible and (self.begun_at is None or now - self.begun_at < window_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttles:
    """What enforcing strategies do on a node before anything is terminated."""

    memory: Throttled = field(default_factory=Throttled)
    cpu: Throttled = field(default_factory=Throttled)


def throttling_first(policy: QosPolicy, throttles: Throttles, now: float) -> QosPolicy:
    """The policy by which tasks may be terminated at this moment.

    While memory that could be pushed out is, or has yet to be, tasks end only at the critical threshold. While a CPU
    limit is younger than the window of `cpu_evict`, no task ends for CPU.
    """
    memory, reclaim = policy.memory_evict, policy.memory_reclaim
    if throttles.memory.may_still_bring(reclaim.window_seconds, now):
        memory = replace(memory, threshold_percent=max(memory.threshold_percent, reclaim.critical_percent))
    cpu = policy.cpu_evict
    if throttles.cpu.may_still_bring(cpu.window_seconds, now):
        cpu = replace(cpu, slow_is_fine=True)
    return replace(policy, memory_evict=memory, cpu_evict=cpu)


def plan(view: NodeView, policy: QosPolicy, state: PlanState, past: Past) -> tuple[PlanState, tuple[Choice, ...]]:
    """Decide about a node. Only a choice whose need says `enforce` is to be carried out.

    A choice without victims says that something has to be freed and nobody may end for it.
    """
    view = replace(view, stale_seconds=policy.stale_seconds)
    pretended = state.pretended & {task.key for task in view.tasks} if view.tasks_complete else state.pretended
    joined = _Joined(view, policy.termination, past, pretended)
    state = PlanState(
        memory_evict=joined.step(memory_evict.decide, policy.memory_evict, state.memory_evict, MemoryEvictState()),
        cpu_evict=joined.step(cpu_evict.decide, policy.cpu_evict, state.cpu_evict, CpuEvictState()),
        overdraft_evict=joined.step(
            overdraft_evict.decide, policy.overdraft_evict, state.overdraft_evict, OverdraftEvictState()
        ),
        pretended=joined.pretended,
    )
    return state, tuple(joined.choices)


class _StrategyPolicy(Protocol):
    @property
    def mode(self) -> StrategyMode: ...


_Policy = TypeVar("_Policy", bound=_StrategyPolicy)
_State = TypeVar("_State")


@dataclass(slots=True)
class _Joined:
    """The strategies so far. `chosen`: whom enforcing ones chose."""

    view: NodeView
    policy: TerminationPolicy
    past: Past
    pretended: frozenset[TaskKey]
    chosen: frozenset[TaskKey] = frozenset()
    choices: list[Choice] = field(default_factory=list)

    def step(
        self,
        decide: Callable[[NodeView, _Policy, _State], tuple[_State, Need | None]],
        policy: _Policy,
        state: _State,
        unused: _State,
    ) -> _State:
        """Ask one strategy; `unused` is the state of one that is off."""
        if policy.mode is StrategyMode.OFF:
            return unused
        observes = policy.mode is StrategyMode.OBSERVE
        termination = self.chosen | self.pretended if observes else self.chosen
        view = replace(self.view, terminating=self.view.terminating | termination)
        state, need = decide(view, policy, state)
        if need is not None:
            choice = choose(need, view, self.policy, self._past(termination - self.view.terminating))
            victims = frozenset(victim.task.key for victim in choice.victims)
            self.choices.append(choice)
            self.pretended |= victims if observes else frozenset()
            self.chosen |= frozenset() if observes else victims
        return state

    def _past(self, termination: frozenset[TaskKey]) -> Past:
        """With the terminations that nobody carried out yet."""
        counts = Counter(task.application_key for task in self.view.tasks if task.key in termination)
        return replace(self.past, terminations_lately=counts + Counter(self.past.terminations_lately))
