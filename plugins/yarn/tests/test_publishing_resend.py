"""Sizes that a ResourceManager takes to its end are sent again to the one that comes after it."""

from dataclasses import replace

import pytest
from plugins.yarn.tests.yarn_fakes import CONFIGURED, HOST, NODE_ID, FakeManager, entry, instance, offer, reading

from fallow_hookspecs import Resources
from fallow_yarn.errors import UnknownNodeError, UnreachableError
from fallow_yarn.model.size import Size
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.rm.admin import FAR_TIMEOUT_MS
from fallow_yarn.rm.nodes import CustomResource, State

SECONDS = 10.0
SIZE = Size(2048, 2)
OFFERED = offer(total=Resources(2000, 2048 << 20))
SECOND = "worker-1:45455"


@pytest.fixture
def yarn(manager: FakeManager) -> YarnInstance:
    """One that has reported, and has sent a size that its ResourceManager took and does not show yet."""
    yarn = instance(manager)
    report(yarn)
    yarn.report_capacity((HOST,), (OFFERED,), SECONDS)
    assert sizes(manager) == [{NODE_ID: SIZE}]
    manager.sent.clear()
    return yarn


def report(yarn: YarnInstance) -> None:
    yarn.report_capacity((HOST,), (), SECONDS)


def takes_over(manager: FakeManager) -> None:
    now = manager.facts_now
    started_on = (now.identity.started_on or 0) + 1
    manager.facts_now = replace(now, identity=replace(now.identity, started_on=started_on))


def sizes(manager: FakeManager) -> list[dict[str, Size]]:
    return [{update.node_id: update.size for update in call} for call in manager.sent]


def test_while_it_is_the_same_nothing_is_sent_again(yarn: YarnInstance, manager: FakeManager) -> None:
    report(yarn)
    assert manager.sent == []


def test_what_another_one_does_not_have_is_sent_again_once_and_arms_nothing(
    yarn: YarnInstance, manager: FakeManager
) -> None:
    yarn.report_capacity((HOST,), (replace(OFFERED, take_back={"memory": 60}),), SECONDS)
    manager.sent.clear()
    takes_over(manager)
    report(yarn)
    report(yarn)
    assert sizes(manager) == [{NODE_ID: SIZE}]
    assert manager.sent[0][0].over_commit_timeout_ms == FAR_TIMEOUT_MS
    takes_over(manager)
    report(yarn)
    assert sizes(manager) == [{NODE_ID: SIZE}] * 2


def test_what_it_has_is_not_sent(yarn: YarnInstance, manager: FakeManager) -> None:
    manager.reading_now = reading(entry(capability=SIZE))
    takes_over(manager)
    report(yarn)
    assert manager.sent == []


@pytest.mark.parametrize("absent", [reading(), reading(entry(state=State.LOST))], ids=["not listed", "lost"])
def test_a_node_that_comes_later_is_sent_its_size_then(
    yarn: YarnInstance, manager: FakeManager, absent: object
) -> None:
    before, manager.reading_now = manager.reading_now, absent  # type: ignore[assignment]
    takes_over(manager)
    report(yarn)
    assert manager.sent == []
    manager.reading_now = before
    report(yarn)
    report(yarn)
    assert sizes(manager) == [{NODE_ID: SIZE}]


def test_several_are_sent_in_one_call_with_the_further_resources_of_now(
    yarn: YarnInstance, manager: FakeManager
) -> None:
    gpu = CustomResource(name="gpu", value=2, message=b"\x0a\x03gpu")
    manager.reading_now = reading(entry(), entry(SECOND))
    report(yarn)
    yarn.report_capacity((HOST,), (offer(SECOND, total=OFFERED.total),), SECONDS)
    manager.sent.clear()
    manager.reading_now = reading(entry(custom=(gpu,)), entry(SECOND))
    takes_over(manager)
    report(yarn)
    assert sizes(manager) == [{NODE_ID: SIZE, SECOND: SIZE}]
    assert [update.custom for update in manager.sent[0]] == [(gpu,), ()]


def test_only_the_newest_is_sent(yarn: YarnInstance, manager: FakeManager) -> None:
    yarn.report_capacity((HOST,), (offer(total=Resources(1000, 1024 << 20)),), SECONDS)
    manager.sent.clear()
    takes_over(manager)
    report(yarn)
    assert sizes(manager) == [{NODE_ID: Size(1024, 1)}]


def test_one_that_was_refused_is_not_sent(yarn: YarnInstance, manager: FakeManager) -> None:
    manager.refusals[NODE_ID] = UnknownNodeError("unknown", node=NODE_ID)
    yarn.report_capacity((HOST,), (OFFERED,), SECONDS)
    manager.sent.clear()
    takes_over(manager)
    report(yarn)
    assert manager.sent == []


def test_a_call_that_fails_spoils_no_report_and_is_made_again(
    yarn: YarnInstance, manager: FakeManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise UnreachableError("gone again")

    takes_over(manager)
    with monkeypatch.context() as patch:
        patch.setattr(manager, "update", fails)
        (row,) = yarn.report_capacity((HOST,), (), SECONDS).rows
        assert row.in_force == Resources(CONFIGURED.vcores * 1000, CONFIGURED.memory_mb << 20)
    report(yarn)
    assert sizes(manager) == [{NODE_ID: SIZE}]
