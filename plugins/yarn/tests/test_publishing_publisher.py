"""Offers that take back: what is sent for them. What holds for every offer is tested with the hooks."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from plugins.yarn.tests.yarn_fakes import CONFIGURED, GIB, NODE_ID, FakeManager, entry, facts, offer, reading, spec

from fallow_hookspecs import Offer, OfferAnswer, Refusal, ResourceName, Resources
from fallow_yarn.errors import UnknownNodeError, UnreachableError
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.publishing.publisher import Publisher
from fallow_yarn.publishing.resend import Resend
from fallow_yarn.reports.capabilities import capabilities as capabilities_of
from fallow_yarn.rm.admin import FAR_TIMEOUT_MS
from fallow_yarn.rm.facts import Calculator
from fallow_yarn.rm.readings import NodeReading

SMALL, SMALL_SIZE = Resources(2000, 2 * GIB), Size(2048, 2)
SECOND = "worker-1:45455"


@pytest.fixture
def publisher(manager: FakeManager) -> Publisher:
    return Publisher(manager, spec(), Resend())


def publish(
    publisher: Publisher, manager: FakeManager, *offers: Offer, version: str = "3.5.0"
) -> tuple[OfferAnswer, ...]:
    known: Mapping[str, NodeReading] = manager.reading_now.nodes
    capabilities = capabilities_of(facts(version))
    return publisher.publish(offers, capabilities, known, Deadline.after(10))


def has_size(manager: FakeManager, size: Size) -> None:
    manager.reading_now = reading(entry(capability=size))


def sent(manager: FakeManager) -> list[list[tuple[Size, int]]]:
    """The sizes and timeouts of each call."""
    return [[(update.size, update.over_commit_timeout_ms) for update in call] for call in manager.sent]


def test_a_take_back_terminates_at_once_down_to_its_amount_and_then_sends_the_offer(
    publisher: Publisher, manager: FakeManager
) -> None:
    (answer,) = publish(publisher, manager, offer(total=SMALL, memory=5 * GIB))
    assert (answer.accepted, answer.reason) == (SMALL, "")
    assert sent(manager) == [[(Size(5120, CONFIGURED.vcores), 0)], [(SMALL_SIZE, FAR_TIMEOUT_MS)]]


@pytest.mark.parametrize(
    ("take_back", "first"),
    [
        ({"memory": 5 * GIB}, Size(5120, 9)),
        ({"memory": 5 * GIB - 1}, Size(5120, 9)),
        ({"cpu": 5000}, Size(8192, 5)),
        ({"cpu": 4001}, Size(8192, 5)),
        ({"memory": 5 * GIB, "cpu": 5000}, Size(5120, 5)),
    ],
)
def test_what_is_not_taken_back_keeps_all_that_it_has_and_amounts_are_rounded_up(
    publisher: Publisher, manager: FakeManager, take_back: dict[ResourceName, int], first: Size
) -> None:
    manager.reading_now = reading(entry(capability=Size(8192, 4), used=Size(6000, 9)))
    publish(publisher, manager, replace(offer(total=SMALL), take_back=take_back))
    assert sent(manager) == [[(first, 0)], [(SMALL_SIZE, FAR_TIMEOUT_MS)]]


def test_only_the_offer_that_takes_back_terminates_anything(publisher: Publisher, manager: FakeManager) -> None:
    manager.reading_now = reading(entry(), entry(SECOND))
    publish(publisher, manager, offer(total=SMALL, memory=5 * GIB), offer(SECOND, total=SMALL))
    assert [[update.node_id for update in call] for call in manager.sent] == [[NODE_ID], [NODE_ID, SECOND]]


@pytest.mark.parametrize(
    ("take_back", "first"),
    [({"memory": 2 * GIB}, Size(2048, 3)), ({"memory": 2 * GIB, "cpu": 2000}, Size(2049, 2))],
)
def test_an_update_that_would_change_nothing_is_changed_where_that_keeps_the_most(
    publisher: Publisher, manager: FakeManager, take_back: dict[ResourceName, int], first: Size
) -> None:
    manager.reading_now = reading(entry(capability=SMALL_SIZE, used=Size(3000, 1)))
    publish(publisher, manager, replace(offer(total=SMALL), take_back=take_back))
    assert sent(manager) == [[(first, 0)], [(SMALL_SIZE, FAR_TIMEOUT_MS)]]


def test_a_node_whose_take_back_is_refused_gets_no_size_and_spoils_no_other(
    publisher: Publisher, manager: FakeManager
) -> None:
    manager.reading_now = reading(entry(), entry(SECOND))
    manager.refusals[NODE_ID] = UnknownNodeError("unknown", node=NODE_ID)
    bad, good = publish(
        publisher, manager, offer(total=SMALL, memory=5 * GIB), offer(SECOND, total=SMALL, memory=5 * GIB)
    )
    assert (bad.refusal, good.accepted) == (Refusal.UNKNOWN_NODE, SMALL)
    assert [update.node_id for update in manager.sent[-1]] == [SECOND]


def test_a_take_back_looks_at_what_the_node_has_now_and_not_in_the_last_report(
    publisher: Publisher, manager: FakeManager
) -> None:
    known = manager.reading_now.nodes
    manager.reading_now = reading(entry(capability=Size(4096, 3), used=Size(4096, 7)))
    publisher.publish([offer(total=SMALL, memory=3 * GIB)], capabilities_of(facts()), known, Deadline.after(10))
    assert sent(manager)[0] == [(Size(3072, 7), 0)]


def test_an_offer_that_does_not_take_back_changes_no_size_twice(publisher: Publisher, manager: FakeManager) -> None:
    (answer,) = publish(publisher, manager, offer(total=Resources(8000, 8 * GIB)))
    assert answer.accepted is not None
    assert sent(manager) == [[(CONFIGURED, FAR_TIMEOUT_MS)]]


@pytest.mark.parametrize("amount", [2 * GIB - 1, -5])
def test_a_take_back_to_less_than_the_offer_is_refused_and_spoils_no_other(
    publisher: Publisher, manager: FakeManager, amount: int
) -> None:
    manager.reading_now = reading(entry(), entry(SECOND))
    bad, good = publish(
        publisher, manager, offer(total=SMALL, memory=amount), offer(SECOND, total=SMALL, memory=5 * GIB)
    )
    assert (bad.refusal, good.accepted) == (Refusal.BAD_VALUE, SMALL)
    assert [update.node_id for call in manager.sent for update in call] == [SECOND, SECOND]


def test_a_resource_manager_that_takes_nothing_back_is_not_asked_to(publisher: Publisher, manager: FakeManager) -> None:
    (answer,) = publish(publisher, manager, offer(memory=60), version="3.2.4")
    assert (answer.refusal, answer.reason) == (
        Refusal.BAD_VALUE,
        "this ResourceManager does not take back memory",
    )
    assert manager.sent == []


def test_cpu_that_is_not_heeded_is_not_taken_back(publisher: Publisher, manager: FakeManager) -> None:
    capabilities = capabilities_of(facts(calculator=Calculator.DEFAULT))
    known = manager.reading_now.nodes
    both = [offer(memory=60, cpu=60)]
    (answer,) = publisher.publish(both, capabilities, known, Deadline.after(10))
    assert (answer.refusal, answer.reason) == (Refusal.BAD_VALUE, "this ResourceManager does not take back cpu")


def test_a_failure_on_the_way_is_the_failure_of_the_call(publisher: Publisher, manager: FakeManager) -> None:
    manager.failure = UnreachableError("no connection")
    with pytest.raises(UnreachableError):
        publish(publisher, manager, offer(memory=60))
