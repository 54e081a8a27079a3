"""A duration on the command line, in the notation of the config files."""

import re
from typing import Final

import click

from fallow_yarn.rm.refresh import MOST_GRACE_SECONDS

_FORM: Final = re.compile(r"(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,9})ms)?", re.ASCII)
"""As `fallow_core.model.quantities` has it, which a plugin must not import."""


def seconds(_context: click.Context, _option: click.Parameter, value: str) -> int:
    """The value of an option, such as `90s`, `10m` or `1h30m`, in seconds; milliseconds are rounded up."""
    match = _FORM.fullmatch(value) if value else None
    if match is None:
        raise click.BadParameter(f"{value!r}: expected a duration such as 90s, 10m or 1h30m")
    hours, minutes, whole, milliseconds = (int(part or 0) for part in match.groups())
    total = (hours * 60 + minutes) * 60 + whole - (-milliseconds // 1000)
    if total > MOST_GRACE_SECONDS:
        raise click.BadParameter(f"{value!r}: expected at most {MOST_GRACE_SECONDS}s")
    return total
