"""What a day costs the ResourceManager: the changes of some minutes of it are made on a real one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from time import sleep

from tests.benchmarks.fleet import sending, table
from tests.benchmarks.fleet.cluster import HEARTBEAT_SECONDS, Fleet
from tests.benchmarks.fleet.day import ROUND_SECONDS, ROUNDS, NodeDay, Sent, Simulated
from tests.benchmarks.fleet.sending import HOST, TIMEOUT_SECONDS, Sizes

from fallow_hookspecs import RESOURCE_NAMES, Node
from fallow_yarn.model.size import Size
from fallow_yarn.plugin import YarnInstance

HOURS = (3, 9, 15, 21)
SHIFT_SECONDS = 1800
FEW, MANY = 2, 20  # rounds at each hour, of those that change nearly all nodes and of the others

Send = Callable[[Sizes], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """The days of all nodes: each has that of one simulated node, some minutes earlier or later."""

    of: Sequence[tuple[str, Sent, int]]

    def at(self, number: int) -> Sizes:
        """All sizes after a round."""
        return {node_id: sent.at((number + shift) % ROUNDS) for node_id, sent, shift in self.of}

    def sent_in(self, number: int) -> Sizes:
        """What is sent in a round."""
        found = ((node_id, sent.sent_in((number + shift) % ROUNDS)) for node_id, sent, shift in self.of)
        return {node_id: size for node_id, size in found if size is not None}


def spread(ids: Sequence[str], days: Sequence[NodeDay]) -> Days:
    """The days of a few nodes as those of many."""
    rng, most = Random(5), SHIFT_SECONDS // ROUND_SECONDS
    return Days(of=[(node_id, days[i % len(days)].sent, rng.randint(-most, most)) for i, node_id in enumerate(ids)])


def run(fleet: Fleet, days: Simulated) -> None:
    """Print what all policies send and lend, and what that costs the ResourceManager."""
    plugin, idle = fleet.instance(), fleet.idle_share()
    nodes = (Node(name=HOST),)
    plugin.report_capacity(nodes, (), TIMEOUT_SECONDS)

    def at_once(sizes: Sizes) -> None:
        sending.by_plugin(plugin, sizes)()

    def reading_back(sizes: Sizes) -> None:
        at_once(sizes)
        plugin.report_capacity(nodes, (), TIMEOUT_SECONDS)

    def calls(sizes: Sizes) -> None:
        sending.call_a_node(fleet.admin, sizes)()

    kinds: list[tuple[str, Sequence[NodeDay], int, Send]] = []
    for name, ours in days.ours.items():
        kinds += [(name, ours, MANY, at_once), ("  and reads back after each round", ours, MANY, reading_back)]
    kinds += [
        ("every change, all of a round at once", days.every, FEW, at_once),
        ("every change, a connection and call a node", days.every, FEW, calls),
    ]
    costs = [
        _cpu_a_round(fleet, plugin, spread(fleet.ids, of_kind), rounds, send, idle)
        for _, of_kind, rounds, send in kinds
    ]
    plugin.close()
    rows = []
    for (name, of_kind, _, _), cpu in zip(kinds, costs, strict=True):
        changes = sum(len(day.sent.rounds) for day in of_kind) / len(of_kind)
        cells = [f"{changes:.0f}", *_lent(of_kind, days.every)]
        rows.append(
            [
                *(name, *cells, f"{1000 * cpu:.0f} ms", f"{100 * cpu / ROUND_SECONDS:.2f} %"),
                *(f"{every / cpu:.1f} x" for every in costs[-2:]),
            ]
        )
    table.show(
        f"A day of {fleet.nodes} nodes in simulated time, a round every {ROUND_SECONDS} s",
        [
            *("", "sizes a node", "lent CPU", "memory", "too much", "RM CPU a round", "of a core"),
            *("less than every change", "than by a call a node"),
        ],
        rows,
    )


def _lent(days: Sequence[NodeDay], every: Sequence[NodeDay]) -> list[str]:
    """Lent CPU and memory as a share of what sending every change lends, and what was promised beyond."""
    possible = {name: sum(day.lent[name] for day in every) for name in RESOURCE_NAMES}
    shares = [100 * sum(day.lent[name] for day in days) / possible[name] for name in RESOURCE_NAMES]
    beyond = max(100 * sum(day.promised[name] for day in days) / possible[name] for name in RESOURCE_NAMES)
    return [*(f"{share:.1f} %" for share in shares), f"{beyond:.2f} %"]


def _cpu_a_round(fleet: Fleet, plugin: YarnInstance, days: Days, rounds: int, send: Send, idle_share: float) -> float:
    """CPU of the ResourceManager above idle for one round, the mean over rounds at some hours of the day."""
    used = 0.0
    for hour in HOURS:
        first = hour * 3600 // ROUND_SECONDS
        sizes = dict(days.at(first - 1))
        sending.by_plugin(plugin, sizes)()
        fleet.wait_until_right(sending.total_of(sizes))
        sleep(HEARTBEAT_SECONDS)  # until every NodeManager was told

        def replay(first: int = first, sizes: dict[str, Size] = sizes) -> None:
            for number in range(first, first + rounds):
                changes = days.sent_in(number)
                if changes:
                    send(changes)
                    sizes |= changes
                    fleet.wait_until_right(sending.total_of(sizes))

        last = sending.total_of(days.at(first + rounds - 1))
        used += sending.cost(fleet, idle_share, replay, last).cpu
    return used / (rounds * len(HOURS))
