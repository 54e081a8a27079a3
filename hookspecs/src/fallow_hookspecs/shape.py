"""Checks a value against the type that the contract names, field by field.

Otherwise a wrong type deep in an answer would fail far from the plugin that made it, or not at all: an age of NaN never
becomes stale, and half a milli-core breaks integer arithmetic.
"""

import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Literal, Union

KINDS = 64
"""So many combinations of types are remembered for each dataclass; a good plugin uses a few."""

_Check = Callable[[object], str]


def mismatch(answer: object, expected: Any) -> str:
    """Where and how `answer` differs from the type `expected`, as ` is X, not Y` behind a path; empty if it fits.

    Supported are dataclasses, `tuple[X, ...]`, `Mapping`, unions, `Literal` and plain classes. A `bool` is not accepted
    as an `int`. A `float` may be an integer and must be finite.
    """
    return _check_of(expected)(answer)


@cache
def _check_of(expected: Any) -> _Check:
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if origin is tuple:
        return _tuple(_check_of(arguments[0]))
    if origin is Mapping:
        return _mapping(*arguments)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is Literal:
        return lambda value: "" if value in arguments else f" is {_shown(value)}, not one of {arguments}"
    if is_dataclass(expected) and isinstance(expected, type):
        return _dataclass(expected)
    return _plain(expected)


def _plain(expected: type) -> _Check:
    allowed = (int, float) if expected is float else (expected,)

    def check(value: object) -> str:
        if not isinstance(value, allowed) or (isinstance(value, bool) and expected is not bool):
            return f" is {_shown(value)}, not {_article(expected)}"
        return " is not finite" if isinstance(value, float) and not math.isfinite(value) else ""

    return check


def _dataclass(expected: type) -> _Check:
    hints = typing.get_type_hints(expected)
    parts = [(field.name, _sure(hints[field.name]), _check_of(hints[field.name])) for field in fields(expected)]
    values_of = attrgetter(*(name for name, _, _ in parts), "__class__")  # of one name alone it makes no tuple

    @lru_cache(maxsize=KINDS)
    def unsure(kinds: tuple[type, ...]) -> list[tuple[int, str, _Check]]:
        """The fields whose types do not suffice."""
        return [(i, name, part) for i, (name, sure, part) in enumerate(parts) if kinds[i] not in sure]

    def check(value: object) -> str:
        if not isinstance(value, expected):
            return f" is {_shown(value)}, not {_article(expected)}"
        values = values_of(value)
        for i, name, part in unsure(tuple(map(type, values))):
            if text := part(values[i]):
                return f".{name}{text}"
        return ""

    return check


def _tuple(item: _Check) -> _Check:
    def check(value: object) -> str:
        if not isinstance(value, tuple):
            return f" is {_shown(value)}, not a tuple"
        return next((f"[{index}]{text}" for index, entry in enumerate(value) if (text := item(entry))), "")

    return check


def _sure(expected: Any) -> frozenset[type]:
    """The classes whose objects need no further check: not dataclasses, nor floats, which must be finite."""
    if typing.get_origin(expected) in (Union, types.UnionType):
        return frozenset().union(*map(_sure, typing.get_args(expected)))
    is_plain = isinstance(expected, type) and typing.get_origin(expected) is None
    return frozenset({expected}) if is_plain and expected is not float and not is_dataclass(expected) else frozenset()


def _mapping(expected_key: Any, expected_item: Any) -> _Check:
    key, sure_key, item = _check_of(expected_key), _sure(expected_key), _check_of(expected_item)

    def check(value: object) -> str:
        if not isinstance(value, Mapping):
            return f" is {_shown(value)}, not a mapping"
        for name, entry in value.items():
            if type(name) not in sure_key and (text := key(name)):
                return f" key{text}"
            if text := item(entry):
                return f"[{name!r}]{text}"
        return ""

    return check


def _union(choices: tuple[Any, ...]) -> _Check:
    checks = [_check_of(choice) for choice in choices]
    sure = frozenset().union(*map(_sure, choices))

    def check(value: object) -> str:
        if type(value) in sure:
            return ""
        texts = [check(value) for check in checks]
        return "" if "" in texts else texts[0]

    return check


def _article(expected: type) -> str:
    name = expected.__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _shown(value: object) -> str:
    return f"{value!r}" if isinstance(value, bool | int | float | str | None) else _article(type(value))
