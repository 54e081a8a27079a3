"""What is said of the scheduler."""

from dataclasses import replace

import pytest
from plugins.yarn.tests.diagnosis_fakes import Fakes, manager_page
from plugins.yarn.tests.yarn_fakes import entry, facts, reading

from fallow_yarn.model.size import Size
from fallow_yarn.rm.facts import Calculator

LAZY = "yarn.scheduler.capacity.lazy-preemption-enabled"
CALCULATOR = "yarn.scheduler.capacity.resource-calculator"


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


@pytest.mark.parametrize(
    ("kind", "version", "ok", "words"),
    [
        ("capacityScheduler", "3.5.0", True, "CapacityScheduler"),
        ("fairScheduler", "3.5.0", True, "FairScheduler"),
        ("fairScheduler", "3.4.3", None, "not tested with this release"),
        ("fifoScheduler", "3.5.0", False, "never terminates"),
        ("", "3.5.0", None, "MyScheduler: unknown"),
    ],
)
def test_the_kind_of_scheduler_is_judged_by_what_is_proven_of_it(
    fakes: Fakes, kind: str, version: str, ok: bool | None, words: str
) -> None:
    fakes.manager.facts_now = facts(version, scheduler=kind, calculator=None)
    fakes.manager_says = manager_page(**{"yarn.resourcemanager.scheduler.class": "org.example.MyScheduler"})
    found = fakes.findings()["scheduler"]
    assert found.ok is ok
    assert words in found.detail
    assert ok is True or "yarn.resourcemanager.scheduler.class" in found.advice


def test_only_the_capacity_scheduler_has_a_calculator_and_lazy_preemption(fakes: Fakes) -> None:
    fakes.manager.facts_now = facts(scheduler="fairScheduler", calculator=None)
    assert not fakes.findings().keys() & {"resource calculator", "lazy preemption"}


def test_the_minimum_allocation_is_told(fakes: Fakes) -> None:
    fakes.manager.facts_now = facts(minimum=Size(512, 2))
    assert fakes.findings()["minimum allocation"].detail == "512 MB and 2 vcores: no node is made smaller"


def test_a_minimum_allocation_that_is_not_shown_is_taken_as_hadoops_default(fakes: Fakes) -> None:
    fakes.manager.facts_now = facts(minimum=None)
    found = fakes.findings()["minimum allocation"]
    assert found.ok is None
    assert "assumed to be 1024 MB and 1 vcore," in found.detail
    assert "/conf" in found.advice


def test_before_3_3_the_minimum_allocation_and_lazy_preemption_do_not_matter(fakes: Fakes) -> None:
    fakes.manager.facts_now = facts("3.2.4", minimum=None)
    found = fakes.findings()
    assert found["minimum allocation"].ok is True
    assert "lazy preemption" not in found


def test_the_default_calculator_is_a_warning_with_what_it_means_and_the_setting_to_change(fakes: Fakes) -> None:
    fakes.manager.facts_now = facts(calculator=Calculator.DEFAULT)
    found = fakes.findings()["resource calculator"]
    assert found.ok is None
    assert "ignores vcores" in found.detail
    assert "no more memory than the tasks could use" in found.detail
    assert f"set {CALCULATOR} to org.apache.hadoop.yarn.util.resource.DominantResourceCalculator" in found.advice


def test_a_calculator_that_does_not_show_is_not_judged(fakes: Fakes) -> None:
    fakes.manager.facts_now = facts(calculator=None)
    found = fakes.findings()["resource calculator"]
    assert found.ok is None
    assert "capacity-scheduler.xml" in found.advice


@pytest.mark.parametrize(
    ("name", "words"), [("Dominant", "memory and vcores"), ("Default", "ignores vcores"), ("Other", "unknown")]
)
def test_a_calculator_that_does_not_show_by_its_limits_may_be_among_the_settings(
    fakes: Fakes, name: str, words: str
) -> None:
    fakes.manager.facts_now = facts(calculator=None)
    fakes.manager_says = manager_page(**{CALCULATOR: f"org.apache.hadoop.yarn.util.resource.{name}ResourceCalculator"})
    assert words in fakes.findings()["resource calculator"].detail


@pytest.mark.parametrize(
    ("asynchronous", "nodes", "ok"),
    [(True, 1000, False), (False, 1000, True), (None, 1000, None), (True, 999, "not told")],
)
def test_asynchronous_scheduling_is_told_where_the_cluster_is_large(
    fakes: Fakes, asynchronous: bool | None, nodes: int, ok: bool | str | None
) -> None:
    setup = facts().setup
    assert setup is not None
    fakes.manager.facts_now = replace(facts(), setup=replace(setup, asynchronous=asynchronous))
    fakes.manager.reading_now = reading(entry(), *(entry(f"other-{number}:1") for number in range(nodes - 1)))
    found = fakes.findings()
    assert ("asynchronous scheduling" in found) is (ok != "not told")
    if ok != "not told":
        assert found["asynchronous scheduling"].ok is ok
        assert ok is True or "schedule-asynchronously.enable" in found["asynchronous scheduling"].advice


@pytest.mark.parametrize(("shown", "ok"), [({}, None), ({LAZY: "true"}, False), ({LAZY: "false"}, True)])
def test_lazy_preemption_is_on_off_or_unknown(fakes: Fakes, shown: dict[str, str], ok: bool | None) -> None:
    fakes.manager_says = manager_page(**shown)
    found = fakes.findings()["lazy preemption"]
    assert found.ok is ok
    assert ok is True or LAZY in found.advice
