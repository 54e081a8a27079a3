"""Each rule of the ledger, switched off: what the day is like without it shows what it is for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest.mock import patch

from tests.benchmarks.day import fallow
from tests.benchmarks.day.world import Day

from fallow_core.ledger import accounts, node_ledger, publishing, take_back, together
from fallow_core.ledger.sharing import Claim, Share, shares
from fallow_core.model.policy import PublishingPolicy

Change = Callable[[Day], tuple[Day, Sequence[tuple[object, str, object]]]]


def _patched(*patches: tuple[object, str, object]) -> Change:
    return lambda day: (day, patches)


def _no_hold(day: Day) -> tuple[Day, Sequence[tuple[object, str, object]]]:
    return replace(day, publishing=replace(day.publishing, growth_hold_seconds=0.0)), ()


def _far(day: Day) -> tuple[Day, Sequence[tuple[object, str, object]]]:
    return replace(day, far=None), ()


def _grown_regardless(batch: int, wanted: Sequence[int], *_: object) -> list[int]:
    return list(wanted)


def _undrained(batch: int, claims: Sequence[Claim], drain_step: int) -> list[Share]:
    return [
        replace(share, target=max(share.target, claim.allocated), drains_for_others=False)
        if share.drains_for_others
        else share
        for share, claim in zip(shares(batch, claims, drain_step), claims, strict=True)
    ]


def _unspread(batch: int, claims: Sequence[Claim], drain_step: int) -> list[Share]:
    """Nobody is offered more than it wants."""
    return [
        share if claim.most is None else replace(share, target=min(share.target, max(claim.most, claim.allocated)))
        for share, claim in zip(shares(batch, claims, drain_step), claims, strict=True)
    ]


def _nobody_waits(entry: object, ledger: object, held: int, waits: bool, policy: PublishingPolicy) -> object:
    return DECIDE(entry, ledger, held, False, policy)  # type: ignore[arg-type]


def _any_unit(newest: int, wanted: int, band_percent: int) -> bool:
    return newest != wanted


def _falls_anyway(entry: object, ledger: object) -> bool:
    return True


def _no_further(entry: object, ledger: object, wanted: int) -> int:
    return wanted


def _no_blast_radius(*_: object) -> int:
    return 2**62


DECIDE = publishing._decide
RULES: Mapping[str, Change] = {
    "held growth": _no_hold,
    "little growth held longer": _patched((publishing, "SLOW", 1)),
    "growth out of what others may not believe": _patched((node_ledger, "grown", _grown_regardless)),
    "sizes in flight": _patched((fallow, "shown_to_ledger", lambda row: replace(row, in_flight=()))),
    "a unit when another waits": _patched((publishing, "_decide", _nobody_waits)),
    "the drain towards fair": _patched((accounts, "shares", _undrained)),
    "the band": _patched((publishing, "beyond_band", _any_unit)),
    "falls only when needed": _patched((publishing, "_capped", _falls_anyway)),
    "falls a little further": _patched((publishing, "_further", _no_further)),
    "the cut to what can be used": _patched((together, "ROUNDS", 0)),
    "cut more than once": _patched((together, "ROUNDS", 1)),
    "spreading what nobody asks for": _patched((accounts, "shares", _unspread)),
    "the blast radius": _patched((take_back, "budget", _no_blast_radius)),
    "the far timeout": _far,
}


@contextmanager
def without(rule: str, day: Day) -> Iterator[Day]:
    """The day without one rule; it has to be run inside."""
    day, patches = RULES[rule](day)
    with ExitStack() as stack:
        for where, name, what in patches:
            stack.enter_context(patch.object(where, name, what))
        yield day
