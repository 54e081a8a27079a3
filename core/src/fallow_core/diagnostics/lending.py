"""Whether this host could lend anything now, or its watermark alone prevents that."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from fallow_core.ledger.capacity import BatchCapacity, batch_capacity
from fallow_core.ledger.effective_policy import policy_now
from fallow_core.model.node_policies import NodePolicies
from fallow_core.node.host_sampler import HostSampler
from fallow_hookspecs import RESOURCE_NAMES, Finding, Node, ResourceName, Resources

MEASURE_SECONDS = 0.5
SUBJECTS: Mapping[ResourceName, str] = {"cpu": "CPU to lend", "memory": "memory to lend"}


Lendable = Mapping[ResourceName, BatchCapacity | str]
"""What can be lent of each resource, as the ledger computes it, or why that is not known."""


def measured(
    policies: NodePolicies,
    node: Node,
    batch_used: Mapping[ResourceName, int],
    sampler: HostSampler | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Lendable:
    """What this host can lend now, from one measurement.

    :param batch_used: the part of the use that a running Fallow knows to be batch.
    """
    sampler = sampler or HostSampler()
    sampler.sample()  # CPU use needs two
    pause(MEASURE_SECONDS)
    sample, missing = sampler.sample(), dict(sampler.missing)
    sampler.close()
    policy = policy_now(policies, node.name, node.labels, time.time()).policy
    found: dict[ResourceName, BatchCapacity | str] = {}
    for name in RESOURCE_NAMES:
        usage = sample.of(name)
        if usage is None:
            found[name] = missing.get(name, "no reading")
        else:
            usage = replace(usage, batch_used=min(usage.used, batch_used.get(name, 0)))
            found[name] = batch_capacity(usage, policy.of(name))
    return found


def amounts(found: Lendable) -> Resources | None:
    """How much that is; `None` if it is not known of both resources."""
    known = [each.batch for each in found.values() if isinstance(each, BatchCapacity)]
    return Resources(*known) if len(known) == len(RESOURCE_NAMES) else None


def findings(found: Lendable) -> Iterator[Finding]:
    """One finding for each resource."""
    for name, each in found.items():
        if isinstance(each, BatchCapacity):
            yield _finding(name, each)
        else:
            yield Finding(subject=SUBJECTS[name], ok=None, detail=f"not known: {each}")


def _finding(name: ResourceName, found: BatchCapacity) -> Finding:
    subject, used = SUBJECTS[name], _percent(found.system, found.capacity)
    watermark = f"the watermark is {found.watermark_percent} %"
    if found.batch > 0:
        lent = f"{found.batch * 100 // found.capacity} % of this host can be lent"
        return Finding(subject=subject, ok=True, detail=f"{lent}; {watermark}, use besides batch is {used} %")
    if min(found.capacity - found.system, found.cap) <= 0:
        return Finding(subject=subject, ok=None, detail=f"nothing: use and reservations take {used} % of this host")
    return Finding(
        subject=subject,
        ok=None,
        detail=f"nothing, because of the watermark alone: {watermark}, use besides batch is {used} %",
        advice=f"to lend now, set capacity.{name}.watermark above {used}% for this node, its pool, or all nodes",
    )


def _percent(part: int, whole: int) -> int:
    return -(-part * 100 // whole)
