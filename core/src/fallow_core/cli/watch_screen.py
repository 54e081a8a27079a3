"""The screen of `fallow watch`: for each resource a bar, and the recent values of its parts."""

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from fallow_core.cli.watch_text import NAMES, UNITS, Reading, amount
from fallow_core.ledger.capacity import BatchCapacity
from fallow_hookspecs import RESOURCE_NAMES, ResourceName

WIDEST = 100
USED, OVER, LENDABLE, FREE = "cyan", "red", "green", "dim"


def screen(
    readings: Sequence[Reading], host: str, until_seconds: float | None, ascii_only: bool, width: int, height: int
) -> Group:
    """The newest of the readings. Lines are cut at the width; a small terminal gets no empty lines."""
    newest, width = readings[-1], min(width - 1, WIDEST)
    sizes = ", ".join(f"{float(amount(name, now.capacity)):g} {UNITS[name]}" for name, now in newest.resources.items())
    until = "" if until_seconds is None else f" of {until_seconds:g}"
    left, right = f"  {host}  {sizes}", f"{newest.elapsed_seconds:.0f}{until} s"
    lines = [_line((" fallow watch", "bold"), left, (right.rjust(width - 13 - len(left)), "dim"))]
    for name in RESOURCE_NAMES:
        if name in newest.resources:
            history = [reading.resources[name] for reading in readings if name in reading.resources]
            lines += [Text(), *_block(name, history, width, ascii_only)]
        else:
            lines += [Text(), _line((f" {NAMES[name]:8}", "bold"), (f"unknown: {newest.missing.get(name)}", OVER))]
    lines += [Text(), _line((" This view changes nothing and lends nothing. q or Ctrl-C ends.", "dim"))]
    return Group(*(line for line in lines if line.plain or height >= len(lines)))


def _block(name: ResourceName, history: Sequence[BatchCapacity], width: int, ascii_only: bool) -> list[Text]:
    """A bar, and a row for each of its three parts; together they are the whole capacity."""
    now = history[-1]
    used_mark, lendable_mark, free_mark, *steps = list("#=._.-:=+*#" if ascii_only else "█▒·▁▂▃▄▅▆▇█")
    over = now.used > now.capacity - now.margin
    used_style = OVER if over else USED
    cells = max(0, width - 9)
    used, end = round(cells * now.used / now.capacity), round(cells * (now.used + now.batch) / now.capacity)

    def row(mark: str, style: str, label: str, value: int, more: str, more_style: str) -> Text:
        numbers = f"{amount(name, value):>8} {UNITS[name]:5}{value / now.capacity:>6.0%}   "
        return _line(" " * 9, (mark, style), f" {label:10}{numbers}", (more, more_style))

    def trend(values: Sequence[int]) -> str:
        newest = values[-max(1, width - 44) :]
        return "".join(steps[min(7, 8 * value // now.capacity)] for value in newest)

    free = now.capacity - now.used - now.batch
    watermark = f"{'use is over' if over else 'above'} the watermark of {now.watermark_percent} %"
    return [
        _line(
            (f" {NAMES[name]:8}", "bold"),
            (used_mark * used, used_style),
            (lendable_mark * (end - used), LENDABLE),
            (free_mark * (cells - end), FREE),
        ),
        row(used_mark, used_style, "in use", now.used, trend([past.used for past in history]), used_style),
        row(lendable_mark, LENDABLE, "could lend", now.batch, trend([past.batch for past in history]), LENDABLE),
        row(free_mark, FREE, "kept free", free, watermark, OVER if over else FREE),
    ]


def _line(*parts: str | tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="crop")
