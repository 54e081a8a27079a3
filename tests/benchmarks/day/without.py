"""Each rule of the ledger, switched off: what the day is like without it shows what it is for."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.benchmarks.day import fallow
from tests.benchmarks.day.world import Day

from fallow_core.ledger import accounts, blast_radius, cross_resource, due_offers, falls, growth_delay, node_ledger
from fallow_core.ledger.due_offers import DueResource
from fallow_core.ledger.node_ledger import ResourceLedger
from fallow_core.ledger.rows import RowKey
from fallow_core.ledger.sharing import Claim, Share, shares

Change = Callable[[Day], tuple[Day, Sequence[tuple[object, str, object]]]]


def _patched(*patches: tuple[object, str, object]) -> Change:
    return lambda day: (day, patches)


def _no_hold(day: Day) -> tuple[Day, Sequence[tuple[object, str, object]]]:
    return replace(day, publishing=replace(day.publishing, growth_delay_seconds=0.0)), ()


def _far(day: Day) -> tuple[Day, Sequence[tuple[object, str, object]]]:
    return replace(day, far=None), ()


def _grown_regardless(batch: int, wanted: Sequence[int], *_: object) -> list[int]:
    return list(wanted)


def _undrained(batch: int, claims: Sequence[Claim], drain_step: int) -> list[Share]:
    return [
        share._replace(target=max(share.target, claim.allocated), drains_for_others=False)
        if share.drains_for_others
        else share
        for share, claim in zip(shares(batch, claims, drain_step), claims, strict=True)
    ]


def _unspread(batch: int, claims: Sequence[Claim], drain_step: int) -> list[Share]:
    """Nobody is offered more than it wants."""
    return [
        share if claim.most is None else share._replace(target=min(share.target, max(claim.most, claim.allocated)))
        for share, claim in zip(shares(batch, claims, drain_step), claims, strict=True)
    ]


def _nobody_waits(row: Any, ledger: ResourceLedger, waiting: Collection[str], *rest: Any) -> DueResource:
    return DECIDE(row, ledger, (), *rest)


def _all_too_large(ledger: ResourceLedger, rows: object) -> Collection[RowKey]:
    return [row.key for row in ledger.rows if ledger.overcommitted and row.size < row.newest]


def _any_unit(newest: int, wanted: int, dead_band_percent: int) -> bool:
    return newest != wanted


def _falls_anyway(entry: object, ledger: object) -> bool:
    return True


def _no_further(entry: object, ledger: object, lowest: int, ahead: int, *, overdrawn: bool) -> int:
    return lowest


def _no_blast_radius(*_: object) -> int:
    return 2**62


DECIDE = due_offers._decide
RULES: Mapping[str, Change] = {
    "held growth": _no_hold,
    "little growth held longer": _patched((growth_delay, "SLOW", 1)),
    "growth out of what others may not believe": _patched((node_ledger, "grown", _grown_regardless)),
    "sizes in flight": _patched((fallow, "shown_to_planner", lambda row: replace(row, in_flight=()))),
    "falls when another waits": _patched((due_offers, "_decide", _nobody_waits)),
    "such a fall is half a step": _patched((due_offers, "STEP_PERCENT", 0)),
    "no more rows fall than suffice": _patched((due_offers, "_too_large", _all_too_large)),
    "the drain towards fair": _patched((accounts, "shares", _undrained)),
    "the dead band": _patched((due_offers, "beyond_dead_band", _any_unit)),
    "growth leaves a margin for noise": _patched((growth_delay, "MARGIN_PERCENT", 0)),
    "steady falls go ahead of the load": _patched((falls, "AHEAD_SECONDS", 0.0)),
    "a size stays at the allocation at first": _patched((falls, "DRAIN_AFTER_SECONDS", 0.0)),
    "falls only when needed": _patched((due_offers, "_capped", _falls_anyway)),
    "falls further than it must": _patched((due_offers, "_further", _no_further)),
    "the cut to what can be used": _patched((cross_resource, "ROUNDS", 0)),
    "cut more than once": _patched((cross_resource, "ROUNDS", 1)),
    "spreading what nobody asks for": _patched((accounts, "shares", _unspread)),
    "the blast radius": _patched((blast_radius, "budget", _no_blast_radius)),
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
