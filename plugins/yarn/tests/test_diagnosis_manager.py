"""What is said of the ResourceManager itself: state, release, clock, rights."""

import pytest
from plugins.yarn.tests.diagnosis_fakes import Fakes, manager_page
from plugins.yarn.tests.yarn_fakes import facts

from fallow_yarn.errors import AccessDeniedError, RefusedError, StandbyError

RELEASE = "release of the ResourceManager"


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


def test_who_answers_is_named_with_its_version_and_address(fakes: Fakes) -> None:
    assert fakes.findings()["ResourceManager"].detail == "3.5.0 at rm:8088 is ACTIVE"


@pytest.mark.parametrize(
    ("version", "ok", "words"),
    [
        ("3.5.0", True, "can take back"),
        ("3.3.6", True, "can take back"),
        ("3.2.4", True, "takeBack has no effect"),
        ("2.10.2", None, "not tested"),
        ("3.6.0-SNAPSHOT", None, "not tested"),
        ("unknown", None, "not a known release"),
    ],
)
def test_what_its_release_does_is_told(fakes: Fakes, version: str, ok: bool | None, words: str) -> None:
    fakes.manager.facts_now = facts(version)
    found = fakes.findings()[RELEASE]
    assert found.ok is ok
    assert words in found.detail
    assert bool(found.advice) is (ok is None)


@pytest.mark.parametrize(
    ("ahead", "ok", "words"),
    [
        (0.9, True, "agree"),
        (-5.0, True, "agree"),
        (6.0, False, "6 s ahead of"),
        (-400.0, False, "400 s behind"),
        (None, None, "it sends no Date header"),
    ],
)
def test_clocks_that_are_apart_are_told_with_the_direction(
    fakes: Fakes, ahead: float | None, ok: bool | None, words: str
) -> None:
    fakes.manager_says = manager_page(ahead)
    found = fakes.findings()["clocks"]
    assert found.ok is ok
    assert words in found.detail


def test_missing_rights_name_the_acl_its_value_and_the_user(fakes: Fakes) -> None:
    fakes.manager.rights_failure = AccessDeniedError("rm:8033: updateNodeResource refused")
    fakes.manager_says = manager_page(**{"yarn.admin.acl": "root hadoop"})
    found = fakes.findings(user="fallow")["admin rights"]
    assert (found.ok, found.detail) == (False, "rm:8033: updateNodeResource refused; yarn.admin.acl is 'root hadoop'")
    assert "'fallow'" in found.advice
    assert "yarn.admin.acl" in found.advice


def test_an_admin_port_that_does_not_answer_is_told_from_missing_rights(fakes: Fakes) -> None:
    fakes.manager.rights_failure = RefusedError("rm:8033: connection refused")
    found = fakes.findings()
    assert (found["admin rights"].ok, found["ResourceManager"].ok) == (False, True)
    assert "spec.resourceManager.admin" in found["admin rights"].advice


def test_rights_that_only_an_active_one_can_show_are_not_known_yet(fakes: Fakes) -> None:
    fakes.manager.rights_failure = StandbyError("not active")
    assert fakes.findings()["admin rights"].ok is None


def test_an_acl_that_admits_everyone_is_said(fakes: Fakes) -> None:
    assert "everyone" in fakes.findings()["admin rights"].detail
    assert "sizes by REST" not in fakes.findings()


@pytest.mark.parametrize(("version", "told"), [("3.5.0", True), ("3.2.4", False)])
def test_rest_that_heeds_no_admin_list_is_told_where_there_is_a_list_and_the_call(
    fakes: Fakes, version: str, told: bool
) -> None:
    fakes.manager.facts_now = facts(version)
    fakes.manager_says = manager_page(**{"yarn.admin.acl": "yarn"})
    found = fakes.findings()
    assert "everyone" not in found["admin rights"].detail
    assert ("sizes by REST" in found) is told
    if told:
        assert found["sizes by REST"].ok is None
        assert "web port" in found["sizes by REST"].advice
