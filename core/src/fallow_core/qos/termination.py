"""One termination: its state, and the transitions by its age and by the answers to its orders."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from fallow_core.model.qos_policy import TerminationPolicy
from fallow_core.model.task import ApplicationKey, TaskKey
from fallow_hookspecs import KillAnswer, KillOrder, KillResult

LONGEST_BACK_OFF_SECONDS = 3600.0
MOST_DOUBLINGS = 30
"""More exceed the longest back-off anyway, and in the end a float."""


class Phase(StrEnum):
    """`FAILED`: the task is not being freed, so other tasks are considered."""

    GRACEFUL = "graceful"
    FORCED = "forced"
    FAILED = "failed"


class Route(StrEnum):
    """Who gets the order: the plugin on the node, the controller's instance of it, or the Eviction API."""

    PLUGIN = "plugin"
    CONTROLLER = "controller"
    EVICTION = "eviction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Termination:
    """The termination of one task; times are seconds of the caller's clock.

    `ours`: Fallow terminates the task; otherwise its framework does, and no order is given. `ordered_at`: the first
    order; the grace counts from it. `asked_at`: the newest order; `None` if one is due at once. `answered`: the newest
    order was accepted. `withdrawn`: its cluster was restored, so no further order is given, and the task may go on.
    `note`: why it failed, or the problem in the newest answer. `attempts` includes this one.
    `floor_of`: the framework's node whose floor contains the task; see `given_up_floors`. `memory_bytes`: what the task
    was last seen to use.
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
    withdrawn: bool = False
    forced_at: float | None = None
    failed_at: float | None = None
    note: str = ""
    attempts: int = 1
    floor_of: str = ""
    memory_bytes: int = 0

    @property
    def is_under_way(self) -> bool:
        """Whether its task counts as being freed."""
        return self.phase is not Phase.FAILED

    @property
    def strategy(self) -> str:
        """The strategy that chose the task: the beginning of the reason."""
        return self.reason.partition(":")[0]

    @property
    def was_accepted(self) -> bool:
        """Whether an order to terminate the task was accepted, or forced."""
        return self.ours and (self.answered or self.forced_at is not None)

    @property
    def _gets_orders(self) -> bool:
        return self.ours and not self.withdrawn

    def forced_if_due(self, now: float) -> "Termination":
        """Forced if its grace has passed."""
        if not self._gets_orders or self.phase is not Phase.GRACEFUL or now < self.ordered_at + self.grace_seconds:
            return self
        return replace(self, phase=Phase.FORCED, forced_at=now, asked_at=None, answered=False)

    def is_due(self, policy: TerminationPolicy, now: float) -> bool:
        """Whether an order is to be given now."""
        if not self._gets_orders or not self.is_under_way or self.answered:
            return False
        return self.asked_at is None or now - self.asked_at >= policy.repeat_seconds

    def is_overdue(self, policy: TerminationPolicy, now: float) -> bool:
        """Whether the task should be gone. One of ours fails only after it was forced, however late that was."""
        if not self.is_under_way:
            return False
        if self._gets_orders:
            return self.forced_at is not None and now >= self.forced_at + policy.margin_seconds
        return now >= self.ordered_at + self.grace_seconds + policy.margin_seconds

    def answered_with(self, answer: KillAnswer, now: float) -> "Termination":
        """The state after an answer to the newest order. A failure changes only the note: the order is repeated."""
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
        """The failed state."""
        return replace(self, phase=Phase.FAILED, failed_at=now, note=f"{why} ({self.note})" if self.note else why)

    def is_left_alone(self, policy: TerminationPolicy, now: float) -> bool:
        """Whether its back-off time runs, which doubles with each attempt."""
        doublings = min(self.attempts - 1, MOST_DOUBLINGS)
        seconds = min(policy.back_off_seconds * 2.0**doublings, LONGEST_BACK_OFF_SECONDS)
        return self.failed_at is not None and now < self.failed_at + seconds


class Hit(NamedTuple):
    """When an application lost a task."""

    application: ApplicationKey
    at: float


class FloorLoss(NamedTuple):
    """When a task within the floor of a framework's node was chosen for termination."""

    cluster: str
    framework_node: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminations:
    """All terminations of a node. `hits` and `floor_losses` are those of finished terminations that still count."""

    active: tuple[Termination, ...] = ()
    hits: tuple[Hit, ...] = ()
    floor_losses: tuple[FloorLoss, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order that is due now, with its route and its cluster."""

    cluster: str
    route: Route
    order: KillOrder
