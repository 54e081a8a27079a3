from collections.abc import Collection

import pytest
from plugins.yarn.tests.yarn_fakes import HOST, NODE_ID, FakeManager, entry, facts, inactive, instance, reading

from fallow_hookspecs import Daemon, Finding, Process
from fallow_yarn import diagnosis
from fallow_yarn.errors import AccessDeniedError, UnreachableError
from fallow_yarn.rm.facts import Calculator
from fallow_yarn.rm.nodes import State
from fallow_yarn.rm.size import Size


@pytest.fixture
def manager() -> FakeManager:
    return FakeManager()


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The nodes of the NodeManagers on this host; those asked for at first."""
    nodes: list[str | None] = [NODE_ID]

    def node_managers(ids: Collection[str]) -> tuple[Daemon, ...]:
        return tuple(Daemon(process=Process(1, 1), framework_node=node) for node in nodes if node in {*ids, None})

    monkeypatch.setattr(diagnosis, "node_managers", node_managers)
    return nodes


def findings(manager: FakeManager, **settings: object) -> dict[str, Finding]:
    found = instance(manager, None, **settings).diagnose((HOST,), 5.0)
    by_subject = {finding.subject: finding for finding in found}
    assert len(by_subject) == len(found)
    assert all(finding.advice for finding in found if finding.ok is False)
    return by_subject


def test_where_all_is_well_every_finding_is_good_and_none_gives_advice(manager: FakeManager) -> None:
    found = findings(manager)
    assert list(found) == [
        "ResourceManager",
        "admin rights",
        "minimum allocation",
        "resource calculator",
        "NodeManagers of n1",
        f"size of {NODE_ID}",
        f"process of {NODE_ID}",
    ]
    assert {finding.ok for finding in found.values()} == {True}
    assert {finding.advice for finding in found.values()} == {""}


def test_who_answers_is_named_with_its_version_and_address(manager: FakeManager) -> None:
    assert findings(manager)["ResourceManager"].detail == "3.5.0 at rm:8088 is ACTIVE"


def test_a_resource_manager_that_cannot_be_reached_is_the_one_finding(manager: FakeManager) -> None:
    manager.failure = UnreachableError("rm:8088 (spec.resourceManager.web): connection refused")
    (found,) = findings(manager).values()
    assert (found.subject, found.ok) == ("ResourceManager", False)
    assert found.detail == "rm:8088 (spec.resourceManager.web): connection refused"
    assert "spec.resourceManager" in found.advice


def test_a_resource_manager_that_still_starts_cannot_be_judged(manager: FakeManager) -> None:
    manager.facts_now = inactive()
    found = findings(manager)
    assert (found["ResourceManager"].ok, found["scheduler"].ok) == (None, None)
    assert "INITIALIZING" in found["ResourceManager"].detail


def test_missing_rights_name_the_acl_and_the_user(manager: FakeManager) -> None:
    manager.rights_failure = AccessDeniedError("rm:8033: updateNodeResource refused")
    found = findings(manager, user="fallow")["admin rights"]
    assert (found.ok, found.detail) == (False, "rm:8033: updateNodeResource refused")
    assert "'fallow'" in found.advice
    assert "yarn.admin.acl" in found.advice


def test_an_admin_port_that_does_not_answer_is_told_from_missing_rights(manager: FakeManager) -> None:
    manager.rights_failure = UnreachableError("rm:8033: connection refused")
    found = findings(manager)
    assert (found["admin rights"].ok, found["ResourceManager"].ok) == (False, True)
    assert "spec.resourceManager.admin" in found["admin rights"].advice


def test_the_minimum_allocation_is_told(manager: FakeManager) -> None:
    manager.facts_now = facts(minimum=Size(512, 2))
    assert findings(manager)["minimum allocation"].detail == "512 MB and 2 vcores: no node is made smaller"


def test_a_minimum_allocation_that_is_not_shown_is_taken_as_hadoops_default(manager: FakeManager) -> None:
    manager.facts_now = facts(minimum=None)
    found = findings(manager)["minimum allocation"]
    assert found.ok is None
    assert "taken as 1024 MB and 1 vcore," in found.detail
    assert "/conf" in found.advice


def test_before_3_3_the_minimum_allocation_does_not_matter(manager: FakeManager) -> None:
    manager.facts_now = facts("3.2.4", minimum=None)
    manager.reading_now = reading(entry(capability=Size(0, 0)))
    found = findings(manager)
    assert (found["minimum allocation"].ok, found[f"size of {NODE_ID}"].ok) == (True, True)


@pytest.mark.parametrize("size", [Size(512, 8), Size(8192, 0)])
def test_a_node_configured_below_the_minimum_is_told_what_to_set(manager: FakeManager, size: Size) -> None:
    manager.facts_now = facts(minimum=Size(1024, 1))
    manager.reading_now = reading(entry(capability=size))
    found = findings(manager)[f"size of {NODE_ID}"]
    assert found.ok is False
    assert "below the minimum allocation" in found.detail
    assert "yarn.nodemanager.resource.memory-mb" in found.advice
    assert "1024 MB and 1 vcore:" in found.advice


def test_the_default_calculator_is_told_with_the_setting_to_change(manager: FakeManager) -> None:
    manager.facts_now = facts(calculator=Calculator.DEFAULT)
    found = findings(manager)["resource calculator"]
    assert found.ok is False
    assert "vcores are ignored" in found.detail
    assert "yarn.scheduler.capacity.resource-calculator" in found.advice
    assert "DominantResourceCalculator" in found.advice


def test_a_calculator_that_does_not_show_is_not_judged(manager: FakeManager) -> None:
    manager.facts_now = facts(calculator=None)
    found = findings(manager)["resource calculator"]
    assert found.ok is None
    assert "capacity-scheduler.xml" in found.advice


def test_another_scheduler_has_no_calculator_to_judge(manager: FakeManager) -> None:
    manager.facts_now = facts(scheduler="fairScheduler", calculator=None)
    found = findings(manager)
    assert "resource calculator" not in found
    assert found["scheduler"].ok is None
    assert "fairScheduler" in found["scheduler"].detail


@pytest.mark.parametrize(
    ("asynchronous", "nodes", "told"), [(True, 1000, True), (True, 999, False), (False, 1000, False)]
)
def test_asynchronous_scheduling_is_told_where_the_cluster_is_large(
    manager: FakeManager, asynchronous: bool, nodes: int, told: bool
) -> None:
    manager.facts_now = facts(asynchronous=asynchronous)
    manager.reading_now = reading(entry(), *(entry(f"other-{number}:1") for number in range(nodes - 1)))
    found = findings(manager)
    assert ("asynchronous scheduling" in found) is told
    if told:
        assert found["asynchronous scheduling"].ok is False
        assert "schedule-asynchronously.enable" in found["asynchronous scheduling"].advice


def test_a_configured_node_that_is_unknown_is_named_with_those_that_are_known(manager: FakeManager) -> None:
    found = findings(manager, nodeManagers=[NODE_ID, "nowhere:1"])
    assert found["NodeManagers of n1"].ok is False
    assert found["NodeManagers of n1"].detail == "not known: nowhere:1"
    assert f"lists {NODE_ID};" in found["NodeManagers of n1"].advice
    assert found[f"process of {NODE_ID}"].ok is True


def test_a_host_without_node_managers_is_told_its_own_addresses_and_what_is_listed(manager: FakeManager) -> None:
    manager.reading_now = reading(*(entry(f"other-{number:02}:1") for number in range(11, -1, -1)))
    found = findings(manager)["NodeManagers of n1"]
    assert found.ok is False
    assert "none here" in found.detail
    assert "this node is worker-1, 192.0.2.1" in found.advice
    assert "other-09:1 and 2 more" in found.advice
    assert "spec.nodeManagers" in found.advice


def test_an_empty_cluster_is_told(manager: FakeManager) -> None:
    manager.reading_now = reading()
    assert "lists no node;" in findings(manager)["NodeManagers of n1"].advice


def test_node_managers_that_are_gone_are_shown_and_looked_for_no_further(manager: FakeManager) -> None:
    gone = "worker-1:40000"
    manager.reading_now = reading(entry(), entry(gone, state=State.LOST, in_force=None, used=None))
    found = findings(manager)
    assert (found["NodeManagers of n1"].ok, found["NodeManagers of n1"].detail) == (
        True,
        f"{gone} LOST, {NODE_ID} RUNNING",
    )
    assert not found.keys() & {f"size of {gone}", f"process of {gone}"}


def test_a_host_whose_node_managers_are_all_gone_is_not_well(manager: FakeManager) -> None:
    manager.reading_now = reading(entry(state=State.SHUTDOWN, in_force=None, used=None))
    found = findings(manager)["NodeManagers of n1"]
    assert (found.ok, found.detail) == (False, f"{NODE_ID} SHUTDOWN")


def test_a_process_that_is_not_found_is_told_with_what_follows(
    manager: FakeManager, processes: list[str | None]
) -> None:
    processes.clear()
    found = findings(manager)[f"process of {NODE_ID}"]
    assert found.ok is False
    assert "online use" in found.detail
    assert "PID namespace" in found.advice


def test_a_process_whose_sockets_cannot_be_read_is_not_judged(
    manager: FakeManager, processes: list[str | None]
) -> None:
    processes[:] = [None]
    found = findings(manager)[f"process of {NODE_ID}"]
    assert found.ok is None
    assert "cannot read" in found.detail
    assert "root" in found.advice
