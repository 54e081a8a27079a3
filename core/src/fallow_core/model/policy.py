"""The policies of nodes, accounts and publishing."""

from dataclasses import dataclass, field
from enum import StrEnum

from fallow_hookspecs import ResourceName


class OnlineRule(StrEnum):
    """How much an online pod or host application counts: its measured use, its request, or the larger of both.

    A predicted peak would be one more rule.
    """

    USAGE = "usage"
    REQUEST = "request"
    MAX = "max"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcePolicy:
    """How much of one resource of a node may be lent.

    `watermark_percent`: the share of the node that online and batch may use together. `rule`: how online work counts.
    The reserve for the system is at least the largest of `reserved`, in the unit of the resource, `reserved_percent` of
    the node, and `reserved_per_daemon` for each daemon of a framework. `cap_percent`: the most that is lent, in percent
    of the node. `overcommit_percent`: what is promised, in percent of what is lent.
    """

    watermark_percent: int
    rule: OnlineRule = OnlineRule.USAGE
    reserved: int = 0
    reserved_percent: int = 0
    reserved_per_daemon: int = 0
    cap_percent: int = 100
    overcommit_percent: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePolicy:
    """Policy of a node. The default watermarks are the usual ones of co-location systems.

    `usage_window_seconds`: younger work counts with at least its request, since its use is not known yet.
    """

    cpu: ResourcePolicy = field(default_factory=lambda: ResourcePolicy(watermark_percent=60))
    memory: ResourcePolicy = field(default_factory=lambda: ResourcePolicy(watermark_percent=65))
    usage_window_seconds: float = 60.0

    def of(self, resource: ResourceName) -> ResourcePolicy:
        """The policy of one resource."""
        return self.cpu if resource == "cpu" else self.memory


class PublishingMode(StrEnum):
    """`OBSERVE`: sizes are computed and shown, but not sent. `ENFORCE`: sizes are sent when they are due."""

    OBSERVE = "observe"
    ENFORCE = "enforce"


class Sharing(StrEnum):
    """How accounts of a node share its batch capacity.

    `EXCLUSIVE`: no capacity is promised twice. `SHARED`: free capacity is promised to every account.
    """

    EXCLUSIVE = "exclusive"
    SHARED = "shared"


class KeepLargest(StrEnum):
    """What to do when no node of a cluster would remain as large as its largest task: a framework whose maximum is the
    size of its largest node then refuses such tasks. `WARN`: warn. `KEEP`: one node keeps that size.
    """

    WARN = "warn"
    KEEP = "keep"


class SwitchState(StrEnum):
    """The state that the operator chose for one cluster, for all, for a pool, a node or a framework.

    `LEND`: normal. `HOLD`: no growth. `DRAIN`: no new work. `STOP`: no new work, and running work is taken back.
    `RESTORED`, for clusters only: the original sizes are restored. Until the operator switches to another state nothing
    is published, and no task is throttled or terminated.
    """

    LEND = "lend"
    HOLD = "hold"
    DRAIN = "drain"
    STOP = "stop"
    RESTORED = "restored"


class TakeBack(StrEnum):
    """Whether a framework's scheduler may be told to terminate work of a cluster, if that charges no application."""

    ALLOWED = "allowed"
    NEVER = "never"


class ExitMode(StrEnum):
    """The sizes after an orderly stop: the newest ones, the floors, or the original ones."""

    KEEP = "keep"
    FLOOR = "floor"
    ORIGINAL = "original"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishingPolicy:
    """When and how sizes are sent.

    `dead_band_percent`: a change of less than this share of the size is not sent. `growth_delay_seconds`: sizes grow to
    the smallest target of this time. `in_flight_seconds`: after this time a call without an effect is considered done.
    `degrade_after_seconds` and `withdraw_after_seconds`: ages of a node's sample after which nothing grows, and after
    which the node drains. `drain_step_percent`: the share of batch capacity by which an account above its fair share
    drains for an account with pending requests.
    """

    mode: PublishingMode = PublishingMode.OBSERVE
    sharing: Sharing = Sharing.EXCLUSIVE
    dead_band_percent: int = 15
    growth_delay_seconds: float = 60.0
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
        """The limit as an amount; `None`: no limit."""
        if self.percent is not None:
            return batch * self.percent // 100
        return self.amount


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPolicy:
    """The policy of one account: its weight, its limits, and its switch.

    `switched`: the scope of the switch, if that is wider than the account's own cluster.
    """

    weight: int = 1
    cpu_limit: Limit = field(default_factory=Limit)
    memory_limit: Limit = field(default_factory=Limit)
    take_back: TakeBack = TakeBack.ALLOWED
    keep_largest: KeepLargest = KeepLargest.WARN
    switch: SwitchState = SwitchState.LEND
    switched: str = ""

    def limit(self, resource: ResourceName) -> Limit:
        """The limit of one resource."""
        return self.cpu_limit if resource == "cpu" else self.memory_limit
