"""Checks a value against the type that the contract names, field by field.

Otherwise a wrong type deep in an answer would fail far from the plugin that made it, or not at all: an age of NaN never
becomes stale, and half a milli-core breaks integer arithmetic.
"""

import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union

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
        return _union(tuple(_check_of(argument) for argument in arguments))
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

    def check(value: object) -> str:
        if not isinstance(value, expected):
            return f" is {_shown(value)}, not {_article(expected)}"
        for name, its_type, part in parts:
            field_value = getattr(value, name)
            if type(field_value) is not its_type and (text := part(field_value)):
                return f".{name}{text}"
        return ""

    return check


def _tuple(item: _Check) -> _Check:
    def check(value: object) -> str:
        if not isinstance(value, tuple):
            return f" is {_shown(value)}, not a tuple"
        return next((f"[{index}]{text}" for index, entry in enumerate(value) if (text := item(entry))), "")

    return check


def _sure(expected: Any) -> Any:
    """The class whose objects need no further check. None for dataclasses, and for floats, which must be finite."""
    return None if expected is float or is_dataclass(expected) else expected


def _mapping(expected_key: Any, expected_item: Any) -> _Check:
    key, sure_key, item = _check_of(expected_key), _sure(expected_key), _check_of(expected_item)

    def check(value: object) -> str:
        if not isinstance(value, Mapping):
            return f" is {_shown(value)}, not a mapping"
        for name, entry in value.items():
            if type(name) is not sure_key and (text := key(name)):
                return f" key{text}"
            if text := item(entry):
                return f"[{name!r}]{text}"
        return ""

    return check


def _union(choices: tuple[_Check, ...]) -> _Check:
    def check(value: object) -> str:
        texts = [choice(value) for choice in choices]
        return "" if "" in texts else texts[0]

    return check


def _article(expected: type) -> str:
    name = expected.__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _shown(value: object) -> str:
    return f"{value!r}" if isinstance(value, bool | int | float | str | None) else _article(type(value))
