"""The policy of taking back: the framework's own scheduler terminates work above an offer."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fallow_core.model.policy import PublishingMode
from fallow_hookspecs import ResourceName

LEAST_NOTICE_SECONDS = 60
"""Tasks are warned for at least so long: time to save what they have done."""


def _never_cpu() -> Mapping[ResourceName, float]:
    return {"memory": 60.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeBackPolicy:
    """When and how much is taken back.

    `after_seconds`: for how long a resource has to be in overdraft; a resource that is missing is never taken back, as
    CPU, which is throttled. `blast_percent`: at most this share of a cluster's allocation, or its largest task if that
    is more, is taken back in `blast_seconds`. `late_seconds`: after so long the framework is told again.
    """

    mode: PublishingMode = PublishingMode.OBSERVE
    after_seconds: Mapping[ResourceName, float] = field(default_factory=_never_cpu)
    notice_seconds: int = LEAST_NOTICE_SECONDS
    blast_percent: int = 5
    blast_seconds: float = 600.0
    late_seconds: float = 12.0
