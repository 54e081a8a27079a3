"""What Fallow decided lately, the newest first: tasks that end, take-backs, and the offers that are due."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fallow_core.cli.render import FIELDS
from fallow_core.cli.table import amount
from fallow_core.cli.watch_text import UNITS
from fallow_hookspecs import RESOURCE_NAMES

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One decision. `ago_seconds` is `None` for what holds now. `key` stays the same while it is shown.

    `record` says where its record is: the index of the explanation, which of its lists, and the index there; `None` if
    there is nothing to say beyond `text`.
    """

    key: str
    ago_seconds: float | None
    text: str
    record: tuple[int, str, int] | None


def events(status: Answer, explanations: Iterable[Answer]) -> tuple[Event, ...]:
    """All decisions that the answers tell of: first what holds now, then what was, the newest first."""
    now, past = [], list(_take_backs(status))
    for place, explanation in enumerate(explanations):
        now += list(_present(explanation, place))
        past += list(_decisions(explanation, place))
    past.sort(key=lambda event: event.ago_seconds or 0.0)
    return tuple({event.key: event for event in (*now, *past)}.values())


def _present(explanation: Answer, place: int) -> Iterator[Event]:
    observes = explanation["mode"] == "observe"
    for index, over in enumerate(explanation["take_backs"]):
        key, name = over["key"], over["resource"]
        where = f"{key['cluster']} {key['framework_node']}"
        text = f"{where}: {amount(name, over['overdraft'])} {UNITS[name]} above the offer: {over['why']}"
        yield Event(key=f"over {where} {name}", ago_seconds=None, text=text, record=(place, "take_backs", index))
    for index, due in enumerate(explanation["due"]):
        key = due["key"]
        where = f"{key['cluster']} {key['framework_node']}"
        size = ", ".join(f"{amount(name, due['size'][FIELDS[name]])} {UNITS[name]}" for name in RESOURCE_NAMES)
        text = f"{where}: {'would be' if observes else 'is to be'} told {size}: {due['why']}"
        yield Event(key=f"due {where}", ago_seconds=None, text=text, record=(place, "due", index))


def _take_backs(status: Answer) -> Iterator[Event]:
    for taken in status["take_backs"]:
        name = taken["resource"]
        text = f"take-back from {taken['cluster']} began: at most {amount(name, taken['amount'])} {UNITS[name]}"
        started = status["uptime_seconds"] - taken["ago_seconds"]
        yield Event(
            key=f"taken {taken['cluster']} {name} {taken['amount']} {started:.3f}",
            ago_seconds=taken["ago_seconds"],
            text=text,
            record=None,
        )


def _decisions(explanation: Answer, place: int) -> Iterator[Event]:
    """The key counts from the oldest one on: so it stays, whatever comes."""
    seen: Counter[str] = Counter()
    for index, decision in reversed(list(enumerate(explanation["decisions"]))):
        ids = ", ".join(task for _, task in decision["victims"]) or "no task"
        did = "ended" if decision["enforced"] else "would have ended"
        seen[ids] += 1
        yield Event(
            key=f"decided {explanation['node']} {ids} {seen[ids]}",
            ago_seconds=decision["ago_seconds"],
            text=f"{decision['strategy']} {did} {ids}: {decision['why'].removeprefix(decision['strategy'] + ': ')}",
            record=(place, "decisions", index),
        )
