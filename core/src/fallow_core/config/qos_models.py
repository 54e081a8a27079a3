"""The models of what may slow down or end tasks: `takeBack` and `qos` of a core file. All times in seconds."""

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
    """One that begins at a mark, and is over below a lower one."""

    mark: Percent
    lower_mark: Percent

    @model_validator(mode="after")
    def _lower_below_mark(self) -> Self:
        if self.lower_mark >= self.mark:
            key = "lowerMark" if "lower_mark" in self.model_fields_set else "mark"
            text = f"mark is {self.mark} % and lowerMark {self.lower_mark} %; lowerMark must be below"
            raise mismatch((key,), text)
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
    mark: Percent = _QOS.online_pressure.mark_percent
    lower_mark: Percent = _QOS.online_pressure.lower_percent


class MemoryReclaim(_Strategy):
    """When memory of batch is pushed out. `mark`: by default as far below that of `memoryEvict` as the defaults are."""

    mark: Percent = _QOS.memory_reclaim.mark_percent
    step: Annotated[int, written(quantities.percent), Field(ge=1)] = _QOS.memory_reclaim.step_percent
    cool_down: Annotated[float, written(within("0s", "1h"))] = _QOS.memory_reclaim.cool_down_seconds
    window: Annotated[float, written(within("0s", "1h"))] = _QOS.memory_reclaim.window_seconds
    critical_mark: Percent = _QOS.memory_reclaim.critical_percent


class MemoryEvict(_Marked):
    """When tasks end because memory of the node runs out."""

    mark: Percent = _QOS.memory_evict.mark_percent
    lower_mark: Percent = _QOS.memory_evict.lower_percent
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


class EndingSettings(Model):
    """How tasks are ended."""

    grace: Annotated[float, written(within("0s", "1h"))] = _QOS.ending.grace_seconds
    margin: Annotated[float, written(within("1s", "1h"))] = _QOS.ending.margin_seconds
    back_off: Annotated[float, written(within("1s", "1h"))] = _QOS.ending.back_off_seconds
    budget: Annotated[int, Field(ge=0, le=1000)] = _QOS.ending.budget
    budget_window: Annotated[float, written(within("1s", "24h"))] = _QOS.ending.budget_seconds


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
    ending: EndingSettings = section()
    on_exit: Literal["hold", "release"] = "hold"

    @model_validator(mode="after")
    def _reclaims_before_it_evicts(self) -> "Qos":
        if reclaim_mark(self) >= self.memory_evict.mark:
            text = f"memoryReclaim.mark is {self.memory_reclaim.mark} % and memoryEvict.mark {self.memory_evict.mark} %"
            key = (
                ("memoryReclaim", "mark") if "mark" in self.memory_reclaim.model_fields_set else ("memoryEvict", "mark")
            )
            raise mismatch(key, f"{text}; memoryReclaim.mark must be below")
        return self


def reclaim_mark(qos: Qos) -> int:
    """The mark of `memoryReclaim` in percent: its own, or so far below that of `memoryEvict` as the defaults are."""
    ahead = _QOS.memory_evict.mark_percent - _QOS.memory_reclaim.mark_percent
    if "mark" in qos.memory_reclaim.model_fields_set:
        return qos.memory_reclaim.mark
    return min(qos.memory_reclaim.mark, qos.memory_evict.mark - ahead)
