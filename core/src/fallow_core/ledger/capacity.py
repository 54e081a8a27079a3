"""What a node can lend of one resource now.

margin = capacity × (100 − watermark) / 100        rounded up
system = max(used − batch_used, reserved)          all use outside batch; without pods online use is part of it
batch  = clamp(capacity − margin − system, 0, capacity × cap / 100)      rounded down
"""

from dataclasses import dataclass

from fallow_core.model.policy import ResourcePolicy
from fallow_core.model.sample import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCapacity:
    """Batch capacity of one resource with every term that made it, in the unit of the resource."""

    capacity: int
    watermark_percent: int
    margin: int
    used: int
    batch_used: int
    reserved: int
    system: int
    cap: int
    batch: int


def batch_capacity(usage: Usage, policy: ResourcePolicy) -> BatchCapacity:
    """What can be lent, from one reading. What is reserved is rounded up, what is lent is rounded down."""
    margin = -(-usage.capacity * (100 - policy.watermark_percent) // 100)
    system = max(usage.used - usage.batch_used, policy.reserved)
    cap = usage.capacity * policy.cap_percent // 100
    return BatchCapacity(
        capacity=usage.capacity,
        watermark_percent=policy.watermark_percent,
        margin=margin,
        used=usage.used,
        batch_used=usage.batch_used,
        reserved=policy.reserved,
        system=system,
        cap=cap,
        batch=max(0, min(usage.capacity - margin - system, cap)),
    )
