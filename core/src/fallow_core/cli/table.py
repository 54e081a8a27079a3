"""Plain tables for a terminal, and amounts for people."""

from collections.abc import Sequence

from fallow_hookspecs import ResourceName

GIB = 2**30


def table(lines: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Lines with their columns aligned."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return [
        (indent + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))).rstrip()
        for line in lines
    ]


def amount(resource: ResourceName, value: float | None) -> str:
    """Milli-cores as cores, bytes as GiB; `?` for what is not known."""
    if value is None:
        return "?"
    return f"{value / 1000:.2f}" if resource == "cpu" else f"{value / GIB:.2f}"


def seconds(value: float | None) -> str:
    """A time or an age in words."""
    if value is None:
        return "never"
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.0f} h"
