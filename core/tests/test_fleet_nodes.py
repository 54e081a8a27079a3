"""Nodes that come, go, change their shape, and what is known of a whole cluster."""

from dataclasses import replace

import pytest
from core.tests.fleet_values import CLUSTERS, Compared, Inputs

from fallow_core.ledger.entries import NodeInputs
from fallow_core.ledger.fleet.terms import Work
from fallow_core.ledger.task_shapes import TaskShape
from fallow_core.model.policy import PublishingPolicy
from fallow_core.model.sample import NodeSample, Usage
from fallow_hookspecs import Pending, Resources

pytestmark = pytest.mark.timeout(300)  # it is compiled by whichever test comes first
POLICY = PublishingPolicy(growth_delay_seconds=10.0)


def a_node(inputs: Inputs, name: str, now: float = 100.0) -> NodeInputs:
    """A node that lies in columns and has rows."""
    pending = dict.fromkeys(CLUSTERS)
    while True:
        node = replace(inputs.node(name, now, pending), publishing=POLICY)
        if 1 < len(node.rows) < 5 and len({row.key.cluster for row in node.rows}) == len(node.rows):
            return node


def test_a_node_that_is_removed_is_computed_no_more_and_its_place_is_used_again() -> None:
    inputs, compared = Inputs(1, large=True), Compared()
    for name in ("1", "2", "3"):
        compared.write(a_node(inputs, name))
    place = compared.fleet.place("2")
    compared.fleet.remove("2")
    del compared.inputs["2"]
    compared.holds = {key: hold for key, hold in compared.holds.items() if key[0].node != "2"}
    assert compared.check_all(POLICY, 101.0)
    compared.write(a_node(inputs, "4"))
    assert compared.fleet.place("4") == place
    assert compared.check_all(POLICY, 102.0)


def test_what_is_known_of_the_work_of_a_cluster_counts_on_all_nodes() -> None:
    inputs, compared = Inputs(2, large=True), Compared()
    for i in range(40):
        compared.write(a_node(inputs, str(i)))
    before = [compared.computed(name, POLICY, 100.0)["size"].tolist() for name in compared.inputs]
    pending = Pending(total=Resources(0, 0))
    shape = TaskShape(mib_per_core=1024, honours_cpu=False)
    compared.fleet.work("a", Work(pending, shape))
    for name, node in compared.inputs.items():
        compared.inputs[name] = replace(
            node, pending={**node.pending, "a": pending}, shapes={**node.shapes, "a": shape}
        )
    assert compared.check_all(POLICY, 100.0)
    assert before != [compared.computed(name, POLICY, 100.0)["size"].tolist() for name in compared.inputs]


@pytest.mark.parametrize("cores", [1 << 18, 1 << 20])
def test_a_node_too_large_for_columns_is_computed_by_itself_and_may_come_back(cores: int) -> None:
    inputs, compared = Inputs(3, large=True), Compared()
    node = a_node(inputs, "1")
    huge = Usage(measured_at=100.0, capacity=cores * 1024, used=0, batch_used=0)
    for now, sample in enumerate([node.sample, NodeSample(cpu=huge, memory=node.sample.memory), node.sample], 100):
        compared.write(replace(node, now=float(now), sample=sample))
        assert compared.fleet.is_in_columns("1") == (sample is node.sample)
        compared.check_all(POLICY, float(now))
    compared.check_all(POLICY, 112.0)


def test_remembered_growth_goes_with_its_row_when_others_come_and_go() -> None:
    inputs, compared = Inputs(4, large=True), Compared()
    for i in range(20):
        compared.write(a_node(inputs, str(i)))
    compared.check_all(POLICY, 100.0)
    for now in (105.0, 108.0, 111.0, 114.0):
        for node in list(compared.inputs.values()):
            rows = node.rows[1:] if now == 105.0 else node.rows
            compared.write(replace(node, now=now, rows=tuple(replace(row, measured_at=now) for row in rows)))
        compared.check_all(POLICY, now)
