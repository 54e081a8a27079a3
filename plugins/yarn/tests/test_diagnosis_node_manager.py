"""What is said of a NodeManager's own settings."""

import pytest
from plugins.yarn.tests.diagnosis_fakes import EXECUTORS, Fakes, node_page
from plugins.yarn.tests.yarn_fakes import NODE_ID, facts

from fallow_hookspecs import Finding
from fallow_yarn.diagnosis.probes import Page

DISK = "yarn.nodemanager.disk-health-checker"
LIMIT = f"{DISK}.max-disk-utilization-per-disk-percentage"
DELAY = "yarn.nodemanager.sleep-delay-before-sigkill.ms"
LCE = {"yarn.nodemanager.container-executor.class": f"{EXECUTORS}LinuxContainerExecutor"}
HIERARCHY = "yarn.nodemanager.linux-container-executor.cgroups.hierarchy"
CGROUPS = LCE | {"yarn.nodemanager.resource.cpu.enabled": "true", HIERARCHY: "/hadoop-yarn"}
HANDLER = "yarn.nodemanager.linux-container-executor.resources-handler.class"


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


def finding(fakes: Fakes, subject: str, **settings: str) -> Finding:
    fakes.node_says = node_page(**settings)
    return fakes.findings()[f"{subject} of {NODE_ID}"]


@pytest.mark.parametrize(
    ("manager", "version", "ok", "detail"),
    [
        ("3.5.0", "3.5.0", True, "3.5.0"),
        ("3.5.0", "3.3.6", True, "3.3.6, the ResourceManager has 3.5.0"),
        (
            "3.2.4",
            "3.2.4",
            True,
            "3.2.4: before 3.3 it does not receive its size, and registers with the configured one",
        ),
        ("3.5.0", "odd", None, "'odd' is not a known release"),
        ("3.5.0", "", None, "not known: it does not report it"),
    ],
)
def test_its_release_is_told_with_what_follows(
    fakes: Fakes, manager: str, version: str, ok: bool | None, detail: str
) -> None:
    fakes.manager.facts_now = facts(manager)
    fakes.node_says = node_page(version)
    found = fakes.findings()[f"release of {NODE_ID}"]
    assert (found.ok, found.detail) == (ok, detail)


def test_settings_that_cannot_be_read_say_why_and_what_is_not_known(fakes: Fakes) -> None:
    fakes.node_says = Page(problem="worker-1:8042: no connection")
    found = fakes.findings()[f"settings of {NODE_ID}"]
    assert found.ok is None
    assert "disk limits" in found.detail
    assert found.detail.endswith("worker-1:8042: no connection")


@pytest.mark.parametrize(("spec", "ok"), [({}, None), ({"nodeManagers": [NODE_ID]}, False)])
def test_a_port_that_changes_with_each_start_is_told_and_wrong_where_the_spec_has_the_id(
    fakes: Fakes, spec: dict[str, object], ok: bool | None
) -> None:
    fakes.node_says = node_page(**{"yarn.nodemanager.address": "${yarn.nodemanager.hostname}:0"})
    found = fakes.findings(**spec)[f"port of {NODE_ID}"]
    assert found.ok is ok
    assert "is worker-1:0: each start makes a new node" in found.detail
    assert ("spec.nodeManagers" in found.detail) is bool(spec)
    assert "fixed port" in found.advice


@pytest.mark.parametrize(
    ("used", "settings", "ok", "words"),
    [
        (85.0, {}, True, "the fullest is 85 % full, the limit is 90 %"),
        (86.0, {}, False, "/data/local is 86 % full, close to the limit of 90 %"),
        (86.0, {"yarn.nodemanager.local-dirs": "[SSD]file:/data/local, hdfs:/x"}, False, "/data/local is 86 % full"),
        (91.0, {}, False, "above the limit of 90 %"),
        (91.0, {LIMIT: "100"}, True, "the limit is 100 %"),
        (99.0, {f"{DISK}.enable": "false"}, True, "not checked"),
        (None, {}, None, "how full they are is not known: /data/local, /data/logs"),
        (10.0, {LIMIT: ""}, None, "is not shown"),
        (10.0, {"yarn.nodemanager.local-dirs": "${unknown}/x", "yarn.nodemanager.log-dirs": ""}, None, "its folders"),
    ],
)
def test_disks_close_to_the_limit_of_the_health_check_are_told(
    fakes: Fakes, used: float | None, settings: dict[str, str], ok: bool | None, words: str
) -> None:
    fakes.disk = used
    found = finding(fakes, "disks", **settings)
    assert found.ok is ok
    assert words in found.detail
    assert ok is not False or LIMIT in found.advice


@pytest.mark.parametrize(("delay", "ok"), [("250", None), ("29999", None), ("30000", True)])
def test_a_delay_before_sigkill_that_is_shorter_than_the_grace_is_told(
    fakes: Fakes, delay: str, ok: bool | None
) -> None:
    found = finding(fakes, "delay before SIGKILL", **{DELAY: delay})
    assert found.ok is ok
    assert found.detail.startswith(f"{delay} ms")
    assert ok or DELAY in found.advice


@pytest.mark.parametrize(
    ("settings", "cgroups", "ok", "words"),
    [
        ({}, (), True, "DefaultContainerExecutor: it makes no cgroups"),
        (LCE, (), True, "LinuxContainerExecutor, without cgroups"),
        (CGROUPS, ("/hadoop-yarn",), True, "below /hadoop-yarn"),
        (CGROUPS, (), False, "which this host does not have"),
        (CGROUPS | {HIERARCHY: "${no}"}, (), None, f"{HIERARCHY} is not shown"),
        (LCE | {HANDLER: "x.CgroupsLCEResourcesHandler", HIERARCHY: "/y"}, ("/y",), True, "below /y"),
        ({next(iter(LCE)): "org.example.MyExecutor"}, (), None, "MyExecutor: unknown"),
    ],
)
def test_the_executor_and_its_cgroups_are_told(
    fakes: Fakes, settings: dict[str, str], cgroups: tuple[str, ...], ok: bool | None, words: str
) -> None:
    fakes.cgroups = cgroups
    found = finding(fakes, "executor", **settings)
    assert found.ok is ok
    assert words in found.detail
    assert ok is not False or HIERARCHY in found.advice
