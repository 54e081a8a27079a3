"""What is said of which NodeManagers are this host's."""

import pytest
from plugins.yarn.tests.diagnosis_fakes import Fakes
from plugins.yarn.tests.yarn_fakes import NODE_ID, entry, reading

from fallow_yarn.rm.nodes import State

SUBJECT = "NodeManagers of n1"


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


def test_a_configured_node_that_is_unknown_is_named_with_those_that_are_known(fakes: Fakes) -> None:
    found = fakes.findings(nodeManagers=[NODE_ID, "nowhere:1"])
    assert found[SUBJECT].ok is False
    assert found[SUBJECT].detail == "unknown: nowhere:1"
    assert f"lists big:1, {NODE_ID};" in found[SUBJECT].advice
    assert found[f"process of {NODE_ID}"].ok is True


def test_a_configured_node_in_another_spelling_is_known(fakes: Fakes) -> None:
    found = fakes.findings(nodeManagers=[NODE_ID.upper()])
    assert (found[SUBJECT].ok, found[f"process of {NODE_ID}"].ok) == (True, True)


def test_a_host_without_node_managers_is_told_the_names_tried_and_what_is_listed(fakes: Fakes) -> None:
    fakes.manager.reading_now = reading(*(entry(f"other-{number:02}:1") for number in range(11, -1, -1)))
    fakes.running.clear()
    found = fakes.findings()[SUBJECT]
    assert found.ok is False
    assert "a name of this host, which are worker-1, 192.0.2.1; it lists other-00:1," in found.detail
    assert "other-09:1 and 2 more" in found.detail
    assert "no NodeManager runs here" in found.advice
    assert "spec.nodeManagers" in found.advice


def test_an_id_that_differs_by_its_domain_alone_is_proposed(fakes: Fakes) -> None:
    fakes.manager.reading_now = reading(entry("worker-1.example.com:45454"), entry("worker-2.example.com:45454"))
    assert "spec.nodeManagers: [worker-1.example.com:45454]" in fakes.findings()[SUBJECT].advice


@pytest.mark.parametrize(("host", "told"), [("rm", True), ("127.0.0.1", False)])
def test_an_id_of_the_loopback_interface_is_proposed_where_it_does_not_count_by_itself(
    fakes: Fakes, host: str, told: bool
) -> None:
    fakes.manager.reading_now = reading(entry("localhost:45454"))
    advice = fakes.findings(resourceManager={"host": host})[SUBJECT].advice
    assert ("yarn.nodemanager.hostname" in advice) is told


def test_a_node_manager_that_runs_here_and_is_not_listed_is_told(fakes: Fakes) -> None:
    fakes.manager.reading_now = reading(entry("other:1"))
    assert "a NodeManager runs here (process 1)" in fakes.findings()[SUBJECT].advice


def test_an_empty_cluster_is_told(fakes: Fakes) -> None:
    fakes.manager.reading_now = reading()
    assert fakes.findings()[SUBJECT].detail.endswith("it lists no node")


def test_node_managers_that_are_gone_are_shown_and_looked_for_no_further(fakes: Fakes) -> None:
    gone = "worker-1:40000"
    fakes.manager.reading_now = reading(entry(), entry(gone, state=State.LOST, in_force=None, used=None))
    found = fakes.findings()
    assert (found[SUBJECT].ok, found[SUBJECT].detail) == (True, f"{gone} LOST, {NODE_ID} RUNNING")
    assert not [subject for subject in found if gone in subject]


def test_a_host_whose_node_managers_are_all_gone_is_not_well(fakes: Fakes) -> None:
    fakes.manager.reading_now = reading(entry(state=State.SHUTDOWN, in_force=None, used=None))
    found = fakes.findings()[SUBJECT]
    assert (found.ok, found.detail) == (False, f"{NODE_ID} SHUTDOWN")


def test_a_node_that_is_taken_out_or_on_its_way_is_no_fault(fakes: Fakes) -> None:
    fakes.manager.reading_now = reading(entry(state=State.DECOMMISSIONING))
    found = fakes.findings()[SUBJECT]
    assert (found.ok, found.detail) == (True, f"{NODE_ID} DECOMMISSIONING")
    fakes.manager.reading_now = reading(entry(state=State.DECOMMISSIONED, in_force=None, used=None))
    found = fakes.findings()[SUBJECT]
    assert (found.ok, found.detail) == (None, f"{NODE_ID} DECOMMISSIONED: decommissioned on purpose")
    assert f"fallow yarn recommission {NODE_ID.partition(':')[0]}" in found.advice


def test_an_unhealthy_node_manager_is_told(fakes: Fakes) -> None:
    fakes.manager.reading_now = reading(entry(state=State.UNHEALTHY, in_force=None, used=None))
    found = fakes.findings()[SUBJECT]
    assert (found.ok, found.detail) == (False, f"{NODE_ID} UNHEALTHY: it gets no containers")
    assert "healthReport" in found.advice


def test_a_process_that_is_not_found_is_told_with_what_follows(fakes: Fakes) -> None:
    fakes.running.clear()
    found = fakes.findings()[f"process of {NODE_ID}"]
    assert found.ok is False
    assert "online use" in found.detail
    assert "PID namespace" in found.advice


def test_a_process_whose_sockets_cannot_be_read_is_not_judged(fakes: Fakes) -> None:
    fakes.running[:] = [None]
    found = fakes.findings()[f"process of {NODE_ID}"]
    assert found.ok is None
    assert "cannot read" in found.detail
    assert "root" in found.advice
