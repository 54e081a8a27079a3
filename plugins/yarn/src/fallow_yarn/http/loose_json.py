"""Reading values out of JSON whose shape varies between releases.

Numbers come as numbers or as text; a list of one may be the bare object; an empty one may be null, "" or missing.
"""

from typing import TypeGuard

Object = dict[str, object]


def is_object(value: object) -> TypeGuard[Object]:
    """Whether this is a JSON object (whose keys are always text)."""
    return isinstance(value, dict)


def member(value: object, *keys: str) -> object:
    """The member at the end of a path of keys; None if anything on the way is missing or no object."""
    for key in keys:
        value = value.get(key) if is_object(value) else None
    return value


def objects(value: object) -> list[Object]:
    """The objects of what should be a list of them."""
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if is_object(entry)]


def integer(value: object) -> int | None:
    """A whole number of at most 64 bits, also one written as text; None for anything else."""
    if isinstance(value, str):
        digits = value.strip().removeprefix("-")
        value = int(value) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -(1 << 63) <= value < 1 << 63 else None


def text(value: object) -> str:
    """Text, or empty if it is none."""
    return value if isinstance(value, str) else ""
