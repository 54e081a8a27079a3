"""Many histories at once, each with a node of its own, computed by the ledger of all nodes: that is what lets thousands
of them be tried in seconds. Every history is one that `History` lives through alike, with the same steps.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from random import Random

from core.tests.history_frameworks import NOTHING
from core.tests.history_happenings import FLOOR, Layout, Step
from core.tests.history_world import TICK_SECONDS, World

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.fleet.fleet import Fleet
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import PublishingPolicy

ONE_ROW_EACH = ((("a", 1), ("b", 1)), (("a", 1), ("b", 1), ("c", 1)))
TWO_ROWS = (("a", 1), ("b", 2))
"""Nodes of this kind are computed one by one, so only one of twenty is of it."""
HAPPENS = (
    *("promise",) * 6,
    *("end",) * 3,
    *("load",) * 5,
    *("calls",) * 8,
    *("reports",) * 3,
    *("register",) * 2,
    *("kill",) * 2,
    *("nothing", "samples", "clock", "ages", "repeats", "restart", "lose", "resize", "switch"),
)
FULL = (*("promise",) * 10, *("load",) * 8, *("calls",) * 4, *HAPPENS)
LASTS_SECONDS = 60


def drawn(seed: int, *, full: bool = False) -> tuple[Layout, list[Step]]:
    """What happens in the history of that number; in a full one what was promised is often above batch capacity."""
    rng = Random(seed)
    layout = Layout(
        rows=ONE_ROW_EACH[seed % 2] if seed % 20 else TWO_ROWS,
        floor=rng.choice((FLOOR, NOTHING)),
        says_pending=rng.random() < 0.5,
        limit_percent=rng.choice((None, 60)),
    )
    steps = [
        Step(rng.choice(FULL if full else HAPPENS), rng.randrange(4), rng.randrange(101), rng.randrange(16))
        for _ in range(rng.randrange(4, 17) * (2 if full else 1))
    ]
    return layout, steps


class Histories(Mapping[RowKey, Row]):
    """Worlds that share a clock; as a mapping, the rows of all."""

    def __init__(self, seeds: range, policy: PublishingPolicy) -> None:
        self.worlds: dict[str, World] = {}
        self._policy, self._fleet, self._now = policy, Fleet(slots=4, block_nodes=len(seeds)), 0
        self._steps: dict[str, Iterator[Step]] = {}
        self._next_step: dict[str, int] = {}
        self._looks_at = ""
        for seed in seeds:
            layout, steps = drawn(seed)
            world = World(layout, policy, node=f"history {seed}")
            world.offers_last = LASTS_SECONDS
            self.worlds[world.node], self._steps[world.node], self._next_step[world.node] = world, iter(steps), 0

    def live(self) -> None:
        """All of them to their end; an error says in which one it was, and how it came to that."""
        try:
            self._live()
        except AssertionError as error:
            layout, steps = drawn(int(self._looks_at.rpartition(" ")[2]))
            lines = [f"{self._looks_at}, at {self._now} s: {layout}", *(str(step) for step in steps)]
            error.add_note("\n".join(lines))
            raise

    def _live(self) -> None:
        changed = set(self._next_step)
        while self._next_step:
            for node in [node for node, at in self._next_step.items() if at <= self._now]:
                changed |= self._begin(node)
            for node in self._next_step:
                self._looks_at = node
                if self.worlds[node].second():
                    changed.add(node)
            self._now += 1
            if self._now % TICK_SECONDS == 0:
                changed = self._tick(changed)

    def _begin(self, node: str) -> set[str]:
        """Steps until one takes time; a history without any more is over."""
        self._looks_at = node
        while self._next_step[node] <= self._now:
            step = next(self._steps[node], None)
            if step is None:
                del self._next_step[node]
                self._fleet.remove(node)
                return set()
            self.worlds[node].begin(step)
            self._next_step[node] += step.seconds
        return {node}

    def _tick(self, changed: set[str]) -> set[str]:
        """Fallow publishes; the worlds of which it then knows something else."""
        now = float(self._now)
        for node in self._next_step:
            world = self.worlds[node]
            if world.killed:
                self._fleet.remove(node)
                world.killed = False
            if world.expire() or node in changed:
                self._fleet.write(world.inputs())
        clusters = {cluster for node in self._next_step for cluster in self.worlds[node].clusters}
        lasts: dict[str, int | None] = dict.fromkeys(clusters, LASTS_SECONDS)
        due: defaultdict[str, list[DueOffer]] = defaultdict(list)
        found = self._fleet.due(self._policy, self._policy, now, lasts)
        for d in self._fleet.worded(found, self, self._policy, now, lasts):
            due[d.key.node].append(d)
        return {node for node, own in due.items() if self._publish(node, own)}

    def _publish(self, node: str, due: list[DueOffer]) -> bool:
        self._looks_at = node
        return self.worlds[node].publish(due)

    def __getitem__(self, key: RowKey) -> Row:
        return self.worlds[key.node].rows[key]

    def __iter__(self) -> Iterator[RowKey]:
        return (key for world in self.worlds.values() for key in world.rows)

    def __len__(self) -> int:
        return sum(len(world.rows) for world in self.worlds.values())
