"""The diagnosis as a whole: which findings there are, and what is asked of whom."""

import pytest
from plugins.yarn.tests.diagnosis_fakes import CONF, Fakes, Found, inactive_in, manager_page, node_page
from plugins.yarn.tests.yarn_fakes import NODE_ID, entry, facts, reading

from fallow_yarn.diagnosis.probes import Page
from fallow_yarn.errors import (
    AccessDeniedError,
    ConnectionLostError,
    DeadlineError,
    NoSuchCallError,
    RefusedError,
    SilentHostError,
    StandbyError,
    UnknownHostError,
    WrongPortError,
    YarnError,
)
from fallow_yarn.model.size import Size
from fallow_yarn.rm.facts import Calculator
from fallow_yarn.rm.nodes import State


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


def ok_of(found: Found) -> set[bool | None]:
    return {finding.ok for finding in found.values()}


def test_where_all_is_well_every_finding_is_good_and_none_gives_advice(fakes: Fakes) -> None:
    fakes.manager_says = manager_page(**{"yarn.scheduler.capacity.lazy-preemption-enabled": "false"})
    found = fakes.findings()
    assert list(found) == [
        "ResourceManager",
        "release of the ResourceManager",
        "clocks",
        "admin rights",
        "scheduler",
        "minimum allocation",
        "resource calculator",
        "lazy preemption",
        "largest node",
        "NodeManagers of n1",
        "room on n1",
        f"size of {NODE_ID}",
        f"configured size of {NODE_ID}",
        f"release of {NODE_ID}",
        f"port of {NODE_ID}",
        f"disks of {NODE_ID}",
        f"delay before SIGKILL of {NODE_ID}",
        f"executor of {NODE_ID}",
        f"process of {NODE_ID}",
    ]
    assert ok_of(found) == {True}
    assert {finding.advice for finding in found.values()} == {""}


@pytest.mark.parametrize("failure", [UnknownHostError("x"), SilentHostError("x"), DeadlineError("x")])
def test_a_host_that_is_not_there_is_the_one_finding_and_asked_once(fakes: Fakes, failure: YarnError) -> None:
    fakes.manager.failure = failure
    (found,) = fakes.findings().values()
    assert (found.subject, found.ok, found.detail) == ("ResourceManager", False, "x")
    assert len(fakes.manager.deadlines) == 1


def test_a_resource_manager_that_does_not_run_is_one_finding_for_its_three_ports(fakes: Fakes) -> None:
    fakes.manager.failure = RefusedError("rm:8088 (spec.resourceManager.web): no connection: Connection refused")
    (found,) = fakes.findings().values()
    assert (found.subject, found.ok) == ("ResourceManager", False)
    assert found.detail.startswith("it does not run: rm:8088")
    assert found.advice.startswith("start it")


def test_a_web_port_that_is_wrong_is_told_from_ports_that_answer(fakes: Fakes) -> None:
    fakes.manager.facts_failure = WrongPortError("rm:8033: this is a Hadoop IPC port")
    (found,) = fakes.findings().values()
    assert (found.subject, found.detail) == ("web port", "rm:8033: this is a Hadoop IPC port")
    assert "set spec.resourceManager.web to" in found.advice
    assert "yarn.resourcemanager.webapp.address" in found.advice


def test_client_and_admin_that_are_mixed_up_are_told_so(fakes: Fakes) -> None:
    fakes.manager.read_failure = fakes.manager.rights_failure = NoSuchCallError("Unknown protocol")
    found = fakes.findings()
    assert "swapped" in found["ports"].detail
    assert found["ports"].advice == "swap spec.resourceManager.client and spec.resourceManager.admin"
    assert "spec.resourceManager.client" in found["client port"].advice
    assert "spec.resourceManager.admin" in found["admin rights"].advice


def test_a_client_port_alone_that_is_another_one_is_not_called_mixed_up(fakes: Fakes) -> None:
    fakes.manager.read_failure = NoSuchCallError("Unknown protocol")
    found = fakes.findings()
    assert found["client port"].ok is False
    assert "ports" not in found
    assert found["admin rights"].ok is True


def test_a_standby_is_told_and_its_closed_client_port_is_no_finding_of_its_own(fakes: Fakes) -> None:
    fakes.manager.facts_now = inactive_in("STANDBY")
    fakes.manager.read_failure = RefusedError("rm:8032: refused")
    fakes.manager.rights_failure = StandbyError("not active")
    found = fakes.findings()
    assert found["ResourceManager"].ok is False
    assert "STANDBY" in found["ResourceManager"].detail
    assert "configure the active one" in found["ResourceManager"].advice
    assert found["admin rights"].ok is None
    assert "client port" not in found


def test_a_standby_that_is_an_error_is_told_too(fakes: Fakes) -> None:
    fakes.manager.facts_failure = StandbyError("rm1, rm2: both are standby")
    (found,) = fakes.findings().values()
    assert (found.subject, found.ok, found.detail) == ("ResourceManager", False, "rm1, rm2: both are standby")
    assert "active ResourceManager" in found.advice


def test_a_resource_manager_that_still_starts_cannot_be_judged(fakes: Fakes) -> None:
    fakes.manager.facts_now = inactive_in("INITIALIZING")
    found = fakes.findings()
    assert (found["ResourceManager"].ok, found["scheduler"].ok) == (None, None)
    assert "INITIALIZING" in found["ResourceManager"].detail
    assert "ask again" in found["ResourceManager"].advice


def test_each_page_is_read_once_and_only_of_node_managers_here_that_are_not_gone(fakes: Fakes) -> None:
    fakes.manager.reading_now = reading(
        entry(http_address="worker-1:8042"),
        entry("worker-1:2", state=State.LOST, in_force=None, used=None, http_address="worker-1:8043"),
        entry("other:1", http_address="other:8042"),
    )
    fakes.findings()
    assert fakes.asked == ["manager", "worker-1:8042"]


def test_settings_that_cannot_be_read_are_unknown_and_never_fine(fakes: Fakes) -> None:
    fakes.manager_says = fakes.node_says = Page(problem="/conf: HTTP 403")
    found = fakes.findings()
    unknown = ("clocks", "lazy preemption", f"release of {NODE_ID}", f"settings of {NODE_ID}")
    assert {found[subject].ok for subject in unknown} == {None}
    assert "HTTP 403" in found[f"settings of {NODE_ID}"].detail
    assert not found.keys() & {f"disks of {NODE_ID}", f"executor of {NODE_ID}", f"configured size of {NODE_ID}"}


def test_single_settings_that_are_not_shown_are_unknown_and_never_fine(fakes: Fakes) -> None:
    fakes.node_says = Page(settings=CONF)
    found = fakes.findings()
    subjects = ("release", "port", "disks", "delay before SIGKILL", "executor", "configured size")
    assert {found[f"{subject} of {NODE_ID}"].ok for subject in subjects} == {None}


def test_a_host_that_could_not_be_measured_has_unknown_room(fakes: Fakes) -> None:
    fakes.lendable = None
    assert fakes.findings()["room on n1"].ok is None


def test_no_finding_that_is_wrong_is_without_advice_and_none_is_told_twice(fakes: Fakes) -> None:
    fakes.manager.facts_now = facts("3.5.0", calculator=Calculator.DEFAULT, minimum=Size(90_000, 90), asynchronous=True)
    fakes.manager.rights_failure = AccessDeniedError("no")
    fakes.manager_says = manager_page(900.0, **{"yarn.scheduler.capacity.lazy-preemption-enabled": "true"})
    fakes.node_says = node_page(
        **{
            "yarn.nodemanager.address": "0.0.0.0:0",
            "yarn.nodemanager.sleep-delay-before-sigkill.ms": "250",
            "yarn.nodemanager.resource.memory-mb": "900000",
        }
    )
    fakes.disk = 99.0
    found = fakes.findings()
    wrong = {subject for subject, finding in found.items() if finding.ok is False}
    assert len(wrong) == 6


@pytest.mark.parametrize("failure", [ConnectionLostError("closed"), YarnError("odd")])
def test_any_error_of_the_web_port_still_has_the_others_tried(fakes: Fakes, failure: YarnError) -> None:
    fakes.manager.facts_failure = failure
    fakes.manager.rights_failure = AccessDeniedError("not you")
    found = fakes.findings()
    assert list(found) == ["web port", "admin port"]
    assert ok_of(found) == {False}


def test_an_identity_without_state_is_unknown(fakes: Fakes) -> None:
    fakes.manager.facts_now = inactive_in("")
    assert fakes.findings()["ResourceManager"].ok is None
