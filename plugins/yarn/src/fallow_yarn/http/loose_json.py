"""Reads values from JSON whose shape differs between releases.

A number may be text; a list of one may be the object itself; an empty list may be null, "" or missing.
"""

from typing import TypeGuard

Object = dict[str, object]


def is_object(value: object) -> TypeGuard[Object]:
    """Whether this is a JSON object."""
    return isinstance(value, dict)


def member(value: object, *keys: str) -> object:
    """The member at the end of a path of keys; None if a part of the path is missing or not an object."""
    for key in keys:
        value = value.get(key) if is_object(value) else None
    return value


def objects(value: object) -> list[Object]:
    """The objects of a list; a single object counts as a list of one."""
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if is_object(entry)]


def integer(value: object) -> int | None:
    """An integer of at most 64 bits, also as text; None for anything else."""
    if isinstance(value, str):
        digits = value.strip().removeprefix("-")
        value = int(value) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -(1 << 63) <= value < 1 << 63 else None


def text(value: object) -> str:
    """The text; empty if the value is not text."""
    return value if isinstance(value, str) else ""
