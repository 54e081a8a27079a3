"""Parses amounts of configuration files exactly: without rounding and binary fractions.

Each function takes a string or a number, and raises a `ValueError` that says what is allowed.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from fallow_core.model.policy import Limit

LARGEST = 1 << 60
"""The most milli-cores or bytes: larger amounts are mistakes, and overflow where they are added up."""

_CPU_TEXT = "expected cores such as 2 or 0.5, or milli-cores such as 500m, not finer than 1m"
_MEMORY_TEXT = "expected bytes such as 1000000000, or with a unit such as 512Mi, 4GiB or 2G, in whole bytes"
_PERCENT_TEXT = "expected whole percent from 0 to 100, such as 65 or 65%"
_RATIO_TEXT = "expected whole percent from 100 to 500, such as 120 or 120%"
_DURATION_TEXT = "expected a duration such as 500ms, 20s, 5m or 1h30m"

_NUMBER = r"(\d{1,15}(?:\.\d{1,15})?)"
_CPU = re.compile(_NUMBER + "(m?)", re.ASCII)
_MEMORY = re.compile(_NUMBER + " ?(?:([kKMGTP])(i?)B?)?", re.ASCII)
_PERCENT = re.compile(r"(\d{1,3})%?", re.ASCII)
_DURATION = re.compile(r"(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,9})ms)?", re.ASCII)
_POWERS = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def cpu_milli(value: object) -> int:
    """Milli-cores of `2`, `0.5` or `500m`."""
    match = _CPU.fullmatch(_text(value))
    if match is None:
        raise ValueError(_CPU_TEXT)
    return _whole(Fraction(match[1]) * (1 if match[2] else 1000), _CPU_TEXT)


def memory_bytes(value: object) -> int:
    """Bytes of `1000000000`, `512Mi`, `4GiB` (powers of 1024) or `2G`, `2GB` (powers of 1000)."""
    match = _MEMORY.fullmatch(_text(value))
    if match is None:
        raise ValueError(_MEMORY_TEXT)
    factor = (1024 if match[3] else 1000) ** _POWERS[match[2]] if match[2] else 1
    return _whole(Fraction(match[1]) * factor, _MEMORY_TEXT)


def percent(value: object) -> int:
    """Percent of `65` or `65%`. A fraction such as 0.29 is refused: it could mean 29 % or 0.29 %."""
    match = _PERCENT.fullmatch(_text(value))
    if match is None or int(match[1]) > 100:
        raise ValueError(_PERCENT_TEXT)
    return int(match[1])


def ratio_percent(value: object) -> int:
    """Percent of `120` or `120%`, for overcommit."""
    match = _PERCENT.fullmatch(_text(value))
    if match is None or not 100 <= int(match[1]) <= 500:
        raise ValueError(_RATIO_TEXT)
    return int(match[1])


def duration_seconds(value: object) -> float:
    """Seconds of `500ms`, `20s`, `5m` or `1h30m`. A number without a unit is refused."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    if match is None:
        raise ValueError(_DURATION_TEXT)
    hours, minutes, seconds, milliseconds = (int(part or 0) for part in match.groups())
    return (((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds) / 1000


def cpu_limit(value: object) -> Limit:
    """A limit in cores, or in percent of batch capacity; a percent needs its sign here."""
    return _amount_or_share(value, cpu_milli, "batch capacity such as 80%")


def memory_limit(value: object) -> Limit:
    """A limit in bytes, or in percent of batch capacity; a percent needs its sign here."""
    return _amount_or_share(value, memory_bytes, "batch capacity such as 80%")


def cpu_reserved(value: object) -> Limit:
    """A reserve of CPU: cores, or percent of the node; a percent needs its sign here."""
    return _amount_or_share(value, cpu_milli, "the node such as 5%")


def memory_reserved(value: object) -> Limit:
    """A reserve of memory: bytes, or percent of the node; a percent needs its sign here."""
    return _amount_or_share(value, memory_bytes, "the node such as 5%")


def _amount_or_share(value: object, amount: Callable[[object], int], share: str) -> Limit:
    if isinstance(value, str) and value.endswith("%"):
        return Limit(percent=percent(value))
    try:
        return Limit(amount=amount(value))
    except ValueError as error:
        raise ValueError(f"{error}; or a share of {share}") from None


def _text(value: object) -> str:
    """The text in the file; for a float its shortest decimal. Empty for other types."""
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f")
    return str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""


def _whole(value: Fraction, allowed: str) -> int:
    if value.denominator != 1:
        raise ValueError(allowed)
    if value > LARGEST:
        raise ValueError(f"{allowed}; and at most {LARGEST}")
    return value.numerator
