"""Values of state files, each checked for its type: what is valid JSON may still be anything.

Each function returns the value, or raises a `TypeError` or `ValueError` that shows what was found.
"""

import math
from typing import Any, TypeVar

LARGEST_AMOUNT = 1 << 60
LATEST_SECONDS = 1e11
"""Neither a time of the wall clock (about the year 5000) nor of the monotonic one is later."""

_Kind = TypeVar("_Kind")


def of(kind: type[_Kind], data: Any) -> _Kind:
    """A value of one class; `True` is no number."""
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise TypeError(f"{data!r:.80} is no {kind.__name__}")
    return data


def text(data: Any) -> str:
    """A text."""
    if not isinstance(data, str):
        raise TypeError(f"{data!r:.80} is no text")
    return data


def amount(data: Any) -> int:
    """An integer from 0 to `LARGEST_AMOUNT`."""
    if type(data) is not int or not 0 <= data <= LARGEST_AMOUNT:
        raise ValueError(f"{data!r:.80} is no amount")
    return data


def seconds(data: Any) -> float:
    """A time or a duration, from 0 to `LATEST_SECONDS`."""
    if isinstance(data, bool) or not isinstance(data, int | float) or not 0 <= data <= LATEST_SECONDS:
        raise ValueError(f"{data!r:.80} is no time")
    return float(data)


def finite(written: str) -> float:
    """A number with a fraction or an exponent, as JSON has it; 1e400 would be infinite."""
    if not math.isfinite(number := float(written)):
        raise ValueError(f"{written:.80} is larger than any number")
    return number
