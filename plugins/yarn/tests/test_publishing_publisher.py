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
from fallow_yarn.publishing.resend import Resend, Start
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


@pytest.mark.parametrize(
    ("take_back", "timeout_ms"),
    [
        ({"memory": 60}, 60_000),
        ({"cpu": 90}, 90_000),
        ({"memory": 90, "cpu": 60}, 60_000),
        ({"memory": 10**9}, FAR_TIMEOUT_MS),
    ],
)
def test_the_notice_of_a_take_back_is_the_smallest_of_its_resources(
    publisher: Publisher, manager: FakeManager, take_back: dict[ResourceName, int], timeout_ms: int
) -> None:
    (answer,) = publish(publisher, manager, replace(offer(total=SMALL), take_back=take_back))
    assert (answer.accepted, answer.reason) == (SMALL, "")
    assert sent(manager) == [[(SMALL_SIZE, timeout_ms)]]


def test_only_the_offer_that_takes_back_has_a_notice(publisher: Publisher, manager: FakeManager) -> None:
    manager.reading_now = reading(entry(), entry(SECOND))
    publish(publisher, manager, offer(total=SMALL, memory=60), offer(SECOND, total=SMALL))
    assert sent(manager) == [[(SMALL_SIZE, 60_000), (SMALL_SIZE, FAR_TIMEOUT_MS)]]


def test_a_size_that_the_node_has_already_is_changed_and_back_so_that_the_notice_counts(
    publisher: Publisher, manager: FakeManager
) -> None:
    has_size(manager, SMALL_SIZE)
    (answer,) = publish(publisher, manager, offer(total=SMALL, memory=60))
    assert answer.accepted == SMALL
    assert sent(manager) == [[(Size(2049, 2), FAR_TIMEOUT_MS)], [(SMALL_SIZE, 60_000)]]


def test_repeating_a_take_back_starts_no_new_notice(publisher: Publisher, manager: FakeManager) -> None:
    publish(publisher, manager, offer(total=SMALL, memory=60))
    has_size(manager, SMALL_SIZE)
    manager.sent.clear()
    publish(publisher, manager, offer(total=SMALL, memory=58))
    assert sent(manager) == [[(SMALL_SIZE, 58_000)]]


@pytest.mark.parametrize("start", [("rm1", 2), ("rm2", 1)], ids=["it was restarted", "another one took over"])
def test_a_notice_ends_with_the_resource_manager_that_it_was_given_to(
    publisher: Publisher, manager: FakeManager, start: Start
) -> None:
    taking = offer(total=SMALL, memory=60)
    publisher.note_start(("rm1", 1))
    publish(publisher, manager, taking)
    has_size(manager, SMALL_SIZE)
    publisher.note_start(("rm1", 1))
    publish(publisher, manager, taking)
    assert len(sent(manager)) == 2
    publisher.note_start(start)
    publish(publisher, manager, taking)
    assert sent(manager)[2:] == [[(Size(2049, 2), FAR_TIMEOUT_MS)], [(SMALL_SIZE, 60_000)]]


def test_a_take_back_after_one_that_was_cancelled_is_a_new_one(publisher: Publisher, manager: FakeManager) -> None:
    publish(publisher, manager, offer(total=SMALL, memory=60))
    publish(publisher, manager, offer())
    publish(publisher, manager, offer(total=SMALL))
    has_size(manager, SMALL_SIZE)
    manager.sent.clear()
    publish(publisher, manager, offer(total=SMALL, memory=60))
    assert sent(manager)[0] == [(Size(2049, 2), FAR_TIMEOUT_MS)]


def test_a_take_back_that_was_refused_does_not_count_as_running(publisher: Publisher, manager: FakeManager) -> None:
    manager.refusals[NODE_ID] = UnknownNodeError("unknown", node=NODE_ID)
    publish(publisher, manager, offer(total=SMALL, memory=60))
    manager.refusals.clear()
    manager.sent.clear()
    has_size(manager, SMALL_SIZE)
    publish(publisher, manager, offer(total=SMALL, memory=60))
    assert len(sent(manager)) == 2


def test_a_take_back_looks_at_the_size_of_now_and_not_of_the_last_report(
    publisher: Publisher, manager: FakeManager
) -> None:
    known = manager.reading_now.nodes
    has_size(manager, SMALL_SIZE)
    publisher.publish([offer(total=SMALL, memory=60)], capabilities_of(facts()), known, Deadline.after(10))
    assert len(sent(manager)) == 2


def test_an_offer_that_does_not_take_back_changes_no_size_twice(publisher: Publisher, manager: FakeManager) -> None:
    (answer,) = publish(publisher, manager, offer(total=Resources(8000, 8 * GIB)))
    assert answer.accepted is not None
    assert sent(manager) == [[(CONFIGURED, FAR_TIMEOUT_MS)]]


@pytest.mark.parametrize("notice_seconds", [0, -5])
def test_a_take_back_without_notice_is_refused_and_spoils_no_other(
    publisher: Publisher, manager: FakeManager, notice_seconds: int
) -> None:
    manager.reading_now = reading(entry(), entry(SECOND))
    bad, good = publish(publisher, manager, offer(memory=notice_seconds), offer(SECOND, total=SMALL, memory=60))
    assert (bad.refusal, good.accepted) == (Refusal.BAD_VALUE, SMALL)
    assert [update.node_id for call in manager.sent for update in call] == [SECOND]


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
