"""All sizes changed: by the plugin in one call, and by one new connection and call a node, in turn.

Each way changes them twice, and the second time counts: the ResourceManager finds nodes sooner when they come in the
same order as the last time (see `order`), and neither way should pay for the order of the other one.
"""

from collections.abc import Callable
from random import Random
from statistics import fmean, median

from tests.benchmarks.fleet import sending, table
from tests.benchmarks.fleet.cluster import Fleet
from tests.benchmarks.fleet.sending import HOST, TIMEOUT_SECONDS, Cost, Sizes

from fallow_hookspecs import Node


def run(fleet: Fleet, pairs: int) -> None:
    """Print each pair, the medians, and their ratios."""
    rng, plugin = Random(1), fleet.instance()
    plugin.report_capacity((Node(name=HOST),), (), TIMEOUT_SECONDS)
    idle = [fleet.idle_share()]

    def one_call(sizes: Sizes) -> Callable[[], None]:
        return sending.by_plugin(plugin, sizes)

    def calls(sizes: Sizes) -> Callable[[], None]:
        return sending.call_a_node(fleet.admin, sizes)

    found = [[_second(fleet, rng, way, idle[0]) for way in (one_call, calls)] for _ in range(pairs)]
    plugin.close()
    idle.append(fleet.idle_share())
    rows = [_row(f"pair {i + 1}", ours, theirs) for i, (ours, theirs) in enumerate(found)]
    middle = [_median([pair[side] for pair in found]) for side in (0, 1)]
    rows.append(_row("median", *middle))
    ratios = [getattr(middle[1], name) / max(getattr(middle[0], name), 1e-3) for name in ("answered", "right", "cpu")]
    rows.append(["ratio", *(cell for ratio in ratios for cell in ("", f"{ratio:.1f} x"))])
    table.show(
        f"All {fleet.nodes} sizes changed (F: Fallow, one call; C: a connection and a call a node). Idle, the"
        f" ResourceManager uses {100 * fmean(idle):.1f} % of a core",
        ["", "answered F", "C", "in force F", "C", "RM CPU F", "C"],
        rows,
    )


def _second(fleet: Fleet, rng: Random, way: Callable[[Sizes], Callable[[], None]], idle_share: float) -> Cost:
    for _ in range(2):
        sizes = sending.varied(fleet.ids, rng)
        cost = sending.cost(fleet, idle_share, way(sizes), sending.total_of(sizes))
    return cost


def _row(name: str, ours: Cost, theirs: Cost) -> list[str]:
    pairs = [(ours.answered, theirs.answered), (ours.right, theirs.right), (ours.cpu, theirs.cpu)]
    return [name, *(f"{seconds:.2f} s" for pair in pairs for seconds in pair)]


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        answered=median(c.answered for c in costs),
        right=median(c.right for c in costs),
        cpu=median(c.cpu for c in costs),
    )
