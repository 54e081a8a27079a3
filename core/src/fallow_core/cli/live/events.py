"""What Fallow decided lately, the newest first: terminations, take-backs, and the offers that are due."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fallow_core.api.decisions import Decision
from fallow_core.api.explain import DueOffer, Explanation, TakeBackDecision
from fallow_core.api.status import Status
from fallow_core.cli.table import UNITS, amount, part
from fallow_core.model.policy import PublishingMode
from fallow_hookspecs import RESOURCE_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One decision. `ago_seconds` is `None` for what holds now. `key` stays the same while it is shown.

    `source`: what it was made from; `None` if there is nothing to say beyond `text`.
    """

    key: str
    ago_seconds: float | None
    text: str
    source: Decision | DueOffer | TakeBackDecision | None


def events(status: Status, explanations: Iterable[Explanation]) -> tuple[Event, ...]:
    """All decisions that the answers tell of: first what holds now, then what was, the newest first."""
    now, past = [], list(_take_backs(status))
    for explanation in explanations:
        now += list(_present(explanation))
        past += list(_decisions(explanation))
    past.sort(key=lambda event: event.ago_seconds or 0.0)
    return tuple({event.key: event for event in (*now, *past)}.values())


def _present(explanation: Explanation) -> Iterator[Event]:
    verb = "would be" if explanation.mode is PublishingMode.OBSERVE else "is to be"
    for over in explanation.take_backs:
        where, name = f"{over.key.cluster} {over.key.framework_node}", over.resource
        text = f"{where}: {amount(name, over.overdraft)} {UNITS[name]} above the offer: {over.why}"
        yield Event(key=f"over {where} {name}", ago_seconds=None, text=text, source=over)
    for due in explanation.due:
        where = f"{due.key.cluster} {due.key.framework_node}"
        size = ", ".join(f"{part(name, due.size)} {UNITS[name]}" for name in RESOURCE_NAMES)
        yield Event(key=f"due {where}", ago_seconds=None, text=f"{where}: {verb} told {size}: {due.why}", source=due)


def _take_backs(status: Status) -> Iterator[Event]:
    for taken in status.take_backs:
        name, started = taken.resource, status.uptime_seconds - taken.ago_seconds
        yield Event(
            key=f"taken {taken.cluster} {name} {taken.amount} {started:.3f}",
            ago_seconds=taken.ago_seconds,
            text=f"take-back from {taken.cluster} began: at most {amount(name, taken.amount)} {UNITS[name]}",
            source=None,
        )


def _decisions(explanation: Explanation) -> Iterator[Event]:
    """Keys count from the oldest decision on, so that newer ones do not change them."""
    seen: Counter[str] = Counter()
    for decision in reversed(explanation.decisions):
        ids = ", ".join(victim.task_id for victim in decision.victims) or "no task"
        did = "terminated" if decision.enforced else "would have terminated"
        seen[ids] += 1
        yield Event(
            key=f"decided {explanation.node} {ids} {seen[ids]}",
            ago_seconds=decision.ago_seconds,
            text=f"{decision.strategy} {did} {ids}: {decision.why.removeprefix(decision.strategy + ': ')}",
            source=decision,
        )
