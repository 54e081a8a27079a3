"""A length of time on the command line."""

import re
from typing import Final

import click

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_FORM: Final = re.compile(r"([0-9]{1,4})([smhd])")


def seconds(_context: click.Context, _option: click.Parameter, value: str) -> int:
    """The value of an option, a whole number with a unit such as `90s`, `10m`, `2h`, in seconds."""
    match = _FORM.fullmatch(value)
    if match is None:
        raise click.BadParameter(f"{value!r} is no length of time such as 90s, 10m or 2h")
    return int(match[1]) * _SECONDS[match[2]]
