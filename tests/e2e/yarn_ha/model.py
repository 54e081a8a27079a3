"""What a history of failovers must be like. Pure: it knows nothing but the facts.

1. A container ends by itself (exit code 0), by an order that names it, or preempted when its node's take-back was due.
2. Two intervals after the ResourceManager shows a node again, the size in force is the one that was sent last, or one
   that is no larger than what is offered: then there is no need to send.
3. Two intervals after all nodes are shown again, their sum is what was wanted last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.e2e.yarn_ha.history import (
    Disturbed,
    Ended,
    Fact,
    GroupTarget,
    History,
    InForce,
    Offered,
    Ordered,
    Sent,
    TakenBack,
)

PREEMPTED = -102
SEEN_LATE_SECONDS = 1.0  # until the recorder has looked again, and Fallow's line was written


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """`interval_seconds`: of reading and sending.

    `told_late_seconds`: how long after its end a master may be told of it: it waits for an active ResourceManager.
    """

    interval_seconds: float
    told_late_seconds: float = 60.0


def complaints(history: History, rules: Rules) -> list[str]:
    """What is wrong in a history, in the order of time; nothing if all is well."""
    facts = sorted(history, key=lambda fact: fact.at)
    sizes = _Sizes(rules, facts)
    return [*_ends(facts, rules), *(complaint for fact in facts for complaint in sizes.take(fact)), *sizes.end()]


def _ends(facts: Sequence[Fact], rules: Rules) -> Iterator[str]:
    for i, end in enumerate(facts):
        if not isinstance(end, Ended) or end.exit_code == 0:
            continue
        if any(isinstance(fact, Ordered) and fact.container == end.container for fact in facts[:i]):
            continue
        if end.exit_code == PREEMPTED and any(_is_taken_back(fact, end, rules) for fact in facts):
            continue
        yield f"{end.container} on {end.node} ended with {end.exit_code} and nobody ordered it: {end.diagnostics}"


def _is_taken_back(fact: Fact, end: Ended, rules: Rules) -> bool:
    """Whether its node was taken back from a short time before."""
    if not isinstance(fact, TakenBack) or fact.node != end.node:
        return False
    return fact.at - SEEN_LATE_SECONDS <= end.at <= fact.at + rules.told_late_seconds


class _Sizes:
    """What was shown and wanted so far."""

    def __init__(self, rules: Rules, facts: Sequence[Fact]) -> None:
        self._rules = rules
        self._nodes = {fact.node for fact in facts if isinstance(fact, InForce)}
        self._sent = {node: [f for f in facts if isinstance(f, Sent) and f.node == node] for node in self._nodes}
        self._offered = {node: [f for f in facts if isinstance(f, Offered) and f.node == node] for node in self._nodes}
        self._shown: dict[str, InForce] = {}
        self._back: dict[str, float] = {}
        self._disturbed: Disturbed | None = None
        self._wanted: GroupTarget | None = None
        self._met = True

    def take(self, fact: Fact) -> Iterator[str]:
        if isinstance(fact, Disturbed):
            yield from self._unmet(fact.at)
            self._disturbed, self._back, self._shown = fact, {}, {}
        elif isinstance(fact, GroupTarget):
            yield from self._unmet(fact.at)
            self._wanted, self._met = fact, False
        elif isinstance(fact, InForce):
            self._back.setdefault(fact.node, fact.at)
            self._shown[fact.node] = fact
            yield from self._is_sent(fact)
            yield from self._is_wanted(fact.at)

    def end(self) -> Iterator[str]:
        if not self._met and self._wanted is not None:
            yield from self._unmet(max(fact.at for fact in self._shown.values()) if self._shown else self._wanted.at)

    def _is_sent(self, seen: InForce) -> Iterator[str]:
        interval = self._rules.interval_seconds
        if self._disturbed is None or seen.at < self._back[seen.node] + 2 * interval + SEEN_LATE_SECONDS:
            return
        sent = [size for size in self._sent[seen.node] if size.at <= seen.at + SEEN_LATE_SECONDS]
        # what was replaced a moment ago may still be in force
        late = seen.at - interval - SEEN_LATE_SECONDS
        may = [size for i, size in enumerate(sent) if i == len(sent) - 1 or sent[i + 1].at >= late]
        if seen.size not in {size.size for size in may} and not self._is_offered(seen, late - interval):
            expected = sent[-1].size if sent else "none was sent"
            after = seen.at - self._back[seen.node]
            yield (
                f"{seen.node} has {seen.size} {after:.1f} s after it was shown again ({self._disturbed.how}),"
                f" expected {expected}"
            )

    def _is_offered(self, seen: InForce, since: float) -> bool:
        """Whether so much of each resource was offered lately; what is equal to another size is sent with 1 MB more."""
        sizes = [o.size for o in self._offered[seen.node] if since <= o.at <= seen.at + SEEN_LATE_SECONDS]
        return bool(sizes) and all(seen.size[i] <= max(size[i] for size in sizes) + (1, 0)[i] for i in (0, 1))

    def _is_wanted(self, now: float) -> Iterator[str]:
        if self._met or self._wanted is None or set(self._shown) != self._nodes:
            return
        total_mb = sum(seen.size[0] for seen in self._shown.values())
        if self._wanted.least_mb <= total_mb <= self._wanted.most_mb:
            yield from self._unmet(now)
            self._met = True

    def _unmet(self, now: float) -> Iterator[str]:
        """A complaint if what is wanted should be in force by now, and was not until now."""
        if self._met or self._wanted is None or set(self._back) != self._nodes:
            return
        began = max(self._wanted.at, *self._back.values())
        allowed = 2 * self._rules.interval_seconds + SEEN_LATE_SECONDS
        if now > began + allowed:
            self._met = True
            yield (
                f"{self._wanted.least_mb} to {self._wanted.most_mb} MB were not in force {now - began:.1f} s after all"
                f" nodes were shown{f' ({self._disturbed.how})' if self._disturbed else ''}"
            )
