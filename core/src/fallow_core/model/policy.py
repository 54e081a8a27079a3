"""What the operator decided: the policy of a node and of publishing. Units as the names say."""

from dataclasses import dataclass, field
from enum import StrEnum

from fallow_hookspecs import ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcePolicy:
    """How much of one resource of a node may be lent.

    `watermark_percent`: the share of the node that online and batch may use together. `reserved`: the least that is
    kept for the system, in the unit of the resource. `cap_percent`: the most that is lent, in percent of the node.
    """

    watermark_percent: int
    reserved: int = 0
    cap_percent: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePolicy:
    """Policy of a node. The watermarks are those the field uses by default."""

    cpu: ResourcePolicy = field(default_factory=lambda: ResourcePolicy(watermark_percent=60))
    memory: ResourcePolicy = field(default_factory=lambda: ResourcePolicy(watermark_percent=65))

    def of(self, resource: ResourceName) -> ResourcePolicy:
        """The policy of one resource."""
        return self.cpu if resource == "cpu" else self.memory


class PublishingMode(StrEnum):
    """`OBSERVE`: everything is computed and shown, nothing is sent. `ENFORCE`: what is due is sent."""

    OBSERVE = "observe"
    ENFORCE = "enforce"


class SwitchState(StrEnum):
    """What the operator wants of one cluster.

    `LEND`: normal. `HOLD`: no growth. `DRAIN`: no new work. `RESTORED`: the sizes of the beginning are back and
    nothing is published until the operator switches to something else.
    """

    LEND = "lend"
    HOLD = "hold"
    DRAIN = "drain"
    RESTORED = "restored"


class TakeBack(StrEnum):
    """Whether a framework's own scheduler may be told to end work of a cluster where that charges no application."""

    ALLOWED = "allowed"
    NEVER = "never"


class ExitMode(StrEnum):
    """Which sizes an orderly stop leaves behind: the newest, the floors, or those found first."""

    HOLD = "hold"
    FLOOR = "floor"
    ORIGINAL = "original"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishingPolicy:
    """When and how sizes are sent.

    `band_percent`: a change of less than this share of the size is not worth a call. `growth_hold_seconds`: growth
    goes to the smallest target of this time. `in_flight_seconds`: after this time without its effect, a call is given
    up as carried out. `degrade_after_seconds` and `withdraw_after_seconds`: ages of a node's sample after which
    nothing grows, and after which the node drains. `drain_step_percent`: share of batch capacity by which an account
    above its fair share drains for one that waits.
    """

    mode: PublishingMode = PublishingMode.OBSERVE
    band_percent: int = 10
    growth_hold_seconds: float = 60.0
    in_flight_seconds: float = 60.0
    degrade_after_seconds: float = 60.0
    withdraw_after_seconds: float = 900.0
    drain_step_percent: int = 5
    publish_interval_seconds: float = 5.0
    urgent_interval_seconds: float = 1.0
    report_interval_seconds: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The most that an account gets of one resource: an amount, or a share of batch capacity in percent."""

    amount: int | None = None
    percent: int | None = None

    def of(self, batch: int) -> int | None:
        """The limit as an amount; `None` if there is none."""
        if self.percent is not None:
            return batch * self.percent // 100
        return self.amount


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPolicy:
    """What the operator decided about one account: its weight against others, its limits, and its switch."""

    weight: int = 1
    cpu_limit: Limit = field(default_factory=Limit)
    memory_limit: Limit = field(default_factory=Limit)
    take_back: TakeBack = TakeBack.ALLOWED
    switch: SwitchState = SwitchState.LEND

    def limit(self, resource: ResourceName) -> Limit:
        """The limit of one resource."""
        return self.cpu_limit if resource == "cpu" else self.memory_limit
