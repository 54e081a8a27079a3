"""All sizes changed: by the plugin in one call, and by one new connection and call a node, in turn."""

from random import Random
from statistics import fmean, median

from tests.benchmarks.fleet import sending, table
from tests.benchmarks.fleet.cluster import Fleet
from tests.benchmarks.fleet.sending import HOST, TIMEOUT_SECONDS, Cost

from fallow_hookspecs import Node


def run(fleet: Fleet, pairs: int) -> None:
    """Print each pair, the medians, and their ratios. One pair before them is not counted."""
    rng, plugin = Random(1), fleet.instance()
    plugin.report_capacity((Node(name=HOST),), (), TIMEOUT_SECONDS)
    idle = [fleet.idle_share()]
    found: list[tuple[Cost, Cost]] = []
    for _ in range(pairs + 1):
        ours, theirs = sending.varied(fleet.ids, rng), sending.varied(fleet.ids, rng)
        one_call = sending.by_plugin(plugin, ours)
        calls = sending.call_a_node(fleet.admin, theirs)
        found.append(
            (
                sending.cost(fleet, idle[0], one_call, sending.total_of(ours)),
                sending.cost(fleet, idle[0], calls, sending.total_of(theirs)),
            )
        )
    plugin.close()
    idle.append(fleet.idle_share())
    rows = [_row(f"pair {i + 1}", ours, theirs) for i, (ours, theirs) in enumerate(found[1:])]
    middle = [_median([pair[side] for pair in found[1:]]) for side in (0, 1)]
    rows.append(_row("median", *middle))
    ratios = [getattr(middle[1], name) / max(getattr(middle[0], name), 1e-3) for name in ("answered", "right", "cpu")]
    rows.append(["ratio", *(cell for ratio in ratios for cell in ("", f"{ratio:.1f} x"))])
    table.show(
        f"All {fleet.nodes} sizes changed (F: Fallow, one call; C: a connection and a call a node). Idle, the"
        f" ResourceManager uses {100 * fmean(idle):.1f} % of a core",
        ["", "answered F", "C", "in force F", "C", "RM CPU F", "C"],
        rows,
    )


def _row(name: str, ours: Cost, theirs: Cost) -> list[str]:
    pairs = [(ours.answered, theirs.answered), (ours.right, theirs.right), (ours.cpu, theirs.cpu)]
    return [name, *(f"{seconds:.2f} s" for pair in pairs for seconds in pair)]


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        answered=median(c.answered for c in costs),
        right=median(c.right for c in costs),
        cpu=median(c.cpu for c in costs),
    )
