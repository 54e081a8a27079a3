"""One history: nodes that each have a world of their own, and one Fallow, which is the planner, for all of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from core.tests.history_counts import Counts
from core.tests.history_frameworks import FAR
from core.tests.history_happenings import Layout, Step
from core.tests.history_world import TICK_SECONDS, WHOLE_NODE, World

from fallow_core.ledger.rows import RowKey
from fallow_core.ledger.take_back import Change
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import PublishingMode, PublishingPolicy
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_core.planner.memory import Memory
from fallow_core.planner.observations import ClusterObservation, NodeObservation, Observations, TaskSums
from fallow_core.planner.round import plan_round
from fallow_core.planner.state import PlannerState, forget_node
from fallow_core.planner.switches import Switch
from fallow_hookspecs import Capabilities, ResourceCapability, Resources

TAKING_BACK = TakeBackPolicy(
    mode=PublishingMode.ENFORCE, after_seconds={"memory": 4.0}, notice_seconds=10, blast_seconds=FAR
)
ONLY_DRAINING = TakeBackPolicy(mode=PublishingMode.OBSERVE, after_seconds={})
LARGEST_TASK = 600_000
MASTERS = 200_000
UNCHARGED = ResourceCapability(honoured=True, takes_back=True, take_back_charged=False)


class History:
    """Worlds, driven as the controller of their nodes does. A node is there from its first step until its last one.

    `dense`: every node is computed in every round, whether anything is new there or not.
    """

    def __init__(
        self,
        layouts: Sequence[Layout],
        policy: PublishingPolicy,
        taking_back: TakeBackPolicy = ONLY_DRAINING,
        *,
        dense: bool = False,
    ) -> None:
        self.worlds = [World(layout, policy, node=f"node{number}") for number, layout in enumerate(layouts)]
        self.sent: list[tuple[float, RowKey, Resources]] = []
        self._taking_back, self._dense = taking_back, dense
        self._memory = Memory()
        self._fresh: set[str] = set()
        self._starts = 0
        self._fitted: set[RowKey] = set()
        self._most_allocated: dict[str, int] = {}
        for world in self.worlds:
            world.memory = self._memory
        self._start()

    @property
    def world(self) -> World:
        """The first one."""
        return self.worlds[0]

    def live(self, steps: Sequence[Iterable[Step]]) -> None:
        """The steps of each world, each with its time. A world without any more is a node that has gone."""
        left: list[Iterator[Step]] = [iter(each) for each in steps]
        next_at = [0] * len(left)
        present = set(range(len(left)))
        now = 0
        while present:
            for number in sorted(present):
                while next_at[number] <= now:
                    step = next(left[number], None)
                    if step is None:
                        present.discard(number)
                        if present:
                            self._leave(self.worlds[number])
                        break
                    self._begin(self.worlds[number], step)
                    next_at[number] += step.seconds
            if present:
                self._second([self.worlds[number] for number in sorted(present)])
            now += 1

    def pass_time(self, seconds: int) -> None:
        """Seconds in which nothing else happens to the first world."""
        for _ in range(seconds):
            self._second([self.world])

    def calm_down(self, used_percent: int, greedy: Mapping[str, bool]) -> None:
        """From now on nothing fails and nothing changes in the first world; see `World.calm_down`."""
        self.world.calm_down(used_percent, greedy)
        self._memory.switches.clear()
        self.state.look_at_all()

    def counted(self, what: str) -> Counts:
        """What was counted in this history."""
        counts = self.world.counted(what)
        for other in self.worlds[1:]:
            counts.merge(other.counted("nodes beside another one"))
        return counts

    def _start(self) -> None:
        world = self.world
        self.state = PlannerState(
            policies=NodePolicies(default=WHOLE_NODE),
            publishing=replace(world.policy, mode=PublishingMode.ENFORCE),
            take_back=self._taking_back,
            names=frozenset(cluster for each in self.worlds for cluster in each.clusters),
            memory=self._memory,
            awaited=set(self._memory.known),
        )
        self._fitted = set()
        self._fresh = {world.node for world in self.worlds}  # a node is known before it is measured
        self._starts += 1

    def _begin(self, world: World, step: Step) -> None:
        world.begin(step)
        if step.what == "kill":
            for other in self.worlds:
                if other is not world:
                    other.kill()
            self._start()
        elif step.what == "switch":
            cluster = world.keys[step.which % len(world.keys)].cluster
            self._memory.switches[cluster] = Switch(state=world.switches[cluster])
            for other in self.worlds:
                if cluster in other.switches:
                    other.switches[cluster] = world.switches[cluster]
            self.state.look_at_all()

    def _leave(self, world: World) -> None:
        for key in list(world.rows):
            del world.rows[key]
            world.changed.add(key)
        forget_node(self.state, world.node)

    def _second(self, worlds: Sequence[World]) -> None:
        for world in worlds:
            if world.second():
                self._fresh.add(world.node)
        if worlds[0].now % TICK_SECONDS == 0:
            self._tick(worlds)
        if self._taking_back is not ONLY_DRAINING:
            self._check_terminations()

    def _tick(self, worlds: Sequence[World]) -> None:
        for world in worlds:
            world.expire()
        now = worlds[0].now
        nodes = {w.node: self._observed(w) for w in worlds if self._dense or w.node in self._fresh}
        self._fresh -= nodes.keys()
        names = sorted({name for world in self.worlds for name in world.clusters})
        clusters = {name: self._cluster(name) for name in names}
        found = plan_round(self.state, Observations(now=now, wall_now=now, nodes=nodes, clusters=clusters))
        self._memory.apply(found.remember)
        self.state.unwritten.clear()
        self._check_decisions()
        for due in found.send.values():
            for world in self.worlds:
                own = [d for d in due if d.key.node == world.node]
                if own:
                    self.sent += [(now, d.key, d.size) for d in own]
                    world.send(own)

    def _observed(self, world: World) -> NodeObservation:
        return NodeObservation(sample=world.sample, tasks={key: self._tasks(size) for key, size in world.seen.items()})

    def _tasks(self, seen: Resources) -> TaskSums:
        if self._taking_back is ONLY_DRAINING:
            return TaskSums(requested=seen)
        masters = Resources(0, min(MASTERS, seen.memory_bytes))
        return TaskSums(requested=seen, masters=masters, largest=Resources(0, LARGEST_TASK))

    def _cluster(self, name: str) -> ClusterObservation:
        """All nodes of a cluster get their offers in one call, which only starts when none is under way."""
        worlds = [world for world in self.worlds if name in world.clusters]
        rows = {key: row for world in worlds for key, row in world.rows.items() if key.cluster == name}
        changed = {key for world in worlds for key in world.changed if key.cluster == name}
        for world in worlds:
            world.changed -= changed
        networks = [world.networks[name] for world in worlds]
        resting = all(network.call is None for network in networks)
        return ClusterObservation(
            policy=worlds[0].policies()[name],
            rows=rows,
            changed=changed,
            reported=bool(rows),
            may_publish=resting,
            publishing=not resting,
            published_at=max(network.published_at for network in networks),
            pending=worlds[0].pending(name),
            capabilities=Capabilities(cpu=UNCHARGED, memory=UNCHARGED, offer_lasts_seconds=worlds[0].offers_last),
        )

    # Taking back

    def _check_decisions(self) -> None:
        """Nothing that was adopted is taken back."""
        shown = {key: row for world in self.worlds for key, row in world.shown().items()}
        allocated: dict[str, int] = {}
        for key, row in shown.items():
            allocated[key.cluster] = allocated.get(key.cluster, 0) + row.allocated.memory_bytes
        for cluster, amount in allocated.items():
            self._most_allocated[cluster] = max(self._most_allocated.get(cluster, 0), amount)
        for node in self.state.nodes.values():
            for (key, _), decision in node.decisions.items():
                assert decision.change is not Change.STARTS or key in self._fitted, f"{key} was adopted"
                if decision.state.fitted:
                    self._fitted.add(key)

    def _check_terminations(self) -> None:
        """What Fallow had ended stays within the blast radius, which each of its lives has anew, and spares masters."""
        for cluster, most_allocated in self._most_allocated.items():
            schedulers = [s for world in self.worlds for k, s in world.schedulers.items() if k.cluster == cluster]
            ended = [each for scheduler in schedulers for each in scheduler.ended]
            own = [amount for amount, by_others, _ in ended if not by_others]
            most = max(most_allocated * self._taking_back.blast_percent // 100, LARGEST_TASK)
            assert sum(own) <= most * self._starts, f"{cluster}: {own} taken back, {most} would be within the radius"
            assert all(left >= MASTERS for amount, by_others, left in ended if amount and not by_others)
