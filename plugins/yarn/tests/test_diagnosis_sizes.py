"""What is said of sizes: against the minimum allocation, against this host, and against the rest of the cluster."""

from dataclasses import replace

import pytest
from plugins.yarn.tests.diagnosis_fakes import LARGEST, Fakes, node_page
from plugins.yarn.tests.yarn_fakes import CONFIGURED, ETL, NODE_ID, entry, facts, reading

from fallow_yarn.errors import RefusedError
from fallow_yarn.model.size import Size
from fallow_yarn.rm.applications import Request
from fallow_yarn.rm.nodes import State
from fallow_yarn.rm.readings import NodeReading

MEMORY, VCORES = "yarn.nodemanager.resource.memory-mb", "yarn.nodemanager.resource.cpu-vcores"
DETECT = "yarn.nodemanager.resource.detect-hardware-capabilities"


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


@pytest.mark.parametrize("size", [Size(512, 8), Size(8192, 0)])
def test_a_node_below_the_minimum_is_told_what_to_set(fakes: Fakes, size: Size) -> None:
    fakes.manager.facts_now = facts(minimum=Size(1024, 1))
    fakes.manager.reading_now = reading(entry(capability=size), LARGEST)
    found = fakes.findings()[f"size of {NODE_ID}"]
    assert found.ok is False
    assert "below the minimum allocation" in found.detail
    assert MEMORY in found.advice
    assert "1024 MB and 1 vcore:" in found.advice


def test_before_3_3_no_size_is_too_small(fakes: Fakes) -> None:
    fakes.manager.facts_now = facts("3.2.4")
    fakes.manager.reading_now = reading(entry(capability=Size(0, 0)), LARGEST)
    assert fakes.findings()[f"size of {NODE_ID}"].ok is True


@pytest.mark.parametrize(
    ("minimum", "vcore_milli", "ok"),
    [
        (Size(1024, 1), 1000, True),
        (Size(30_000, 1), 1000, False),
        (Size(1024, 8), 1000, False),
        (Size(1024, 8), 100, True),
    ],
)
def test_a_host_with_nothing_above_the_minimum_allocation_is_told(
    fakes: Fakes, minimum: Size, vcore_milli: int, ok: bool
) -> None:
    fakes.manager.facts_now = facts(minimum=minimum)
    found = fakes.findings(vcoreMilli=vcore_milli)["room on n1"]
    assert found.ok is (True if ok else None)
    assert ok or "nothing above the minimum allocation" in found.detail
    assert ok or "yarn.scheduler.minimum-allocation-mb" in found.advice


def test_the_smallest_sizes_of_several_node_managers_add_up(fakes: Fakes) -> None:
    fakes.manager.facts_now = facts(minimum=Size(1024, 4))
    assert fakes.findings()["room on n1"].ok is True
    fakes.manager.reading_now = reading(entry(), entry("worker-1:2"), LARGEST)
    found = fakes.findings()["room on n1"]
    assert found.ok is None
    assert "2 NodeManagers have at least 1024 MB and 4 vcores each" in found.detail


@pytest.mark.parametrize(
    ("settings", "ok", "words"),
    [
        ({}, True, "256 MB and 1 vcore"),
        ({MEMORY: "8192"}, True, "above the minimum allocation, 256 MB"),
        ({MEMORY: "28160"}, True, "above the minimum allocation"),
        ({MEMORY: "28161"}, False, "far above the 22528 MB and 8 vcores"),
        ({VCORES: "11"}, False, "far above"),
        ({MEMORY: "-1", VCORES: "-1", DETECT: "false"}, True, "8192 MB and 8 vcores"),
        ({MEMORY: "-1", VCORES: "-1", DETECT: "true"}, None, "detected"),
        ({MEMORY: "much"}, None, "not shown"),
    ],
)
def test_a_node_manager_configured_far_above_what_can_be_lent_is_told(
    fakes: Fakes, settings: dict[str, str], ok: bool | None, words: str
) -> None:
    fakes.node_says = node_page(**settings)
    found = fakes.findings()[f"configured size of {NODE_ID}"]
    assert found.ok is ok
    assert words in found.detail
    assert ok is not False or "such as the minimum allocation" in found.advice


def many(count: int, size: Size = CONFIGURED) -> list[NodeReading]:
    return [entry(f"other-{number}:1", capability=size, in_force=size) for number in range(count)]


def test_a_large_cluster_whose_nodes_are_of_equal_size_is_told(fakes: Fakes) -> None:
    fakes.manager.reading_now = reading(entry(), *many(999))
    found = fakes.findings()["largest node"]
    assert found.ok is False
    assert "1000 of 1000 nodes share the largest size" in found.detail
    assert "not lent larger than all others" in found.advice


def test_equal_in_vcores_alone_is_equal_enough(fakes: Fakes) -> None:
    fakes.manager.reading_now = reading(LARGEST, *many(999, Size(4096, 99)))
    assert fakes.findings()["largest node"].ok is False


def test_one_larger_node_that_is_not_lent_makes_a_large_cluster_cheap_to_change(fakes: Fakes) -> None:
    fakes.manager.reading_now = reading(entry(), LARGEST, *many(998))
    found = fakes.findings()["largest node"]
    assert (found.ok, found.advice) == (True, "")
    assert "big:1" in found.detail


@pytest.mark.parametrize(
    "others",
    [
        [],
        [entry("big:1", capability=Size(99_000, 1))],
        [entry("big:1", State.UNHEALTHY, capability=Size(99_000, 99), in_force=None, used=None)],
    ],
)
def test_a_largest_node_that_is_lent_may_refuse_applications(fakes: Fakes, others: list[NodeReading]) -> None:
    fakes.manager.reading_now = reading(entry(), *others)
    found = fakes.findings()["largest node"]
    assert found.ok is None
    assert "applications that request more fail" in found.detail


def test_what_applications_wait_for_is_told_with_the_largest_node(fakes: Fakes) -> None:
    fakes.manager.reading_now = reading(entry())
    assert "no request is pending now" in fakes.findings()["largest node"].detail
    requests = (Request(size=Size(4096, 1), containers=2), Request(size=Size(512, 3), containers=1))
    fakes.manager.applications_now = (replace(ETL, requests=requests),)
    assert "requests of up to 4096 MB and 3 vcores are pending now" in fakes.findings()["largest node"].detail
    fakes.manager.applications_failure = RefusedError("rm:8088: connection refused")
    assert "the pending requests are unknown" in fakes.findings()["largest node"].detail


def test_a_cluster_without_nodes_has_no_largest(fakes: Fakes) -> None:
    fakes.manager.reading_now = reading()
    assert "largest node" not in fakes.findings()
