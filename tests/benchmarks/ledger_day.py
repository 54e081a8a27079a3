"""A simulated day of the ledger: noisy, stepping loads and demands, three accounts, a bad network, restarts.

    tox -e bench -- ledger_day [--seeds 3] [--hours 24] [--nodes 2] [--trouble 8] [--without RULE | --each-rule]

Printed: account-hours below half of the fair share, which tasks of all accounts known would get; sizes lent of batch
capacity in whole units; what ran of what could have run; size changes an hour and node of each account; take-backs and
the tasks that ended by a deadline; warnings of preemption an hour and node; growth beyond what is believed, and
schedulers that work with more than is believed, both of which may not be; sizes in force above batch capacity, in
percent of a node. `--each-rule` prints the same with each rule of the ledger switched off in turn.
"""

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext

from tests.benchmarks.day.judge import Tally
from tests.benchmarks.day.without import RULES, without
from tests.benchmarks.day.world import Day, World

HEAD = f"{'':42}  starved   lent    ran  sizes an hour     take-backs ended warned  beyond unbelieved  above batch"


def summary(name: str, days: Sequence[tuple[Day, Tally]]) -> str:
    """One line about some days."""
    tallies = [tally for _, tally in days]
    hours = sum(day.hours * day.nodes for day, _ in days)
    clusters = [kind.cluster for kind in days[0][0].kinds]
    sizes = "/".join(f"{sum(t.sizes_sent[c] for t in tallies) / hours:.1f}" for c in clusters)
    lent = 100 * sum(t.lent for t in tallies) / sum(t.possible for t in tallies)
    ran = 100 * sum(t.used for t in tallies) / sum(t.usable for t in tallies)
    above = 100 * sum(sum(t.exposed.values()) for t in tallies) / sum(t.looked_at for t in tallies)
    starved = f"{sum(len(t.starved()) for t in tallies)}/{sum(t.judged_hours for t in tallies)}"
    return (
        f"{name:42} {starved:>8} {lent:5.1f}% {ran:5.1f}%  {sizes:16}  {sum(t.take_backs for t in tallies):9} "
        f"{sum(t.ended for t in tallies):5} {sum(t.warned for t in tallies) / hours:6.1f} "
        f"{sum(t.grown_beyond for t in tallies):7} "
        f"{sum(t.more_than_believed for t in tallies):10} {above:11.2f}%"
    )


def lived(days: Sequence[Day], rule: str | None) -> list[tuple[Day, Tally]]:
    """Days with what was counted, without one rule if it is named."""
    found = []
    for day in days:
        with nullcontext(day) if rule is None else without(rule, day) as changed:
            found.append((changed, World(changed).run()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--trouble", type=int, default=8, help="percent of calls and reports that go wrong")
    parser.add_argument("--load-seconds", type=float, default=1800.0, help="mean time of one level of a node's load")
    parser.add_argument("--without", choices=RULES)
    parser.add_argument("--each-rule", action="store_true")
    given = parser.parse_args()
    days = [
        Day(
            seed=seed,
            hours=given.hours,
            nodes=given.nodes,
            trouble_percent=given.trouble,
            load_seconds=given.load_seconds,
        )
        for seed in range(given.first, given.first + given.seeds)
    ]
    print(HEAD)
    if given.each_rule:
        for rule in (None, *RULES):
            print(summary("all rules" if rule is None else f"without {rule}", lived(days, rule)), flush=True)
        return
    began = time.monotonic()
    everything = []
    for day in days:
        (found,) = lived([day], given.without)
        everything.append(found)
        print(summary(f"seed {day.seed}", [found]), flush=True)
        for cluster, hour, share in found[1].starved():
            print(f"    {cluster}, hour {hour}: {100 * share:.0f} % of its fair share")
    print(summary("all", everything), f"in {time.monotonic() - began:.0f} s")
    causes: Counter[str] = sum((tally.causes for _, tally in everything), Counter())
    hours = sum(day.hours * day.nodes * len(day.kinds) for day, _ in everything)
    print("\nsizes an hour, node and account, by cause:")
    for cause, number in causes.most_common():
        print(f"{number / hours:7.2f}  {cause}")


if __name__ == "__main__":
    main()
