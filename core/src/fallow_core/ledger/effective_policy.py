"""Which policy a node has now: that of all nodes, changed by its pool, by its labels, and by what is said of it alone.

Each layer's schedule comes right after it, so a watermark that a pool has of its own is not changed by the schedule of
all nodes. Labels that other systems put on nodes count as they do there: a share of the node, such as 0.65.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from fallow_core.ledger.schedule import scheduled
from fallow_core.model.node_policies import Layer, NodeChange, NodePolicies, ResourceChange
from fallow_core.model.policy import NodePolicy

CPU_WATERMARK_LABEL = "node.koordinator.sh/cpu-reclaim-ratio"
MEMORY_WATERMARK_LABEL = "node.koordinator.sh/memory-reclaim-ratio"

_SHARE = re.compile(r"\d(?:\.\d{1,15})?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyNow:
    """The policy of a node at one moment. `pools`: all that it matches; `problems`: labels refused."""

    policy: NodePolicy
    pools: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def pool(self) -> str:
        """The pool that counts: the first one. Empty where the node belongs to none."""
        return self.pools[0] if self.pools else ""


def policy_now(policies: NodePolicies, node: str, labels: Mapping[str, str], wall_now: float) -> PolicyNow:
    """The policy of a node, by name and labels, at a time in seconds since 1970."""
    pools = policies.pools_of(labels)
    of_labels, problems = _of_labels(labels)
    layers = [
        Layer(schedule=policies.schedule),
        pools[0].layer if pools else Layer(),
        Layer(change=of_labels),
        policies.nodes.get(node, Layer()),
    ]
    policy = policies.default
    for layer in layers:
        policy = layer.change.applied(policy)
        policy = policy if layer.schedule is None else scheduled(policy, layer.schedule, wall_now)
    return PolicyNow(policy=policy, pools=tuple(pool.name for pool in pools), problems=problems)


def _of_labels(labels: Mapping[str, str]) -> tuple[NodeChange, tuple[str, ...]]:
    problems = []

    def change(name: str) -> ResourceChange:
        if name not in labels:
            return ResourceChange()
        try:
            return ResourceChange(watermark_percent=share_percent(labels[name]))
        except ValueError as error:
            problems.append(f"label {name}: found {labels[name][:60]!r}; {error}")
            return ResourceChange()

    return NodeChange(cpu=change(CPU_WATERMARK_LABEL), memory=change(MEMORY_WATERMARK_LABEL)), tuple(problems)


def share_percent(text: str) -> int:
    """Whole percent of a share from 0 to 1 such as `0.29`, rounded down, without the error of a binary fraction.

    :raises ValueError: it is none.
    """
    if _SHARE.fullmatch(text) is None or Fraction(text) > 1:
        raise ValueError("expected a share from 0 to 1 such as 0.65; it counts as if it were not there")
    return Fraction(text) * 100 // 1


def lends_less(before: NodePolicy, after: NodePolicy) -> bool:
    """Whether by the policy alone less is lent than before, so that work may be over that was not."""
    pairs = ((before.cpu, after.cpu), (before.memory, after.memory))
    return any(
        new.watermark_percent < old.watermark_percent
        or new.cap_percent < old.cap_percent
        or new.overcommit_percent < old.overcommit_percent
        or new.reserved > old.reserved
        or new.reserved_percent > old.reserved_percent
        or new.reserved_per_daemon > old.reserved_per_daemon
        or new.rule is not old.rule
        for old, new in pairs
    )
