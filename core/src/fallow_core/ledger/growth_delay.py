"""How far a size may grow, as far as time is concerned: the smallest target of the last while.

Growth has to hold for `growth_delay_seconds`, and as long again after the last growth. Growth that is not much (twice
the dead band, a unit, or a drain step; above the fair share less than to double it) has to hold `SLOW` times as long,
unless its account is far below its fair share: it is what noise brings back, or nobody needs. Other growth leaves a
margin for the noise that the targets of the shorter time show: the next fluctuation of the load would take it back.
"""

import math
from dataclasses import dataclass, field

from fallow_core.ledger.falls import Falls
from fallow_core.ledger.node_ledger import AccountEntry, ResourceLedger, RowEntry
from fallow_core.ledger.rows import RowKey
from fallow_core.ledger.sharing import beyond_dead_band
from fallow_core.model.policy import PublishingPolicy
from fallow_hookspecs import ResourceName

SLOW = 6
"""Growth that is not much has to hold so many times as long."""
DEPTH = 8
"""How many targets are remembered of a row and resource. Of noise as many count as a sequence has records: about 5."""
IDLE_PERCENT = 99
"""Above the fair share growth by this share of the size is not much, either: less than to double it."""
BEHIND_PERCENT = 60
"""An account with less of its fair share is too far behind to wait that long."""
MARGIN_PERCENT = 50
"""Growth leaves this share of what the newest target lies above the smallest one."""


@dataclass(slots=True)
class GrowthDelay:
    """The targets of the last while, for one row and one resource.

    Kept as (time, target) with growing targets: the first one of a time is the smallest since then. Before there are
    more than `DEPTH` the two that differ least become one: the smaller target, at the time of the larger one. So one
    that has risen for long may count for a little less than it was. `since`: when the size last grew, or watching
    began; `newest` is the size. `falls`: what is remembered of falls of the same row and resource.
    """

    since: float
    newest: int
    targets: list[tuple[float, int]] = field(default_factory=list)
    falls: Falls = field(default_factory=Falls)

    def push(
        self, now: float, newest: int, target: int, delay_seconds: float, unchanged_until: float = -math.inf
    ) -> None:
        """Add a target; those older than `SLOW` times `delay_seconds` are forgotten.

        :param unchanged_until: until then the last target is known to have been the same, although nobody pushed it.
        """
        if newest > self.newest:
            self.since = now
        if newest < self.newest:
            self.falls.fell(now, target)
        self.newest = newest
        if self.targets and unchanged_until > self.targets[-1][0]:
            self.targets[-1] = (unchanged_until, self.targets[-1][1])
        oldest = now - SLOW * delay_seconds
        kept = [(at, smaller) for at, smaller in self.targets if smaller < target and at >= oldest]
        if len(kept) == DEPTH:
            _, i = min((kept[i + 1][1] - kept[i][1], i) for i in range(DEPTH - 1))
            kept[i : i + 2] = [(kept[i + 1][0], kept[i][1])]
        self.targets = [*kept, (now, target)]

    def least(self, now: float, seconds: float) -> int:
        """The smallest target of the last seconds; the newest size if that stood for less long."""
        if now - self.since < seconds:
            return self.newest
        return next(target for at, target in self.targets if at >= now - seconds)


GrowthDelays = dict[tuple[RowKey, ResourceName], GrowthDelay]


def delay_of(
    delays: GrowthDelays,
    entry: RowEntry,
    resource: ResourceName,
    now: float,
    delay_seconds: float,
    unchanged_until: float,
) -> GrowthDelay:
    """What is remembered of a row and resource, brought up to date."""
    delay = delays.setdefault((entry.key, resource), GrowthDelay(since=now, newest=entry.newest))
    delay.push(now, entry.newest, entry.wanted, delay_seconds, unchanged_until)
    delay.falls.note(now, entry.target < entry.allocated)
    return delay


def may_grow_to(
    delay: GrowthDelay, entry: RowEntry, ledger: ResourceLedger, now: float, policy: PublishingPolicy
) -> int:
    """The size that a row may grow to, as far as time is concerned; its newest one if that is larger."""
    least = delay.least(now, policy.growth_delay_seconds)
    margin = max(delay.targets[-1][1] - least, 0) * MARGIN_PERCENT // 100
    least = least if least <= entry.newest else (least - margin) // entry.unit * entry.unit
    account, own = account_of(entry, ledger)
    above_fair = entry.newest * IDLE_PERCENT // 100 if own >= account.fair else 0
    little = least - entry.newest <= max(entry.unit, ledger.drain_step, above_fair)
    little = little or not beyond_dead_band(entry.newest, least, 2 * policy.dead_band_percent)
    if little and own * 100 >= account.fair * BEHIND_PERCENT:
        least = delay.least(now, SLOW * policy.growth_delay_seconds)
    return max(entry.newest, least)


def account_of(entry: RowEntry, ledger: ResourceLedger) -> tuple[AccountEntry, int]:
    """The account of a row, and the sum of its newest sizes."""
    account = next(a for a in ledger.accounts if a.cluster == entry.key.cluster)
    return account, sum(row.newest for row in ledger.rows if row.key.cluster == account.cluster)
