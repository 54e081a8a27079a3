import logging
from dataclasses import replace
from typing import Any

import pytest

import fallow_hookspecs
from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.effective_policy import PolicyNow
from fallow_core.ledger.node_ledger import NodeInputs, node_ledger
from fallow_core.ledger.rows import Row, RowKey, Sent
from fallow_core.ledger.take_back import Decision
from fallow_core.log import write
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import (
    AccountPolicy,
    NodePolicy,
    PublishingMode,
    PublishingPolicy,
    ResourcePolicy,
    SwitchState,
    TakeBack,
)
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_core.model.task import ObservedTask
from fallow_core.planner.node_state import NodeState
from fallow_core.planner.nodes import Computed
from fallow_core.planner.observations import NO_TASKS, ClusterObservation, NodeObservation, task_sums
from fallow_core.planner.state import ClusterState, PlannerState
from fallow_core.planner.take_back import adopt, decide
from fallow_hookspecs import Capabilities, ResourceCapability, Resources, Task, TaskRole, TaskState

ETL, OTHER = "yarn/etl", "yarn/other"
KEY = RowKey("n1", ETL, "n1:8041")
WHOLE_NODE = NodePolicy(cpu=ResourcePolicy(watermark_percent=100), memory=ResourcePolicy(watermark_percent=100))
PUBLISHING = PublishingPolicy(mode=PublishingMode.ENFORCE)
POLICY = TakeBackPolicy(mode=PublishingMode.ENFORCE, blast_percent=50)
UNCHARGED = ResourceCapability(honoured=True, takes_back=True, take_back_charged=False)
CAN = Capabilities(cpu=UNCHARGED, memory=UNCHARGED)


def row(allocated: int = 100, in_force: int = 100, key: RowKey = KEY, **more: Any) -> Row:
    return Row(
        key=key,
        state=fallow_hookspecs.NodeState.RUNNING,
        unit=Resources(1, 1),
        floor=Resources(1, 1),
        allocated=Resources(8, allocated),
        measured_at=0.0,
        in_force=Resources(8, in_force),
        **more,
    )


def task(name: str, memory: int, *, master: bool = False, cluster: str = ETL, node: str = "n1:8041") -> ObservedTask:
    found = Task(
        id=name,
        application_id="app",
        framework_node=node,
        state=TaskState.RUNNING,
        requested=Resources(1, memory),
        role=TaskRole.MASTER if master else TaskRole.WORKER,
    )
    return ObservedTask(cluster=cluster, node="n1", task=found, measured_at=0.0)


class Node:
    """A node with its take-backs. `batch` is the memory that can be lent; reports and samples are of now."""

    def __init__(self, policy: TakeBackPolicy = POLICY) -> None:
        self.state = PlannerState(policies=NodePolicies(), publishing=PUBLISHING, take_back=policy)
        self.capabilities: dict[str, Capabilities | None] = {ETL: CAN, OTHER: CAN}
        self.account = AccountPolicy()
        self.publishing = PUBLISHING
        self.tasks: tuple[ObservedTask, ...] = ()
        self.unsure = ""
        self.measured = True
        self.sample_age = self.report_age = 0.0
        self.found: NodeState | None = None

    def step(self, now: float, batch: int, *rows: Row, due: tuple[DueOffer, ...] = ()) -> list[DueOffer]:
        at = now - self.sample_age
        inputs = NodeInputs(
            node="n1",
            now=now,
            sample=NodeSample(
                cpu=Usage(measured_at=at, capacity=1000, used=0, batch_used=0),
                memory=Usage(measured_at=at, capacity=1000, used=1000 - batch, batch_used=0) if self.measured else None,
            ),
            rows=tuple(replace(r, measured_at=now - self.report_age) for r in rows or (row(),)),
            unsure=self.unsure,
            accounts=dict.fromkeys((ETL, OTHER), self.account),
            policy=WHOLE_NODE,
            publishing=self.publishing,
        )
        tasks = task_sums(self.tasks)
        policy = PolicyNow(policy=WHOLE_NODE)
        observed = NodeObservation(tasks=tasks)
        self.found = NodeState(name="n1", observed_since=0.0, observation=observed, policy=policy)
        self.found.ledger = node_ledger(inputs)
        self.state.publishing = self.publishing
        clusters = {
            name: ClusterObservation(policy=self.account, rows={}, changed=(), reported=True, capabilities=can)
            for name, can in self.capabilities.items()
        }
        for name in clusters:
            self.state.clusters[name] = ClusterState()
        for each in inputs.rows:
            sums = self.state.clusters[each.key.cluster].sums
            sums.put(each.key, each.allocated, tasks.get(each.key, NO_TASKS))
        computed = Computed(node=self.found, inputs=inputs, due=list(due))
        offers, events = decide(self.state, [computed], clusters, now)
        write(events)
        return offers["n1"]

    @property
    def budgets(self) -> dict[str, int]:
        assert self.found is not None
        return dict(self.found.budgets)

    def decision(self) -> Decision:
        assert self.found is not None
        return self.found.decisions[KEY, "memory"]

    def overdraft(self, *rows: Row, batch: int = 60) -> list[DueOffer]:
        """What is due at 160 s: all fitted at 0 s, the rows are in overdraft since 100 s."""
        self.step(0.0, 1000, *rows)
        self.step(100.0, batch, *rows)
        return self.step(160.0, batch, *rows)

    def notice_over(self, *rows: Row, batch: int = 60) -> list[DueOffer]:
        """What is due at 230 s: a size below what is allocated was in force since 170 s."""
        self.overdraft(*rows, batch=batch)
        below = rows or (row(in_force=60),)
        self.step(170.0, batch, *below)
        return self.step(230.0, batch, *below)

    @property
    def why(self) -> str:
        return self.decision().why

    @property
    def size(self) -> int | None:
        """What is taken back to."""
        active = self.decision().state.active
        return None if active is None else active.size


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().split()[0] for record in caplog.records if record.name == "fallow.take_back"]


@pytest.fixture(autouse=True)
def _log_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_an_overdraft_that_lasts_is_taken_back_after_its_notice_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = Node()
    assert node.overdraft() == []
    drains = row(in_force=50)
    assert [node.step(now, 60, drains) for now in (170.0, 229.0)] == [[], []]
    (due,) = node.step(230.0, 60, drains)
    assert (due.size, dict(due.take_back)) == (Resources(8, 50), {"memory": 60})
    for now in (231.0, 232.0):
        assert node.step(now, 60, row(in_force=50, in_flight=(Sent(size=due.size, sent_at=230.0),))) == []
    node.step(233.0, 60, row(60, 50, arrived_sent_at=230.0))
    assert told(caplog) == ["take_back_starts", "take_back_terminates", "take_back_ends"]


def test_an_end_of_a_notice_that_no_call_took_stays_due() -> None:
    node = Node()
    node.notice_over()
    (due,) = node.step(235.0, 60, row(in_force=60))
    assert dict(due.take_back) == {"memory": 60}


def test_one_that_is_cancelled_sends_nothing_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    node.overdraft()
    assert [node.step(now, 120, row(in_force=60)) for now in (170.0, 300.0)] == [[], []]
    assert told(caplog) == ["take_back_starts", "take_back_cancelled"]


def test_while_the_notice_counts_the_row_drains_with_the_sizes_that_are_due() -> None:
    node = Node()
    node.overdraft()
    drain = DueOffer(key=KEY, size=Resources(8, 40), urgent=True, why="it drains")
    assert node.step(170.0, 40, row(in_force=60), due=(drain,)) == [drain]


def test_observe_sends_what_is_due_without_it_and_tells_once_what_it_would_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = Node(replace(POLICY, mode=PublishingMode.OBSERVE))
    drain = DueOffer(key=KEY, size=Resources(8, 60), urgent=True, why="it shrinks")
    node.overdraft()
    for now in (161.0, 162.0):
        assert node.step(now, 60, due=(drain,)) == [drain]
    assert told(caplog) == ["take_back_would_start"]
    assert node.state.take_backs.parts[KEY, "memory"].active is None
    assert node.state.take_backs.started == {}
    node.step(170.0, 200)
    node.step(180.0, 60)
    node.step(250.0, 60)
    assert told(caplog) == ["take_back_would_start"] * 2, "another overdraft is told again"


def test_what_is_not_published_is_not_taken_back(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    node.publishing = PublishingPolicy(mode=PublishingMode.OBSERVE)
    assert node.overdraft() == []
    assert told(caplog) == ["take_back_would_start"]


def test_what_was_there_at_first_drains_until_it_is_adopted() -> None:
    node = Node()
    for now in (0.0, 100.0, 200.0):
        assert node.step(now, 60) == []
    assert "adopted" in node.why
    assert adopt(node.state, [KEY]) == [KEY]
    node.step(201.0, 60)
    assert node.size == 60


def test_what_was_there_at_first_drains_also_when_it_is_measured_later() -> None:
    node = Node()
    node.measured = False
    node.step(0.0, 60)
    node.measured = True
    for now in (1.0, 100.0):
        assert node.step(now, 60) == []
    assert "adopted" in node.why


def test_adopting_one_row_leaves_the_others_as_they_are() -> None:
    node, other = Node(), RowKey("n1", ETL, "n1:8042")
    rows = row(), row(key=other)
    node.step(0.0, 60, *rows)
    adopt(node.state, [KEY])
    node.step(100.0, 60, *rows)
    assert [key for (key, _), part in node.state.take_backs.parts.items() if part.active is not None] == [KEY]


@pytest.mark.parametrize(
    "memory",
    [
        pytest.param(replace(UNCHARGED, takes_back=False), id="it cannot"),
        pytest.param(replace(UNCHARGED, take_back_charged=True), id="it charges the application"),
    ],
)
def test_a_framework_that_cannot_take_back_uncharged_is_not_asked_to(memory: ResourceCapability) -> None:
    node = Node()
    node.capabilities[ETL] = replace(CAN, memory=memory)
    assert node.notice_over() == []


@pytest.mark.parametrize(
    "account",
    [
        pytest.param(AccountPolicy(take_back=TakeBack.NEVER), id="never"),
        pytest.param(AccountPolicy(switch=SwitchState.RESTORED), id="restored"),
    ],
)
def test_the_operator_can_forbid_it(account: AccountPolicy) -> None:
    node = Node()
    node.account = account
    assert node.notice_over() == []
    assert "forbids" in node.why


def test_a_framework_that_has_not_reported_is_not_asked_to() -> None:
    node = Node()
    node.capabilities[ETL] = None
    assert node.notice_over() == []


def test_a_switch_to_restored_cancels_it_and_lending_again_starts_with_a_whole_notice() -> None:
    node = Node()
    node.overdraft()
    node.step(170.0, 60, row(in_force=60))
    node.account = AccountPolicy(switch=SwitchState.RESTORED)
    assert node.step(200.0, 60, row(in_force=60)) == []
    assert node.size is None
    node.account = AccountPolicy()
    assert [node.step(now, 60, row(in_force=60)) for now in (201.0, 202.0, 261.0)] == [[], [], []]
    (due,) = node.step(262.0, 60, row(in_force=60))
    assert dict(due.take_back) == {"memory": 60}


@pytest.mark.parametrize("what", ["sample_age", "report_age", "unsure"])
def test_nothing_is_taken_back_on_old_or_unsure_news(what: str) -> None:
    node = Node()
    node.overdraft(row(allocated=50), batch=1000)
    setattr(node, what, "its tasks are not listed" if what == "unsure" else PUBLISHING.degrade_after_seconds)
    node.step(200.0, 60)
    assert node.step(300.0, 60) == []
    assert (node.size, "too old" in node.why) == (None, True)


def test_masters_of_this_row_are_kept() -> None:
    node = Node(replace(POLICY, blast_percent=100))
    node.tasks = (
        task("am1", 30, master=True),
        task("am2", 25, master=True),
        task("worker", 1),
        task("there", 90, master=True, node="n1:8042"),
        task("theirs", 90, master=True, cluster=OTHER),
    )
    node.overdraft(batch=0)
    assert node.size == 55


def test_the_largest_task_of_this_row_is_the_least_blast_radius() -> None:
    node = Node(replace(POLICY, blast_percent=1))
    node.tasks = (task("small", 10), task("large", 40), task("there", 90, node="n1:8042"))
    node.overdraft()
    assert node.size == 99, "one more that ends is of 40 at most"
    node = Node(replace(POLICY, blast_percent=1))
    node.overdraft()
    assert node.size == 99, "one percent"


def test_the_blast_radius_is_a_share_of_the_whole_cluster_and_of_no_other() -> None:
    node = Node(replace(POLICY, blast_percent=10))
    second, theirs = RowKey("n1", ETL, "n1:8042"), RowKey("n1", OTHER, "n1:8043")
    rows = row(), row(allocated=50, key=second), row(allocated=10, in_force=10, key=theirs)
    node.overdraft(*rows)
    starts = node.state.take_backs.started[ETL, "memory"]
    assert sum(begun.amount for begun in starts) == 15


# Who may pay by terminating tasks


def test_where_the_framework_takes_back_nobody_pays_until_it_did_not_in_its_time() -> None:
    node = Node()
    node.notice_over()
    assert node.budgets == {}
    overdue = 230.0 + POLICY.late_seconds
    told = row(in_force=60, arrived_sent_at=230.0)
    node.step(overdue - 1, 60, told)
    assert node.budgets == {}
    node.step(overdue, 60, told)
    assert node.budgets == {ETL: 40}


def test_where_the_framework_cannot_take_back_tasks_pay_within_the_blast_radius() -> None:
    node = Node()
    node.capabilities[ETL] = replace(CAN, memory=ResourceCapability(honoured=True))
    node.overdraft()
    assert node.budgets == {ETL: 50}


def test_in_observe_mode_tasks_pay_as_if_the_framework_could_not_take_back() -> None:
    node = Node(replace(POLICY, mode=PublishingMode.OBSERVE))
    node.overdraft()
    assert node.budgets == {ETL: 50}


def test_nobody_pays_for_what_was_there_at_first_or_fits() -> None:
    node = Node(replace(POLICY, mode=PublishingMode.OBSERVE))
    node.step(0.0, 60)
    assert node.budgets == {}
    node.step(100.0, 1000)
    assert node.budgets == {}


# Stopped by the operator


def stopped(node: Node) -> Node:
    """A node on which all fits, of which the operator wants nothing to run since 100 s."""
    node.step(0.0, 1000)
    node.account = AccountPolicy(switch=SwitchState.STOP)
    node.step(100.0, 1000)
    return node


def test_what_was_stopped_is_taken_back_after_it_had_time_to_drain_within_the_blast_radius() -> None:
    node = stopped(Node())
    sizes = []
    for now in (159.0, 160.0):
        node.step(now, 1000)
        sizes.append(node.size)
    assert sizes == [None, 50]
    node.step(170.0, 1000, row(in_force=1))
    (due,) = node.step(230.0, 1000, row(in_force=1))
    assert (due.size.memory_bytes, dict(due.take_back)) == (1, {"memory": 50})


def test_a_stop_that_is_over_before_its_notice_is_cancelled_at_once(caplog: pytest.LogCaptureFixture) -> None:
    node = stopped(Node())
    node.step(160.0, 1000)
    node.account = AccountPolicy()
    assert node.step(161.0, 1000, row(in_force=50)) == []
    assert told(caplog) == ["take_back_starts", "take_back_cancelled"]


def test_a_stop_takes_nothing_back_where_that_is_forbidden_only_observed_or_adopted() -> None:
    forbidden = stopped(Node())
    forbidden.account = replace(forbidden.account, take_back=TakeBack.NEVER)
    observed = stopped(Node(replace(POLICY, mode=PublishingMode.OBSERVE)))
    adopted = Node()
    adopted.account = AccountPolicy(switch=SwitchState.STOP)
    adopted.step(100.0, 1000)
    for node in (forbidden, observed, adopted):
        node.step(160.0, 1000)
        assert node.state.take_backs.parts[KEY, "memory"].active is None
    assert adopted.why.startswith("adopted: ")


def test_where_the_framework_cannot_take_back_tasks_of_what_was_stopped_may_be_ended() -> None:
    node = Node()
    node.capabilities[ETL] = None
    stopped(node)
    node.step(160.0, 1000)
    assert node.budgets == {ETL: 50}
