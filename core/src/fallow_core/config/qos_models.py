"""The models of what may slow down or terminate tasks: `takeBack` and `qos` of a core file. All times in seconds."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fallow_core.config.fields import Model, Percent, mismatch, section, within, written
from fallow_core.model import quantities
from fallow_core.model.policy import PublishingMode
from fallow_core.model.qos_policy import Placing, QosPolicy, StrategyMode
from fallow_core.model.take_back_policy import LEAST_NOTICE_SECONDS, TakeBackPolicy

_TAKE_BACK, _QOS = TakeBackPolicy(), QosPolicy()


class TakeBackSettings(Model):
    """When the framework's own scheduler is told to end what is above an offer. All times in seconds."""

    mode: Annotated[PublishingMode, Field(strict=False)] = _TAKE_BACK.mode
    after: Annotated[float, written(within("1s", "24h"))] = _TAKE_BACK.after_seconds["memory"]
    notice: Annotated[float, written(within(f"{LEAST_NOTICE_SECONDS}s", "1h"))] = _TAKE_BACK.notice_seconds
    blast_radius: Percent = _TAKE_BACK.blast_percent
    blast_window: Annotated[float, written(within("1s", "24h"))] = _TAKE_BACK.blast_seconds


class _Strategy(Model):
    """What all strategies have."""

    mode: Annotated[StrategyMode, Field(strict=False)] = StrategyMode.OBSERVE


def _ratio_or_off(value: object) -> int | None:
    return None if value == "off" else quantities.ratio_percent(value)


class _Marked(_Strategy):
    """One that begins at a threshold, and is over below a lower one."""

    threshold: Percent
    lower_threshold: Percent

    @model_validator(mode="after")
    def _lower_below_threshold(self) -> Self:
        if self.lower_threshold >= self.threshold:
            key = "lowerThreshold" if "lower_threshold" in self.model_fields_set else "threshold"
            found = f"threshold is {self.threshold} % and lowerThreshold {self.lower_threshold} %"
            raise mismatch((key,), f"{found}; lowerThreshold must be below")
        return self


class CpuSuppress(_Strategy):
    """How batch is held to the CPU that online services leave."""

    minimum: Percent = _QOS.cpu_suppress.minimum_percent
    step: Percent = _QOS.cpu_suppress.step_percent
    cpuset: Annotated[Placing, Field(strict=False)] = _QOS.cpu_suppress.cpuset


class CgroupReconcile(_Strategy):
    """Whether batch groups get the smallest weight, and tasks without a group one; `memory_limit` in their requests."""

    memory_limit: Annotated[int | None, written(_ratio_or_off)] = None


class Identity(_Strategy):
    """Whether batch groups get the scheduling class that runs when nobody else wants to."""


class OnlinePressure(_Marked):
    """When batch is slowed down because memory stalls online services. `groups`: theirs, from the cgroup root."""

    groups: list[Annotated[str, Field(pattern=r"^/?[^/\s][^\s]*$")]] = Field(default_factory=list)
    threshold: Percent = _QOS.online_pressure.threshold_percent
    lower_threshold: Percent = _QOS.online_pressure.lower_percent


class MemoryReclaim(_Strategy):
    """When memory of batch is pushed out. `threshold`: by default as far below that of `memoryEvict` as the defaults
    are.
    """

    threshold: Percent = _QOS.memory_reclaim.threshold_percent
    step: Annotated[int, written(quantities.percent), Field(ge=1)] = _QOS.memory_reclaim.step_percent
    cool_down: Annotated[float, written(within("0s", "1h"))] = _QOS.memory_reclaim.cool_down_seconds
    window: Annotated[float, written(within("0s", "1h"))] = _QOS.memory_reclaim.window_seconds
    critical_threshold: Percent = _QOS.memory_reclaim.critical_percent


class MemoryEvict(_Marked):
    """When tasks end because memory of the node runs out."""

    threshold: Percent = _QOS.memory_evict.threshold_percent
    lower_threshold: Percent = _QOS.memory_evict.lower_percent
    cool_down: Annotated[float, written(within("0s", "1h"))] = _QOS.memory_evict.cool_down_seconds


class CpuEvict(_Strategy):
    """When tasks end because batch gets too little CPU."""

    satisfaction: Percent = _QOS.cpu_evict.satisfaction_percent
    until: Annotated[int, written(quantities.percent), Field(ge=1)] = _QOS.cpu_evict.until_percent
    usage: Percent = _QOS.cpu_evict.usage_percent
    window: Annotated[float, written(within("1s", "1h"))] = _QOS.cpu_evict.window_seconds
    samples: Annotated[int, Field(ge=1, le=3600)] = _QOS.cpu_evict.samples
    cool_down: Annotated[float, written(within("0s", "1h"))] = _QOS.cpu_evict.cool_down_seconds
    slow_is_fine: bool = _QOS.cpu_evict.slow_is_fine


class OverdraftEvict(_Strategy):
    """When tasks end because more memory is allocated than can be lent."""

    after: Annotated[float, written(within("1s", "24h"))] = _QOS.overdraft_evict.after_seconds
    cool_down: Annotated[float, written(within("0s", "1h"))] = _QOS.overdraft_evict.cool_down_seconds


class TerminationSettings(Model):
    """How tasks are terminated."""

    grace: Annotated[float, written(within("0s", "1h"))] = _QOS.termination.grace_seconds
    margin: Annotated[float, written(within("1s", "1h"))] = _QOS.termination.margin_seconds
    back_off: Annotated[float, written(within("1s", "1h"))] = _QOS.termination.back_off_seconds
    budget: Annotated[int, Field(ge=0, le=1000)] = _QOS.termination.budget
    budget_window: Annotated[float, written(within("1s", "24h"))] = _QOS.termination.budget_seconds


class Qos(Model):
    """How the node is protected. `on_exit`: whether an orderly stop leaves the limits of batch groups in force."""

    cpu_suppress: CpuSuppress = section()
    cgroup_reconcile: CgroupReconcile = section()
    identity: Identity = section()
    online_pressure: OnlinePressure = section()
    memory_reclaim: MemoryReclaim = section()
    memory_evict: MemoryEvict = section()
    cpu_evict: CpuEvict = section()
    overdraft_evict: OverdraftEvict = section()
    termination: TerminationSettings = section()
    on_exit: Literal["keep", "release"] = "keep"

    @model_validator(mode="after")
    def _reclaims_before_it_evicts(self) -> "Qos":
        if reclaim_threshold(self) >= self.memory_evict.threshold:
            reclaim, evict = self.memory_reclaim, self.memory_evict
            text = f"memoryReclaim.threshold is {reclaim.threshold} % and memoryEvict.threshold {evict.threshold} %"
            key = ("memoryReclaim" if "threshold" in reclaim.model_fields_set else "memoryEvict", "threshold")
            raise mismatch(key, f"{text}; memoryReclaim.threshold must be below")
        return self


def reclaim_threshold(qos: Qos) -> int:
    """The threshold of `memoryReclaim` in percent: its own, or as far below `memoryEvict` as the defaults are."""
    ahead = _QOS.memory_evict.threshold_percent - _QOS.memory_reclaim.threshold_percent
    if "threshold" in qos.memory_reclaim.model_fields_set:
        return qos.memory_reclaim.threshold
    return min(qos.memory_reclaim.threshold, qos.memory_evict.threshold - ahead)
