"""What makes size changes dear for the scheduler, and whether their order or portions change that.

The scheduler knows the largest memory and the most vcores that any node has. When it changes a node that has as much
of either, it walks all nodes for the new maximum. `walks` counts how often that happens.

It also keeps its nodes in lists, takes a changed one out and appends it. To find it, it searches the list from its
beginning: nodes that come in the order of the last time are found at once, and in the reverse order only at the end.
The nodes of one call are in an order of the ResourceManager's own, always the same, whatever the order of the request.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

from tests.benchmarks.fleet import sending, table
from tests.benchmarks.fleet.cluster import CONFIGURED, Fleet
from tests.benchmarks.fleet.sending import Cost, Sizes

from fallow_yarn.ipc.connection import Connection
from fallow_yarn.model.size import Size

EQUAL = Size(10000, 16)
LARGER = Size(CONFIGURED.memory_mb + 1024, CONFIGURED.vcores + 8)

Portions = Sequence[Sizes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Sizes before and after, and how they are sent: each portion a call.

    `waits` until each is in force. `at_once`: all calls are under way before the first answer is waited for. `again`:
    the sizes before were sent in the same way, not in one call.
    """

    name: str
    before: Sizes
    after: Sizes
    portions: Callable[[Sizes, Sizes], Portions]
    waits: bool = False
    at_once: bool = False
    again: bool = False


def walks(before: Sizes, after: Iterable[tuple[str, Size]]) -> int:
    """How often all nodes are walked when the changes are made in this order."""
    amounts = [Counter(size.memory_mb for size in before.values()), Counter(size.vcores for size in before.values())]
    most, found = [max(counts) for counts in amounts], 0
    for node_id, new in after:
        old = before[node_id]
        found += old.memory_mb == most[0] or old.vcores == most[1]
        for i, (gone, come) in enumerate(((old.memory_mb, new.memory_mb), (old.vcores, new.vcores))):
            amounts[i][gone] -= 1
            if amounts[i][gone] == 0:
                del amounts[i][gone]
            amounts[i][come] += 1
            most[i] = max(most[i], come) if amounts[i][most[i]] else max(amounts[i])
    return found


def one(_before: Sizes, after: Sizes) -> Portions:
    """All in one call, in the order of their names."""
    return [after]


def largest_first(_before: Sizes, after: Sizes) -> Portions:
    """All in one call, those with the most memory first."""
    return [dict(sorted(after.items(), key=lambda item: -item[1].memory_mb))]


def smallest_first(_before: Sizes, after: Sizes) -> Portions:
    """All in one call, those with the least memory first."""
    return [dict(sorted(after.items(), key=lambda item: item[1].memory_mb))]


def split(is_first: Callable[[Size, Size], bool]) -> Callable[[Sizes, Sizes], Portions]:
    """Two calls: those of which `is_first` (before, after) first."""

    def portions(before: Sizes, after: Sizes) -> Portions:
        first = {node_id: size for node_id, size in after.items() if is_first(before[node_id], size)}
        return [first, {node_id: size for node_id, size in after.items() if node_id not in first}]

    return portions


def of(count: int) -> Callable[[Sizes, Sizes], Portions]:
    """Portions of so many."""

    def portions(_before: Sizes, after: Sizes) -> Portions:
        ids = list(after)
        return [{node_id: after[node_id] for node_id in ids[i : i + count]} for i in range(0, len(ids), count)]

    return portions


def grows(before: Size, after: Size) -> bool:
    """Whether a node becomes larger in any way."""
    return after.memory_mb > before.memory_mb or after.vcores > before.vcores


def trials(ids: Sequence[str], rng: Random) -> list[Trial]:
    """What is tried."""
    all_full, all_equal = dict.fromkeys(ids, CONFIGURED), dict.fromkeys(ids, EQUAL)
    one_larger = {**all_full, ids[0]: LARGER}
    mixed, other = sending.varied(ids, rng), sending.varied(ids, rng)
    but_the_larger = {node_id: size for node_id, size in mixed.items() if node_id != ids[0]}
    few_grow = {n: Size(s.memory_mb // 2, s.vcores // 2) for n, s in mixed.items()} | {
        n: Size(EQUAL.memory_mb + 500, EQUAL.vcores + 1) for n in rng.sample(ids, max(1, len(ids) // 500))
    }
    portion, backwards = max(1, len(ids) // 100), dict(reversed([*other.items()]))
    mixed_up = {node_id: other[node_id] for node_id in rng.sample(ids, len(ids))}
    return [
        Trial(name="all equal, all shrink", before=all_full, after=mixed, portions=one),
        Trial(name="the same beside one larger node", before=one_larger, after=but_the_larger, portions=one),
        Trial(name="all equal, all grow", before=all_equal, after=all_full, portions=one),
        Trial(name="all equal, 1 of 500 grows", before=all_equal, after=few_grow, portions=one),
        Trial(name="  largest first", before=all_equal, after=few_grow, portions=largest_first),
        Trial(name="  smallest first", before=all_equal, after=few_grow, portions=smallest_first),
        Trial(name="  2 calls, growth first", before=all_equal, after=few_grow, portions=split(grows)),
        Trial(
            name="  2 calls, growth last",
            before=all_equal,
            after=few_grow,
            portions=split(lambda before, after: not grows(before, after)),
        ),
        Trial(name="all differ", before=mixed, after=other, portions=one),
        Trial(name="  2 calls, growth first", before=mixed, after=other, portions=split(grows)),
        Trial(name="  100 calls", before=mixed, after=other, portions=of(portion)),
        Trial(name="  100 calls, waits for each", before=mixed, after=other, portions=of(portion), waits=True),
        Trial(
            name="  100 calls, the same order as before", before=mixed, after=other, portions=of(portion), again=True
        ),
        Trial(name="  100 calls, in reverse order", before=mixed, after=backwards, portions=of(portion), again=True),
        *(
            Trial(
                name=f"  25 calls under way at once, {order} order",
                before=mixed,
                after=after,
                portions=of(max(1, len(ids) // 25)),
                at_once=True,
                again=True,
            )
            for order, after in (("the same", other), ("another", mixed_up))
        ),
    ]


def run(fleet: Fleet, count: int) -> None:
    """Print the median cost of each trial, and how many walks are to be expected if the order in a call counts."""
    connection = sending.connected(fleet.admin)
    idle, rows = fleet.idle_share(), []
    for trial in trials(fleet.ids, Random(3)):
        costs, queues = zip(*(_try(fleet, connection, trial, idle) for _ in range(count)), strict=True)
        order = [item for portion in trial.portions(trial.before, trial.after) for item in portion.items()]
        times = [median(getattr(cost, name) for cost in costs) for name in ("answered", "right", "cpu")]
        cells = [f"{seconds:.2f} s" for seconds in times]
        rows.append([trial.name, *cells, median(queues), walks(trial.before, order)])
    connection.close()
    columns = ["", "answered", "in force", "RM CPU", "events waiting", "walks, in this order"]
    table.show(f"All {fleet.nodes} sizes changed in different ways (medians of {count})", columns, rows)


def _try(fleet: Fleet, connection: Connection, trial: Trial, idle_share: float) -> tuple[Cost, int]:
    """The cost, and the largest number of events that were seen waiting for the scheduler."""
    before = trial.portions(trial.before, trial.before) if trial.again else [trial.before]
    sending.calls_under_way(connection, before)()
    fleet.wait_until_right(sending.total_of(trial.before))
    portions = trial.portions(trial.before, trial.after)
    groups = [portions] if trial.at_once else [[portion] for portion in portions]
    calls = [sending.calls_under_way(connection, group) for group in groups]

    def act() -> None:
        now = dict(trial.before)
        for call, group in zip(calls, groups, strict=True):
            call()
            for portion in group:
                now |= portion
            if trial.waits:
                fleet.wait_until_right(sending.total_of(now))

    fleet.longest_queue = 0
    cost = sending.cost(fleet, idle_share, act, sending.total_of({**trial.before, **trial.after}))
    return cost, fleet.longest_queue
