"""All sizes changed: by the plugin, and by one new connection and call a node, in turn.

Between them by one call alone, its message made before: what the ResourceManager takes for it, however little the
plugin would.

Each way changes them twice, and the second time counts: the ResourceManager finds nodes sooner when they come in the
same order as the last time (see `order`), and neither way should pay for the order of the other one. The first pairs do
not count: a ResourceManager that has just started compiles its own code meanwhile, and answers any of them later.
"""

from collections.abc import Callable, Sequence
from random import Random
from statistics import fmean, median

from tests.benchmarks.fleet import sending, table
from tests.benchmarks.fleet.cluster import Fleet
from tests.benchmarks.fleet.sending import HOST, TIMEOUT_SECONDS, Cost, Sizes

from fallow_hookspecs import Node

WARMING_PAIRS = 5
NAMES = ("answered", "right", "cpu")


def run(fleet: Fleet, pairs: int) -> None:
    """Print each pair, the medians, and their ratios."""
    rng, plugin, connection = Random(1), fleet.instance(), sending.connected(fleet.admin)
    plugin.report_capacity((Node(name=HOST),), (), TIMEOUT_SECONDS)
    idle = [fleet.idle_share()]

    def by_fallow(sizes: Sizes) -> Callable[[], None]:
        return sending.by_plugin(plugin, sizes)

    def alone(sizes: Sizes) -> Callable[[], None]:
        return sending.calls_under_way(connection, [sizes])

    def calls(sizes: Sizes) -> Callable[[], None]:
        return sending.call_a_node(fleet.admin, sizes)

    found = [
        [_second(fleet, rng, way, idle[0]) for way in (by_fallow, alone, calls)] for _ in range(WARMING_PAIRS + pairs)
    ]
    found = found[WARMING_PAIRS:]
    connection.close()
    plugin.close()
    idle.append(fleet.idle_share())
    rows = [_row(f"pair {i + 1}", costs) for i, costs in enumerate(found)]
    middle = [_median([costs[way] for costs in found]) for way in range(3)]
    rows.append(_row("median", middle))
    rows.append(["ratio", *(_ratio(each, middle[-1], name) for name in NAMES for each in middle)])
    table.show(
        f"All {fleet.nodes} sizes changed (F: Fallow; A: one call alone; C: a connection and a call a node)."
        f" Idle, the ResourceManager uses {100 * fmean(idle):.1f} % of a core",
        ["", "answered F", "A", "C", "in force F", "A", "C", "RM CPU F", "A", "C"],
        rows,
    )


def _second(fleet: Fleet, rng: Random, way: Callable[[Sizes], Callable[[], None]], idle_share: float) -> Cost:
    for _ in range(2):
        sizes = sending.varied(fleet.ids, rng)
        cost = sending.cost(fleet, idle_share, way(sizes), sending.total_of(sizes))
    return cost


def _row(name: str, costs: Sequence[Cost]) -> list[str]:
    return [name, *(f"{getattr(cost, of):.2f} s" for of in NAMES for cost in costs)]


def _ratio(cost: Cost, calls: Cost, name: str) -> str:
    return f"{getattr(calls, name) / max(getattr(cost, name), 1e-3):.1f} x"


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        answered=median(c.answered for c in costs),
        right=median(c.right for c in costs),
        cpu=median(c.cpu for c in costs),
    )
