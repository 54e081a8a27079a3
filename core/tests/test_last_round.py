from dataclasses import replace

import pytest
from core.tests.qos_values import GIB, MEMORY_CAPACITY, NOW, node_view

from fallow_core.agent.last_round import LastRound
from fallow_core.model.policy import NodePolicy, ResourcePolicy
from fallow_core.model.sample import NodeSample, Usage

POLICY = NodePolicy(cpu=ResourcePolicy(watermark_percent=100), memory=ResourcePolicy(watermark_percent=100))


def memory(used: int, at: float = NOW + 1) -> NodeSample:
    return NodeSample(memory=Usage(measured_at=at, capacity=MEMORY_CAPACITY, used=used, batch_used=0))


def last(reserved: int = 0) -> LastRound:
    ledger = node_view(memory_used=0, memory_batch=MEMORY_CAPACITY, rows={"alpha/a": (5 * GIB, 0)}).ledger
    assert ledger.memory.capacity is not None
    capacity = replace(ledger.memory.capacity, reserved=reserved)
    return LastRound(ledger=replace(ledger, memory=replace(ledger.memory, capacity=capacity)))


def test_capacity_is_that_of_the_newest_sample_and_all_else_that_of_the_round() -> None:
    found = last().ledger_at(memory(3 * GIB), POLICY, NOW + 1)
    assert found.memory.capacity is not None
    assert found.memory.capacity.used == 3 * GIB
    assert found.memory.capacity.batch == MEMORY_CAPACITY - 3 * GIB
    assert (found.memory.accounts, found.memory.overdraft) == (
        last().ledger.memory.accounts,
        last().ledger.memory.overdraft,
    )
    assert found.cpu == last().ledger.cpu  # nothing new was measured


def test_what_the_round_reserved_for_daemons_stays_reserved() -> None:
    found = last(reserved=2 * GIB).ledger_at(memory(GIB), POLICY, NOW + 1)
    assert found.memory.capacity is not None
    assert found.memory.capacity.batch == MEMORY_CAPACITY - 2 * GIB


@pytest.mark.parametrize("sample", [NodeSample(), memory(-1), memory(GIB, at=NOW + 100)])
def test_a_sample_that_is_missing_or_cannot_be_true_changes_nothing(sample: NodeSample) -> None:
    assert last().ledger_at(sample, POLICY, NOW + 1) == last().ledger
