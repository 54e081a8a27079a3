"""Checks answers of plugins against the contract, and removes the wrong parts of an answer."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from fallow_hookspecs import CapacityReport, TaskList
from fallow_hookspecs.shape import mismatch

_T = TypeVar("_T")


PARTS: Mapping[type, str] = {CapacityReport: "rows", TaskList: "tasks"}
"""Answers with a part of many items, of which each is checked by itself."""


def mismatch_but_parts(answer: object, expected: Any) -> str:
    """As `mismatch`, without the items of the part; for those see `sifted`."""
    part = PARTS.get(expected)
    if part is not None and isinstance(answer, CapacityReport | TaskList) and isinstance(answer, expected):
        without: dict[str, Any] = {part: ()}
        answer = replace(answer, **without) if isinstance(getattr(answer, part), tuple) else answer
    return mismatch(answer, expected)


def sifted(
    items: Iterable[_T], expected: type[_T], wrong: Callable[[_T], str], name: Callable[[_T], object]
) -> tuple[tuple[_T, ...], dict[str, str]]:
    """The items that match the contract and are not `wrong`, and by name why the others are refused.

    An item without a usable name is called by its position.
    """
    good, refused = [], {}
    for index, item in enumerate(items):
        why = mismatch(item, expected)
        why = f"it{why}" if why else wrong(item)
        if not why:
            good.append(item)
            continue
        called = name(item) if isinstance(item, expected) else None
        refused[called[:100] if isinstance(called, str) else f"number {index}"] = why
    return tuple(good), refused
