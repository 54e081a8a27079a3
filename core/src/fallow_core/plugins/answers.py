"""Whether an answer of plugin code is what the contract says, and what to do where only a part of it is not."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from fallow_hookspecs import CapacityReport, TaskList
from fallow_hookspecs.shape import mismatch

_T = TypeVar("_T")


PARTS: Mapping[type, str] = {CapacityReport: "rows", TaskList: "tasks"}
"""Answers of which one part is about many things: what is wrong with one of those spoils no other."""


def mismatch_but_parts(answer: object, expected: Any) -> str:
    """As `mismatch`, without what the parts of the answer hold; see `sifted`."""
    part = PARTS.get(expected)
    if part is not None and isinstance(answer, CapacityReport | TaskList) and isinstance(answer, expected):
        without: dict[str, Any] = {part: ()}
        answer = replace(answer, **without) if isinstance(getattr(answer, part), tuple) else answer
    return mismatch(answer, expected)


def sifted(
    items: Iterable[_T], expected: type[_T], wrong: Callable[[_T], str], name: Callable[[_T], object]
) -> tuple[tuple[_T, ...], dict[str, str]]:
    """The items that are what the contract says and not `wrong`, and why the others are refused, by name.

    One whose name is none either goes by its place.
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
