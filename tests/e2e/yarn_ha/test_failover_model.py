"""The model of a history of failovers refuses wrong histories, and takes right ones."""

from dataclasses import replace

import pytest
from tests.e2e.yarn_ha.history import (
    Disturbed,
    Ended,
    Fact,
    GroupTarget,
    History,
    InForce,
    Offered,
    Ordered,
    Sent,
    TakenBack,
)
from tests.e2e.yarn_ha.model import Rules, complaints

RULES = Rules(interval_seconds=2)
BIG, SMALL = (2048, 4), (128, 1)
PREEMPTED = Ended(at=200.0, container="c1", node="n1", exit_code=-102, diagnostics="preempted")
TAKEN_BACK = TakenBack(at=190.0, node="n1")


def shown(node: str, size: tuple[int, int], begin: float, end: float) -> History:
    return [InForce(at=begin + i / 5, node=node, size=size) for i in range(int((end - begin) * 5))]


def failover(first: tuple[int, int], right_after_seconds: float) -> History:
    """Two nodes drained at 10 s; the ResourceManager goes away and shows them with `first` from 12 s on."""
    facts: History = [Disturbed(at=10.5, how="kill -9"), GroupTarget(at=10.0, least_mb=256, most_mb=258)]
    for node in ("n1", "n2"):
        facts += [Sent(at=1.0, node=node, size=BIG), *shown(node, BIG, 2, 10)]
        facts += [Sent(at=12.0 + right_after_seconds, node=node, size=SMALL)]
        facts += shown(node, first, 12, 12 + right_after_seconds)
        facts += shown(node, SMALL, 12.2 + right_after_seconds, 30)
    return facts


@pytest.mark.parametrize("seconds", [0.0, 1.0, 4.0])
def test_sizes_that_are_right_within_two_intervals_are_taken(seconds: float) -> None:
    assert complaints(failover(BIG, seconds), RULES) == []


def test_sizes_that_are_right_too_late_are_refused() -> None:
    (found,) = complaints(failover(BIG, 6.0), RULES)
    assert "256 to 258 MB were not in force" in found


def test_sizes_that_never_become_right_are_refused() -> None:
    facts = [fact for fact in failover(BIG, 6.0) if not (isinstance(fact, InForce) and fact.size == SMALL)]
    found = complaints([*facts, *shown("n1", BIG, 18, 30), *shown("n2", BIG, 18, 30)], RULES)
    assert any("256 to 258 MB were not in force" in complaint for complaint in found)
    assert any("n1 has (2048, 4)" in complaint and "expected (128, 1)" in complaint for complaint in found)


def test_a_size_that_nobody_sent_is_refused() -> None:
    facts: History = [Disturbed(at=10.0, how="failover"), Sent(at=1.0, node="n1", size=SMALL)]
    assert complaints([*facts, *shown("n1", SMALL, 12, 30)], RULES) == []
    assert "n1 has (4096, 8)" in complaints([*facts, *shown("n1", (4096, 8), 12, 30)], RULES)[0]


def test_a_size_that_is_offered_need_not_be_sent() -> None:
    facts: History = [Disturbed(at=10.0, how="failover"), Sent(at=1.0, node="n1", size=SMALL)]
    facts += shown("n1", BIG, 12, 20)
    assert complaints([*facts, Offered(at=16.0, node="n1", size=BIG)], RULES) == []
    for offered in [
        Offered(at=8.0, node="n1", size=BIG),
        Offered(at=16.0, node="n1", size=(BIG[0] - 2, BIG[1])),
        Offered(at=16.0, node="n1", size=(BIG[0], BIG[1] - 1)),
        Offered(at=16.0, node="n2", size=BIG),
    ]:
        assert complaints([*facts, offered], RULES) != []


def test_a_size_just_replaced_may_still_be_in_force_and_no_longer() -> None:
    facts: History = [Disturbed(at=10.0, how="failover"), Sent(at=1.0, node="n1", size=SMALL)]
    facts.append(Sent(at=20.0, node="n1", size=BIG))
    assert complaints([*facts, *shown("n1", SMALL, 12, 21), *shown("n1", BIG, 21, 30)], RULES) == []
    assert complaints([*facts, *shown("n1", SMALL, 12, 25), *shown("n1", BIG, 25, 30)], RULES) != []


@pytest.mark.parametrize("exit_code", [-102, -100, -106, 137, 143, 1])
def test_an_end_that_nobody_ordered_is_refused(exit_code: int) -> None:
    assert len(complaints([replace(PREEMPTED, exit_code=exit_code)], RULES)) == 1


def test_a_task_that_has_done_its_work_and_one_that_an_order_names_may_end() -> None:
    done = replace(PREEMPTED, exit_code=0)
    ordered: History = [Ordered(at=190.0, container="c1"), replace(PREEMPTED, exit_code=143)]
    assert complaints([done, *ordered], RULES) == []


def test_a_take_back_covers_the_preempted_of_its_node() -> None:
    assert complaints([TAKEN_BACK, PREEMPTED], RULES) == []


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param([replace(TAKEN_BACK, node="n2"), PREEMPTED], id="of another node"),
        pytest.param([TAKEN_BACK, replace(PREEMPTED, at=185.0)], id="before it"),
        pytest.param([TAKEN_BACK, replace(PREEMPTED, at=300.0)], id="long after it"),
        pytest.param([TAKEN_BACK, replace(PREEMPTED, exit_code=-100)], id="lost, not preempted"),
        pytest.param([Ordered(at=190.0, container="c2"), PREEMPTED], id="another one was ordered"),
        pytest.param([PREEMPTED, Ordered(at=201.0, container="c1")], id="ordered afterwards"),
    ],
)
def test_what_is_not_covered_is_refused(facts: list[Fact]) -> None:
    assert len(complaints(facts, RULES)) == 1
