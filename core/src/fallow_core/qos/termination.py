"""One task on its way out: what is known of it, and what its age and the answers to its orders make of it."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from fallow_core.model.qos_policy import TerminationPolicy
from fallow_core.model.task import ApplicationKey, TaskKey
from fallow_hookspecs import KillAnswer, KillOrder, KillResult

LONGEST_BACK_OFF_SECONDS = 3600.0


class Phase(StrEnum):
    """`FAILED`: it is not being freed; who else could be terminated is looked for."""

    GRACEFUL = "graceful"
    FORCED = "forced"
    FAILED = "failed"


class Route(StrEnum):
    """Who is given the order: the plugin on the node, the controller's instance of it, or the Eviction API."""

    PLUGIN = "plugin"
    CONTROLLER = "controller"
    EVICTION = "eviction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Termination:
    """One task on its way out; times are seconds of the caller's clock.

    `ours`: Fallow ends it; else the framework does, and nothing is ordered. `ordered_at`: the first time, the grace
    counts from it. `asked_at`: the newest order that was given; `None` if one is due at once. `answered`: somebody took
    it. `note`: why it failed, or what the newest answer complained of. `attempts`: this one included. `floor_of`: the
    framework's node that has it in its floor; see `floors`.
    """

    key: TaskKey
    application: ApplicationKey
    reason: str
    ordered_at: float
    grace_seconds: float
    ours: bool = True
    phase: Phase = Phase.GRACEFUL
    route: Route = Route.PLUGIN
    asked_at: float | None = None
    answered: bool = False
    forced_at: float | None = None
    failed_at: float | None = None
    note: str = ""
    attempts: int = 1
    floor_of: str = ""

    @property
    def is_under_way(self) -> bool:
        """Whether its task counts as being freed."""
        return self.phase is not Phase.FAILED

    @property
    def strategy(self) -> str:
        """The strategy that chose it: its reason begins with it."""
        return self.reason.partition(":")[0]

    @property
    def was_hit(self) -> bool:
        """Whether somebody took an order to end it, as far as is known."""
        return self.ours and (self.answered or self.forced_at is not None)

    def grown_older(self, now: float) -> "Termination":
        """Forced once its grace has passed."""
        if not self.ours or self.phase is not Phase.GRACEFUL or now < self.ordered_at + self.grace_seconds:
            return self
        return replace(self, phase=Phase.FORCED, forced_at=now, asked_at=None, answered=False)

    def is_due(self, policy: TerminationPolicy, now: float) -> bool:
        """Whether an order is to be given now."""
        if not self.ours or not self.is_under_way or self.answered:
            return False
        return self.asked_at is None or now - self.asked_at >= policy.repeat_seconds

    def is_overdue(self, policy: TerminationPolicy, now: float) -> bool:
        """Whether it should be gone. One of ours can only fail once it was forced, however late that was."""
        if not self.is_under_way:
            return False
        if self.ours:
            return self.forced_at is not None and now >= self.forced_at + policy.margin_seconds
        return now >= self.ordered_at + self.grace_seconds + policy.margin_seconds

    def answered_with(self, answer: KillAnswer, now: float) -> "Termination":
        """After an answer to its newest order. Nothing changes where the order failed: it will be given again."""
        match answer.result:
            case KillResult.TERMINATING | KillResult.ALREADY_GONE:
                return replace(self, answered=True, note="")
            case KillResult.EVICT if self.route is not Route.EVICTION:
                return replace(self, route=Route.EVICTION, asked_at=None)
            case KillResult.NO_ACCESS if self.route is Route.PLUGIN:
                return replace(self, route=Route.CONTROLLER, asked_at=None, note=answer.reason)
            case KillResult.NO_ACCESS | KillResult.SPARED:
                return self.failed(f"{answer.result}: {answer.reason}", now)
            case _:
                return replace(self, note=answer.reason)

    def failed(self, why: str, now: float) -> "Termination":
        """It could not be terminated."""
        return replace(self, phase=Phase.FAILED, failed_at=now, note=f"{why} ({self.note})" if self.note else why)

    def is_left_alone(self, policy: TerminationPolicy, now: float) -> bool:
        """Whether it failed so lately that it is not tried again: twice as long after each attempt."""
        seconds = min(policy.back_off_seconds * 2.0 ** (self.attempts - 1), LONGEST_BACK_OFF_SECONDS)
        return self.failed_at is not None and now < self.failed_at + seconds


class Hit(NamedTuple):
    """An application lost a task then."""

    application: ApplicationKey
    at: float


class FloorLoss(NamedTuple):
    """The floor of a framework's node lost a task, which was chosen to end then."""

    cluster: str
    framework_node: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminations:
    """All terminations of a node. Of those that are over `hits`, as far back as budgets reach, and `floor_losses`."""

    active: tuple[Termination, ...] = ()
    hits: tuple[Hit, ...] = ()
    floor_losses: tuple[FloorLoss, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order to be given now, to whom and for which cluster."""

    cluster: str
    route: Route
    order: KillOrder
