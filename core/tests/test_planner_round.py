"""Rounds over several nodes and clusters: what every rule that speaks of a cluster has to hold for."""

from dataclasses import dataclass, field, replace

import pytest

from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.node_policies import Layer, NodeChange, NodePolicies, ResourceChange
from fallow_core.model.policy import (
    AccountPolicy,
    ExitMode,
    KeepLargest,
    NodePolicy,
    PublishingMode,
    PublishingPolicy,
    ResourcePolicy,
)
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_core.planner.observations import ClusterObservation, NodeObservation, Observations, TaskSums
from fallow_core.planner.round import Round, plan_round
from fallow_core.planner.state import PlannerState, forget_node, leave_behind
from fallow_hookspecs import RESOURCE_NAMES, Capabilities, NodeState, Pending, ResourceCapability, Resources

ETL, ADHOC = "yarn/etl", "yarn/adhoc"
UNCHARGED = ResourceCapability(honoured=True, takes_back=True, take_back_charged=False)
CHARGED = ResourceCapability(honoured=True)
WHOLE = ResourcePolicy(watermark_percent=100)
MIB = 1 << 20


def row(node: str, *, allocated: int, in_force: int, cluster: str = ETL, floor: int = 1) -> Row:
    return Row(
        key=RowKey(node, cluster, f"{node}:8041"),
        state=NodeState.RUNNING,
        unit=Resources(1, MIB),
        floor=Resources(1, floor * MIB),
        allocated=Resources(8, allocated * MIB),
        measured_at=0.0,
        in_force=Resources(8, in_force * MIB),
    )


@dataclass
class Fleet:
    """Some nodes of 1,000 MiB with their rows, and a planner for all of them. Reports and samples are of now."""

    rows: dict[RowKey, Row]
    now: float = 0.0
    memory_used: dict[str, int] = field(default_factory=dict)
    tasks: dict[str, TaskSums] = field(default_factory=dict)
    can: Capabilities = field(default_factory=lambda: Capabilities(cpu=UNCHARGED, memory=UNCHARGED))
    pending: Pending | None = None
    policy: AccountPolicy = field(default_factory=AccountPolicy)
    state: PlannerState = field(init=False)

    def __post_init__(self) -> None:
        self.state = PlannerState(
            policies=NodePolicies(default=NodePolicy(cpu=WHOLE, memory=WHOLE)),
            publishing=PublishingPolicy(mode=PublishingMode.ENFORCE),
            take_back=TakeBackPolicy(mode=PublishingMode.ENFORCE, blast_percent=10),
            names=frozenset({ETL, ADHOC}),
        )
        self.changed = set(self.rows)

    @property
    def nodes(self) -> list[str]:
        return sorted({key.node for key in self.rows})

    def put(self, *rows: Row) -> None:
        for each in rows:
            self.rows[each.key] = each
            self.changed.add(each.key)

    def round(self, at: float, *nodes: str, batch: int | None = None) -> Round:
        """A round in which these nodes have news, by default all; `batch`: the memory that each can lend now."""
        self.now = at
        names = nodes or tuple(self.nodes)
        for name in names:
            if batch is not None:
                self.memory_used[name] = 1000 - batch
        rows = {key: replace(each, measured_at=at) for key, each in self.rows.items()}
        changed, self.changed = self.changed, set()
        clusters = {
            name: ClusterObservation(
                policy=self.policy,
                rows={key: each for key, each in rows.items() if key.cluster == name},
                changed=[key for key in changed if key.cluster == name],
                reported=True,
                capabilities=self.can,
                pending=self.pending,
            )
            for name in (ETL, ADHOC)
        }
        news = {name: self._observed(name, at) for name in names}
        found = plan_round(self.state, Observations(now=at, wall_now=at, nodes=news, clusters=clusters))
        self.state.memory.apply(found.remember)
        self.state.unwritten.clear()
        return found

    def _observed(self, node: str, at: float) -> NodeObservation:
        tasks = {key: self.tasks[node] for key in self.rows if key.node == node and node in self.tasks}
        return NodeObservation(
            sample=NodeSample(
                cpu=Usage(measured_at=at, capacity=1000, used=0, batch_used=0),
                memory=Usage(
                    measured_at=at, capacity=1000 * MIB, used=self.memory_used.get(node, 0) * MIB, batch_used=0
                ),
            ),
            tasks=tasks,
        )

    def notice_over(self, at: float = 230.0, batch: int = 60) -> Round:
        """The round at the end of the notices: sizes below what is allocated are in force since 170 s."""
        self.round(160.0, batch=batch)
        for row in list(self.rows.values()):
            self.put(replace(row, in_force=replace(row.allocated, memory_bytes=50 * MIB)))
        self.round(170.0, batch=batch)
        return self.round(at, batch=batch)

    def decided(self, node: str) -> list[str]:
        return [decision.why for decision in self.state.nodes[node].decisions.values()]


def over(count: int, *, batch: int = 60, allocated: int = 100) -> Fleet:
    """Nodes that all fitted at 0 s, and are in overdraft since 100 s."""
    fleet = Fleet({each.key: each for i in range(count) for each in [row(f"n{i}", allocated=allocated, in_force=100)]})
    fleet.round(0.0)
    fleet.round(100.0, batch=batch)
    return fleet


def test_the_decisions_of_all_nodes_are_kept_and_not_those_of_the_last_one_alone() -> None:
    fleet = over(3)
    fleet.round(160.0)
    assert [bool(fleet.state.nodes[name].decisions) for name in fleet.nodes] == [True] * 3
    fleet.round(161.0, "n1")
    assert [bool(fleet.decided(name)) for name in fleet.nodes] == [True] * 3


def test_the_blast_radius_is_a_share_of_what_the_cluster_has_on_all_nodes() -> None:
    alone, two = over(1), over(2)
    for fleet in (alone, two):
        fleet.round(160.0)
    begun = [sum(each.amount // MIB for each in f.state.take_backs.started[ETL, "memory"]) for f in (alone, two)]
    assert begun == [10, 20]


def test_all_nodes_together_stay_within_one_blast_radius() -> None:
    fleet = over(10)
    found = fleet.notice_over()
    taken = [100 - due.take_back["memory"] // MIB for due in found.send[ETL] if due.take_back]
    assert sum(taken) == 100
    assert sum(each.amount for each in fleet.state.take_backs.started[ETL, "memory"]) == 100 * MIB


def test_no_node_is_told_to_terminate_tasks_whose_reason_has_gone() -> None:
    fleet = over(2)
    fleet.state.take_back = replace(fleet.state.take_back, blast_percent=100)
    fleet.notice_over(at=229.0)
    assert not any(due.take_back for due in fleet.round(230.0, batch=1000).send.get(ETL, ()))


def test_nodes_under_pressure_are_taken_back_from_first() -> None:
    fleet = over(3, allocated=100)
    fleet.memory_used["n1"] = 1001  # more than its watermark allows
    fleet.state.take_back = replace(fleet.state.take_back, blast_percent=5)
    fleet.round(160.0)
    assert [key.node for (key, _), part in fleet.state.take_backs.parts.items() if part.active is not None] == ["n1"]


def test_what_may_be_terminated_for_overdraft_is_shared_by_all_nodes() -> None:
    fleet = over(4)
    fleet.can = Capabilities(cpu=CHARGED, memory=CHARGED)
    fleet.round(160.0)
    budgets = [fleet.state.nodes[name].budgets.get(ETL, 0) // MIB for name in fleet.nodes]
    assert budgets == [40, 0, 0, 0]


def test_a_round_computes_the_nodes_with_news_and_no_others() -> None:
    fleet = Fleet({each.key: each for i in range(5) for each in [row(f"n{i}", allocated=50, in_force=1000)]})
    fleet.round(0.0)
    before = {name: node.ledger for name, node in fleet.state.nodes.items()}
    fleet.round(1.0, "n3")
    assert [name for name, node in fleet.state.nodes.items() if node.ledger is not before[name]] == ["n3"]


def test_a_node_whose_sample_grows_too_old_is_computed_again_when_it_does() -> None:
    fleet = Fleet({each.key: each for i in range(2) for each in [row(f"n{i}", allocated=50, in_force=1000)]})
    found = fleet.round(0.0)
    limit = fleet.state.publishing.degrade_after_seconds
    assert found.look_again_at <= limit
    fleet.round(limit, "n1")
    stale = fleet.state.nodes["n0"].ledger
    assert stale is not None
    assert any("sample is 60 s old" in reason for reason in stale.memory.rows[0].reasons)


def test_one_of_all_nodes_keeps_the_size_of_the_largest_task() -> None:
    fleet = Fleet({each.key: each for i in range(3) for each in [row(f"n{i}", allocated=10, in_force=900)]})
    fleet.policy = AccountPolicy(keep_largest=KeepLargest.KEEP)
    fleet.pending = Pending(total=Resources(8, 800 * MIB), largest=Resources(8, 800 * MIB), smallest=Resources(1, MIB))
    fleet.round(0.0)
    sizes = {due.key.node: due.size.memory_bytes // MIB for due in fleet.round(100.0, batch=200).send[ETL]}
    assert max(sizes.values()) == 800
    assert len([size for size in sizes.values() if size < 800]) == 2
    assert fleet.state.clusters[ETL].warning


def test_a_node_that_goes_takes_its_offers_and_take_backs_with_it_and_comes_back_as_a_new_one() -> None:
    fleet = over(2)
    fleet.round(160.0)
    gone = next(key for key in fleet.rows if key.node == "n1")
    forget_node(fleet.state, "n1")
    kept = fleet.rows.pop(gone)
    fleet.changed.add(gone)
    fleet.round(161.0)
    assert fleet.state.nodes.keys() == {"n0"}
    assert not any(key.node == "n1" for key in fleet.state.due)
    assert fleet.state.clusters[ETL].sums.allocated.memory_bytes == 100 * MIB
    fleet.put(kept)
    fleet.round(300.0)
    assert any("adopted" in why for why in fleet.decided("n1"))


def test_a_policy_of_one_node_changes_no_other() -> None:
    fleet = Fleet({each.key: each for i in range(2) for each in [row(f"n{i}", allocated=50, in_force=100)]})
    half = Layer(change=NodeChange(memory=ResourceChange(watermark_percent=50)))
    fleet.state.policies = replace(fleet.state.policies, nodes={"n1": half})
    fleet.round(0.0)
    ledgers = [fleet.state.nodes[name].ledger for name in fleet.nodes]
    assert [each.memory.capacity.batch // MIB for each in ledgers if each and each.memory.capacity] == [1000, 500]


@pytest.mark.parametrize("backwards", [False, True])
def test_the_order_of_nodes_and_clusters_does_not_matter(backwards: bool) -> None:
    rows = [row(f"n{i}", allocated=100, in_force=100, cluster=name) for i in range(3) for name in (ETL, ADHOC)]
    fleet = Fleet({each.key: each for each in (reversed(rows) if backwards else rows)})
    fleet.round(0.0)
    fleet.round(100.0, batch=120)
    found = fleet.round(160.0)
    expected = Fleet({each.key: each for each in rows})
    expected.round(0.0)
    expected.round(100.0, batch=120)
    assert found.send == expected.round(160.0).send


def test_while_the_memory_is_unknown_sizes_shrink_and_never_grow() -> None:
    rows = [row("n0", allocated=10, in_force=900), row("n1", allocated=0, in_force=5, floor=10)]
    fleet = Fleet({each.key: each for each in rows})
    fleet.state.memory_unknown = "the disk broke"
    sent: list[Resources] = []
    for now in range(0, 2000, 50):
        found = fleet.round(float(now), batch=500 if now < 1000 else 1000)
        for due in found.send.get(ETL, ()):
            before = fleet.rows[due.key].in_force
            assert before is not None
            assert all(due.size.amount(name) <= before.amount(name) for name in RESOURCE_NAMES)
            fleet.put(replace(fleet.rows[due.key], in_force=due.size))
            sent.append(due.size)
    assert sent, "the node with too much shrinks"
    ledger = fleet.state.nodes["n1"].ledger
    assert ledger is not None
    assert "the disk broke: no growth" in ledger.memory.rows[0].reasons
    assert ledger.memory.rows[0].size == 5 * MIB < ledger.memory.rows[0].floor
    fleet.state.memory_unknown = ""
    fleet.state.look_at_all()
    grown = [due.key.node for now in range(2000, 3000, 50) for due in fleet.round(float(now)).send.get(ETL, ())]
    assert set(grown) == {"n0", "n1"}


def test_a_size_found_while_the_memory_is_unknown_is_not_sent_as_the_one_found_first() -> None:
    fleet = Fleet({each.key: each for each in [row("n0", allocated=10, in_force=900)]})
    fleet.state.memory_unknown = "the disk broke"
    fleet.round(0.0)
    found = fleet.round(100.0, batch=500)
    (original,) = found.remember.originals.values()
    assert original is not None
    assert original.size.memory_bytes == 900 * MIB
    assert fleet.state.originals == {}
    leave_behind(fleet.state, [ETL], ExitMode.ORIGINAL, 100.0)
    assert fleet.round(110.0).send.get(ETL, ()) == ()
    fleet.state.memory_unknown = ""
    assert list(fleet.state.originals.values()) == [original]


def test_shrinks_go_at_once_although_they_cannot_be_written_down_and_growth_does_not() -> None:
    fleet = Fleet({each.key: each for i in range(2) for each in [row(f"n{i}", allocated=10, in_force=100)]})
    fleet.round(0.0)
    first = fleet.round(100.0, batch=50)
    assert first.send_unrecorded[ETL] == (), "the size found first is not known yet"
    for due in first.send[ETL]:
        fleet.put(replace(fleet.rows[due.key], in_force=due.size))
    second = fleet.round(110.0, batch=20)
    assert second.send_unrecorded[ETL] == second.send[ETL] != ()
