"""The text at the end of the demo. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from fallow_core.cli.demo.framework import Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """CPU of the host at one moment, in milli-cores. `lends`: Fallow ran."""

    capacity_milli: int
    used_milli: int
    batch_milli: int
    lends: bool


def delays(rises_at: Iterable[float], told: Sequence[tuple[float, int]]) -> list[float]:
    """For each rise of the load, the seconds until the resource manager was told a smaller size than before."""
    found = []
    for rise in rises_at:
        had = next((size for at, size in reversed(told) if at <= rise), None)
        after = next((at - rise for at, size in told if at > rise and had is not None and size < had), None)
        found += [] if after is None else [after]
    return found


def summary(moments: Sequence[Moment], counts: Counts, found_delays: Sequence[float], why_lost: Sequence[str]) -> str:
    """CPU in use without and with Fallow, the tasks, and the delay between a rise of the load and the smaller size."""
    before = [m for m in moments if not m.lends]
    after = [m for m in moments if m.lends]
    lines = []
    if before and after:
        alone, used = (100 * fmean(m.used_milli / m.capacity_milli for m in moments) for moments in (before, after))
        batch = 100 * fmean(m.batch_milli / m.capacity_milli for m in after)
        parts = f"({used - batch:.0f} % online and system, {batch:.0f} % batch)"
        lines += [f"CPU in use         {alone:.0f} % without Fallow, {used:.0f} % with it {parts}"]
    lines += [f"Tasks              {counts.finished} finished, {counts.lost} lost and queued again"]
    lines += [f"                   {why}" for why in why_lost]
    each = ", ".join(f"{delay:.1f} s" for delay in found_delays)
    told = (
        f"{each} until the resource manager was told the smaller size" if each else "none was told: this host is busy"
    )
    return "\n".join([*lines, f"Load step to RM    {told}"])
