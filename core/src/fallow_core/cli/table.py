"""Plain tables and paragraphs for a terminal, and amounts for people."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from fallow_core.api.status import LostState, ScopeSwitch
from fallow_core.state.lost_files import COMMAND
from fallow_hookspecs import RESOURCE_NAMES, ResourceName, Resources

GIB = 2**30
WIDTH = 140
UNITS: Mapping[ResourceName, str] = {"cpu": "cores", "memory": "GiB"}
LABELS: Mapping[ResourceName, str] = {"cpu": "CPU, cores", "memory": "memory, GiB"}


def table(lines: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Lines with their columns aligned."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return [
        (indent + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))).rstrip()
        for line in lines
    ]


def paragraph(text: str, indent: str = "", hanging: str = "    ") -> list[str]:
    """A text of any length as lines of at most `WIDTH` characters, unless a word is longer; its words stay whole."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def marked(problems: Iterable[str], indent: str = "") -> list[str]:
    """A paragraph for each problem."""
    return [line for problem in problems for line in paragraph(f"! {problem}", indent)]


def switch_words(switch: ScopeSwitch) -> str:
    """A switch of some scope, with who set it and why."""
    return f"{switch.scope} is switched to {switch.state} by {switch.who}{f': {switch.why}' if switch.why else ''}"


def lost_state_words(lost: LostState) -> str:
    """A state file that cannot be read, what follows from it, and what to do."""
    return f"{lost.file} {lost.why}: {lost.effect}; {lost.advice}, or give the file up: {COMMAND} --why REASON"


def amount(resource: ResourceName, value: float | None) -> str:
    """Milli-cores as cores, bytes as GiB; `?` for what is not known."""
    if value is None:
        return "?"
    return f"{value / 1000:.2f}" if resource == "cpu" else f"{value / GIB:.2f}"


def part(resource: ResourceName, size: Resources | None) -> str:
    """One resource of a size."""
    return amount(resource, None if size is None else size.amount(resource))


def size_words(size: Resources | None) -> str:
    """Both resources of a size, with their units."""
    return ", ".join(f"{LABELS[name]}: {part(name, size)}" for name in RESOURCE_NAMES)


def seconds(value: float | None) -> str:
    """A time or an age in words."""
    if value is None:
        return "never"
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.0f} h"
