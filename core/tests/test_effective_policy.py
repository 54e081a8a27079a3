from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fallow_core.ledger.effective_policy import (
    CPU_WATERMARK_LABEL,
    MEMORY_WATERMARK_LABEL,
    lends_less,
    policy_now,
    share_percent,
)
from fallow_core.model.node_policies import Layer, NodeChange, NodePolicies, Pool, ResourceChange, Schedule, Window
from fallow_core.model.policy import NodePolicy, OnlineRule

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()
NIGHT = datetime(2026, 11, 30, 2, tzinfo=UTC).timestamp()


def change(percent: int) -> NodeChange:
    return NodeChange(cpu=ResourceChange(watermark_percent=percent))


def at_night(percent: int) -> Schedule:
    window = Window(days=frozenset(range(7)), from_minute=0, to_minute=360, change=change(percent))
    return Schedule(time_zone="UTC", windows=(window,))


def pool(name: str, labels: dict[str, str], percent: int, schedule: Schedule | None = None) -> Pool:
    return Pool(name=name, node_selector=labels, layer=Layer(change=change(percent), schedule=schedule))


def watermark(policies: NodePolicies, labels: dict[str, str], now: float = NOON, node: str = "n") -> int:
    return policy_now(policies, node, labels, now).policy.cpu.watermark_percent


def test_without_pools_and_schedules_every_node_has_the_policy_of_all() -> None:
    assert policy_now(NodePolicies(), "n", {"a": "b"}, NOON).policy == NodePolicy()


def test_a_pool_has_the_nodes_with_all_its_labels_and_the_first_one_counts() -> None:
    policies = NodePolicies(
        pools=(pool("both", {"disk": "ssd", "use": "batch"}, 70), pool("batch", {"use": "batch"}, 50))
    )
    assert watermark(policies, {"use": "batch", "disk": "ssd"}) == 70
    assert watermark(policies, {"use": "batch", "disk": "hdd"}) == 50
    assert watermark(policies, {"disk": "ssd"}) == 60
    assert policy_now(policies, "n", {"use": "batch"}, NOON).pool == "batch"
    both = policy_now(policies, "n", {"use": "batch", "disk": "ssd"}, NOON)
    assert (both.pool, both.pools) == ("both", ("both", "batch"))


def test_what_is_said_of_a_node_alone_counts_over_its_pool() -> None:
    policies = NodePolicies(pools=(pool("p", {}, 50),), nodes={"n": Layer(change=change(30))})
    assert (watermark(policies, {}), watermark(policies, {}, node="m")) == (30, 50)


def test_a_narrower_watermark_is_not_changed_by_a_wider_schedule() -> None:
    policies = NodePolicies(schedule=at_night(90), pools=(pool("careful", {"careful": "yes"}, 40),))
    assert (watermark(policies, {}, NIGHT), watermark(policies, {"careful": "yes"}, NIGHT)) == (90, 40)
    scheduled = replace(policies, pools=(pool("careful", {"careful": "yes"}, 40, at_night(45)),))
    assert [watermark(scheduled, {"careful": "yes"}, now) for now in (NOON, NIGHT)] == [40, 45]


def test_a_pool_that_says_nothing_of_the_watermark_follows_the_schedule_of_all() -> None:
    ratio = NodeChange(cpu=ResourceChange(overcommit_percent=120))
    policies = NodePolicies(schedule=at_night(90), pools=(Pool(name="p", node_selector={}, layer=Layer(change=ratio)),))
    found = policy_now(policies, "n", {}, NIGHT).policy.cpu
    assert (found.watermark_percent, found.overcommit_percent) == (90, 120)


@pytest.mark.parametrize(("text", "percent"), [("0.29", 29), ("0.57", 57), ("1", 100), ("0", 0), ("0.999", 99)])
def test_a_share_is_a_percentage_without_the_error_of_a_binary_fraction(text: str, percent: int) -> None:
    assert share_percent(text) == percent
    found = policy_now(NodePolicies(), "n", {CPU_WATERMARK_LABEL: text, MEMORY_WATERMARK_LABEL: text}, NOON)
    assert (found.policy.cpu.watermark_percent, found.policy.memory.watermark_percent) == (percent, percent)


@pytest.mark.parametrize(
    "text", ["-0.1", "1.1", "65", "65%", "nan", "inf", "1e-1", "", "0,5", "\u0660.\u0665", "0.5\n", "9" * 400]
)
def test_a_label_that_is_no_share_is_refused_and_named(text: str) -> None:
    found = policy_now(NodePolicies(), "n", {CPU_WATERMARK_LABEL: text, MEMORY_WATERMARK_LABEL: "0.5"}, NOON)
    assert (found.policy.cpu.watermark_percent, found.policy.memory.watermark_percent) == (60, 50)
    (problem,) = found.problems
    assert problem.startswith(f"label {CPU_WATERMARK_LABEL}: found ")
    assert len(problem) < 250


@pytest.mark.parametrize(
    "less",
    [
        ResourceChange(watermark_percent=59),
        ResourceChange(cap_percent=99),
        ResourceChange(overcommit_percent=99),
        ResourceChange(reserved=1),
        ResourceChange(reserved_percent=1),
        ResourceChange(reserved_per_daemon=1),
    ],
)
def test_a_policy_that_lends_less_is_told_from_one_that_lends_more(less: ResourceChange) -> None:
    before = NodePolicy()
    after = NodeChange(cpu=less).applied(before)
    assert (lends_less(before, after), lends_less(after, before), lends_less(before, before)) == (True, False, False)


def test_another_rule_may_lend_less() -> None:
    before = NodePolicy()
    assert lends_less(before, NodeChange(memory=ResourceChange(rule=OnlineRule.MAX)).applied(before))
