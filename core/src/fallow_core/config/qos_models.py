"""Models of `takeBack` and `qos`: what may slow down or terminate tasks."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from fallow_core.config.fields import Model, Percent, UpToDay, UpToHour, mismatch, section, within, written
from fallow_core.model import quantities
from fallow_core.model.policy import PublishingMode
from fallow_core.model.qos_policy import Placing, QosPolicy, StrategyMode
from fallow_core.model.take_back_policy import LEAST_NOTICE_SECONDS, TakeBackPolicy

_TAKE_BACK, _QOS = TakeBackPolicy(), QosPolicy()


def _inside(group: str) -> str:
    if ".." in group.split("/"):
        raise ValueError("expected a path below the cgroup root, without ..")
    return group.strip("/")


Group = Annotated[str, Field(pattern=r"^/?[^/\s][^\s]*$"), AfterValidator(_inside)]


class TakeBackModel(Model):
    """When the framework's own scheduler is told to terminate what is above an offer."""

    mode: Annotated[PublishingMode, Field(strict=False)] = _TAKE_BACK.mode
    after_seconds: UpToDay = _TAKE_BACK.after_seconds["memory"]
    notice_seconds: Annotated[float, written(within(f"{LEAST_NOTICE_SECONDS}s", "1h"))] = _TAKE_BACK.notice_seconds
    blast_percent: Annotated[Percent, Field(alias="blastRadius")] = _TAKE_BACK.blast_percent
    blast_seconds: Annotated[UpToDay, Field(alias="blastWindow")] = _TAKE_BACK.blast_seconds


class _Strategy(Model):
    """What all strategies have."""

    mode: Annotated[StrategyMode, Field(strict=False)] = StrategyMode.OBSERVE


Threshold = Annotated[int, written(quantities.percent), Field(ge=1)]
"""A use that counts as too much: at 0 % a strategy would never end."""


def _ratio_or_off(value: object) -> int | None:
    return None if value == "off" else quantities.ratio_percent(value)


class _Threshold(_Strategy):
    """A strategy that starts at a threshold and stops below a lower one."""

    threshold_percent: Threshold
    lower_percent: Annotated[Threshold, Field(alias="lowerThreshold")]

    @model_validator(mode="after")
    def _lower_below_threshold(self) -> Self:
        if self.lower_percent >= self.threshold_percent:
            key = "lowerThreshold" if "lower_percent" in self.model_fields_set else "threshold"
            found = f"threshold is {self.threshold_percent} % and lowerThreshold {self.lower_percent} %"
            raise mismatch((key,), f"{found}; lowerThreshold must be below")
        return self


class CpuSuppress(_Strategy):
    """How batch is limited to the CPU that online services leave."""

    minimum_percent: Percent = _QOS.cpu_suppress.minimum_percent
    step_percent: Threshold = _QOS.cpu_suppress.step_percent
    cpuset: Annotated[Placing, Field(strict=False)] = _QOS.cpu_suppress.cpuset


class CgroupReconcile(_Strategy):
    """Whether batch groups get the smallest weight, and tasks without a group one; `memory_limit` in their requests."""

    memory_limit_percent: Annotated[int | None, written(_ratio_or_off)] = None


class Identity(_Strategy):
    """Whether batch groups get the scheduling class that runs only on idle CPUs."""


class OnlinePressure(_Threshold):
    """When batch is slowed down because memory stalls online services. `groups`: theirs, from the cgroup root."""

    groups: Annotated[tuple[Group, ...], Field(strict=False)] = ()
    threshold_percent: Threshold = _QOS.online_pressure.threshold_percent
    lower_percent: Annotated[Threshold, Field(alias="lowerThreshold")] = _QOS.online_pressure.lower_percent


class MemoryReclaim(_Strategy):
    """When memory of batch is reclaimed. For the default of `threshold` see `reclaim_threshold`."""

    threshold_percent: Threshold = _QOS.memory_reclaim.threshold_percent
    step_percent: Threshold = _QOS.memory_reclaim.step_percent
    cool_down_seconds: UpToHour = _QOS.memory_reclaim.cool_down_seconds
    window_seconds: UpToHour = _QOS.memory_reclaim.window_seconds
    critical_percent: Annotated[Threshold, Field(alias="criticalThreshold")] = _QOS.memory_reclaim.critical_percent


class MemoryEvict(_Threshold):
    """When tasks are terminated because the node runs out of memory."""

    threshold_percent: Threshold = _QOS.memory_evict.threshold_percent
    lower_percent: Annotated[Threshold, Field(alias="lowerThreshold")] = _QOS.memory_evict.lower_percent
    cool_down_seconds: UpToHour = _QOS.memory_evict.cool_down_seconds


class CpuEvict(_Strategy):
    """When tasks are terminated because batch gets too little CPU."""

    satisfaction_percent: Threshold = _QOS.cpu_evict.satisfaction_percent
    until_percent: Threshold = _QOS.cpu_evict.until_percent
    usage_percent: Percent = _QOS.cpu_evict.usage_percent
    window_seconds: Annotated[float, written(within("1s", "1h"))] = _QOS.cpu_evict.window_seconds
    samples: Annotated[int, Field(ge=1, le=3600)] = _QOS.cpu_evict.samples
    cool_down_seconds: UpToHour = _QOS.cpu_evict.cool_down_seconds
    slow_is_fine: bool = _QOS.cpu_evict.slow_is_fine

    @model_validator(mode="after")
    def _ends_above_where_it_begins(self) -> Self:
        if self.until_percent <= self.satisfaction_percent:
            key = "until" if "until_percent" in self.model_fields_set else "satisfaction"
            found = f"satisfaction is {self.satisfaction_percent} % and until {self.until_percent} %"
            raise mismatch((key,), f"{found}; until must be above")
        return self


class OverdraftEvict(_Strategy):
    """When tasks are terminated because more memory is allocated than can be lent."""

    after_seconds: UpToDay = _QOS.overdraft_evict.after_seconds
    cool_down_seconds: UpToHour = _QOS.overdraft_evict.cool_down_seconds


class TerminationModel(Model):
    """How tasks are terminated."""

    grace_seconds: UpToHour = _QOS.termination.grace_seconds
    margin_seconds: Annotated[float, written(within("1s", "1h"))] = _QOS.termination.margin_seconds
    back_off_seconds: Annotated[float, written(within("1s", "1h"))] = _QOS.termination.back_off_seconds
    budget: Annotated[int, Field(ge=0, le=1000)] = _QOS.termination.budget
    budget_seconds: Annotated[UpToDay, Field(alias="budgetWindow")] = _QOS.termination.budget_seconds


class Qos(Model):
    """How the node is protected. `on_exit`: whether an orderly stop leaves the limits of batch groups in force.

    `exempt`: control groups, from the cgroup root, in which nothing is changed.
    """

    cpu_suppress: CpuSuppress = section()
    cgroup_reconcile: CgroupReconcile = section()
    identity: Identity = section()
    online_pressure: OnlinePressure = section()
    memory_reclaim: MemoryReclaim = section()
    memory_evict: MemoryEvict = section()
    cpu_evict: CpuEvict = section()
    overdraft_evict: OverdraftEvict = section()
    termination: TerminationModel = section()
    exempt: Annotated[tuple[Group, ...], Field(strict=False)] = ()
    on_exit: Literal["keep", "release"] = "keep"

    @model_validator(mode="after")
    def _reclaims_before_it_evicts(self) -> "Qos":
        if reclaim_threshold(self) >= self.memory_evict.threshold_percent:
            reclaim, evict = self.memory_reclaim, self.memory_evict.threshold_percent
            text = f"memoryReclaim.threshold is {reclaim.threshold_percent} % and memoryEvict.threshold {evict} %"
            key = ("memoryReclaim" if "threshold_percent" in reclaim.model_fields_set else "memoryEvict", "threshold")
            raise mismatch(key, f"{text}; memoryReclaim.threshold must be below")
        return self

    @model_validator(mode="after")
    def _is_critical_above_the_threshold(self) -> "Qos":
        evict, critical = self.memory_evict.threshold_percent, self.memory_reclaim.critical_percent
        if critical < evict:
            own = "critical_percent" in self.memory_reclaim.model_fields_set
            key = ("memoryReclaim", "criticalThreshold") if own else ("memoryEvict", "threshold")
            text = f"memoryEvict.threshold is {evict} % and memoryReclaim.criticalThreshold {critical} %"
            raise mismatch(key, f"{text}; criticalThreshold must not be below")
        return self


def reclaim_threshold(qos: Qos) -> int:
    """The threshold of `memoryReclaim` in percent. If it is not set, it has the default distance to `memoryEvict`."""
    ahead = _QOS.memory_evict.threshold_percent - _QOS.memory_reclaim.threshold_percent
    if "threshold_percent" in qos.memory_reclaim.model_fields_set:
        return qos.memory_reclaim.threshold_percent
    return min(qos.memory_reclaim.threshold_percent, qos.memory_evict.threshold_percent - ahead)
