import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_framework import Framework, size
from core.tests.fake_standalone import config, serving, standalone, until

from fallow_core.api.control_socket import ask
from fallow_core.api.encoding import from_json
from fallow_core.api.explain import Explanation
from fallow_core.cli.render_explain import explanation_lines
from fallow_core.config.problems import Problem
from fallow_core.config.settings import Config, with_clusters
from fallow_core.diagnostics import clusters, doctor, host, lending
from fallow_core.diagnostics.doctor import findings
from fallow_core.model.host_limit import HostLimit
from fallow_core.model.node_policies import NodePolicies, Pool
from fallow_core.model.policy import SwitchState
from fallow_core.state.run_marker import RunMarker
from fallow_hookspecs import Broken, Finding, Needs, Node

NODE = Node(name="n1")


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("f")


def found(settings: Config) -> dict[tuple[str, str], Finding]:
    """All findings by what they are about and their subject; what is wrong has advice."""
    result = {(about, finding.subject): finding for about, finding in findings(settings, NODE)}
    assert all(finding.advice for finding in result.values() if finding.ok is False)
    return result


@pytest.fixture(autouse=True)
def short_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "MEASURE_SECONDS", 0.05)


class Diagnosed(Framework):
    """An instance whose diagnosis is what a test says."""

    def __init__(self, diagnose: Callable[[], Any]) -> None:
        super().__init__(lambda: 0.0, a1=size(1))
        self._diagnose = diagnose

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        assert all(node.lendable is not None and node.lendable.memory_bytes > 0 for node in nodes)
        nodes = tuple(replace(node, lendable=None) for node in nodes)
        assert (nodes, timeout_seconds) == ((NODE,), clusters.DIAGNOSE_SECONDS)
        return tuple(self._diagnose())


def test_each_cluster_says_what_it_finds_and_is_closed(folder: Path) -> None:
    instance = Diagnosed(lambda: [Finding(subject="admin rights", ok=False, detail="no", advice="ask for them")])
    result = found(config(folder, {"etl": instance}))
    assert result["alpha/etl", "admin rights"].advice == "ask for them"
    assert instance.closed.is_set()


def fail(_: object) -> Any:
    raise FileNotFoundError("/etc/etl.token")


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (fail, "FileNotFoundError: /etc/etl.token"),
        (lambda _: {}, "build returned a dict without diagnose and close"),
        (lambda _: Diagnosed(lambda: [1 / 0]), "ZeroDivisionError: division by zero"),
        (lambda _: Diagnosed(lambda: ["fine"]), "diagnose gave a wrong answer: the answer[0] is 'fine', not a Finding"),
    ],
)
def test_a_plugin_that_fails_is_a_finding_and_hides_no_other(
    folder: Path, build: Callable[[object], Any], text: str
) -> None:
    good = Diagnosed(lambda: [Finding(subject="reached", ok=True, detail="rm1")])
    result = found(config(folder, {"bad": build, "good": good}))
    assert result["alpha/bad", "plugin"].ok is False
    assert text in result["alpha/bad", "plugin"].detail
    assert result["alpha/good", "reached"].ok is True


def test_a_plugin_that_hangs_is_a_finding_and_delays_no_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "BUILD_SECONDS", 1.0)
    monkeypatch.setattr(clusters, "DIAGNOSE_SECONDS", 1.0)
    monkeypatch.setattr(clusters, "CLOSE_SECONDS", 0.1)
    hangs = threading.Event()
    good = Diagnosed(lambda: [Finding(subject="reached", ok=True, detail="rm1")])
    slow = Diagnosed(lambda: [hangs.wait(20)])
    result = found(config(folder, {"a": lambda _: hangs.wait(20), "b": slow, "c": good}))
    hangs.set()
    assert result["alpha/a", "plugin"].detail == "no answer within 1 s"
    assert result["alpha/b", "plugin"].detail == "no answer within 1 s"
    assert result["alpha/c", "reached"].ok is True


def test_a_broken_instance_is_still_diagnosed(folder: Path) -> None:
    instance = Diagnosed(lambda: [Finding(subject="reached", ok=False, detail="no such user", advice="add it")])
    instance.reports_fail = Broken("no such user")
    assert found(config(folder, {"etl": instance}))["alpha/etl", "reached"].detail == "no such user"


def test_mistakes_in_cluster_files_are_findings(folder: Path) -> None:
    problem = Problem(file=folder / "clusters.d" / "ops.yaml", line=3, key=("spec", "usr"), message="unknown key")
    finding = found(config(folder, {}, problems=(problem,)))["config", "cluster file"]
    assert (finding.ok, finding.detail) == (False, str(problem))


def test_no_cluster_at_all_is_a_finding_with_what_to_write(folder: Path) -> None:
    finding = found(config(folder, {}))["config", "clusters"]
    assert finding.ok is False
    assert finding.advice == f"write one with: fallow config init yarn > {folder}/clusters.d/NAME.yaml"


def test_a_state_directory_is_tried_out(folder: Path) -> None:
    finding = found(config(folder, {}))["host", "state directory"]
    assert (finding.ok, finding.detail) == (True, f"{folder}/state can be written")
    assert list((folder / "state").iterdir()) == []


def test_a_state_directory_that_cannot_be_written_is_wrong(folder: Path) -> None:
    (folder / "state").write_text("in the way")
    finding = found(config(folder, {}))["host", "state directory"]
    assert finding.ok is False
    assert "set stateDir to a directory that Fallow's user can write" in finding.advice


def test_a_run_that_did_not_stop_in_order_is_told_while_none_runs(folder: Path) -> None:
    settings = config(folder, {})
    fallow = standalone(settings)
    RunMarker(settings.state_dir).begin(1_700_000_000.0)
    with serving(fallow):
        assert ("host", "last run") not in found(settings)
    fallow.close()
    finding = found(settings)["host", "last run"]
    assert finding.ok is None
    assert f"process {os.getpid()}, begun 2023-11-1" in finding.detail


def test_a_running_fallow_is_found_and_one_that_is_not_is_no_mistake(folder: Path) -> None:
    settings = config(folder, {})
    finding = found(settings)["host", "running Fallow"]
    assert (finding.ok, finding.detail) == (None, f"no Fallow is running: nobody serves {settings.control_socket}")
    assert "fallow run" in finding.advice
    fallow = standalone(settings)
    with serving(fallow):
        finding = found(settings)["host", "running Fallow"]
    fallow.close()
    assert (finding.ok, finding.detail) == (True, "publishing mode enforce")


def test_a_node_that_matches_two_pools_is_told_which_one_counts(folder: Path) -> None:
    pools = tuple(Pool(name=name, node_selector={}) for name in ("a", "b"))
    settings = replace(config(folder, {}), policies=NodePolicies(pools=pools))
    assert found(settings)["config", "pools"].detail == (
        "this node matches a, b; a counts, as the first in the core file"
    )


def test_a_restored_cluster_is_told_with_what_ends_it(folder: Path) -> None:
    settings = config(folder, {"etl": Diagnosed(list)})
    fallow = standalone(settings)
    until(fallow, lambda: fallow.clusters)
    fallow.controller.restore("ada")
    with serving(fallow):
        finding = found(settings)["alpha/etl", "switch"]
        fallow.controller.set_switch("alpha/etl", SwitchState.LEND, "ada", "")
        assert ("alpha/etl", "switch") not in found(settings)
    fallow.close()
    assert finding.ok is None
    assert "its tasks are neither throttled nor terminated" in finding.detail
    assert finding.advice == "to end this: fallow switch lend alpha/etl"


@pytest.mark.parametrize(
    ("capabilities", "ok"),
    [
        ("000001ffffffffff", True),
        ("0000000000080004", True),
        ("0000000000080000", None),
        ("0000000000000004", None),
        ("0000000000000000", None),
        ("ffffffffff77ffff", None),
    ],
)
def test_the_right_to_look_into_processes_of_others_is_told(tmp_path: Path, capabilities: str, ok: bool | None) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text(f"Name:\tfallow\nCapPrm:\t{'f' * 16}\nCapEff:\t{capabilities}\n")
    finding = host.processes_of_others(tmp_path)
    assert finding.ok is ok
    assert bool(finding.advice) is (ok is None)


def test_the_capabilities_that_are_missing_are_named_and_all_that_are_needed_are_advised(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text("CapEff:\t0000000000080000\n")
    finding = host.processes_of_others(tmp_path)
    assert finding.detail.startswith("cannot be inspected without CAP_DAC_READ_SEARCH:")
    assert finding.advice.endswith("CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE")


def test_a_cluster_that_does_not_select_this_host_is_named_and_not_built(folder: Path) -> None:
    settings = config(folder, {"etl": fail})
    settings = with_clusters(settings, [replace(settings.clusters[0], node_selector={"pool": "batch"})])
    result = found(settings)
    why = "its nodeSelector pool=batch does not match this host's labels (none)"
    assert result["alpha/etl", "nodeSelector"].detail == f"not used on this host: {why}"
    assert "set node.labels" in result["alpha/etl", "nodeSelector"].advice
    assert {("alpha/etl", "plugin"), ("config", "clusters")}.isdisjoint(result)


def test_what_the_plugin_needs_is_checked_for_each_cluster(folder: Path) -> None:
    settings = config(folder, {"etl": Diagnosed(list)})
    (cluster,) = settings.clusters
    plugin = replace(cluster.plugin.plugin, needs=Needs(files=(f"{folder}/token, of the framework",)))
    settings = replace(settings, clusters=(replace(cluster, plugin=replace(cluster.plugin, plugin=plugin)),))
    finding = found(settings)["alpha/etl", "needs file"]
    assert (finding.ok, finding.detail) == (False, f"{folder}/token, of the framework: missing")


def test_what_a_running_fallow_knows_to_be_batch_can_be_lent(folder: Path) -> None:
    settings = config(folder, {})
    status = {"nodes": [{"node": "n1", "cpu": {"batch_used": 4000}, "memory": {"batch_used": None}}]}
    assert doctor._batch_used(status, NODE.name) == {"cpu": 4000, "memory": 0}
    assert doctor._batch_used({}, NODE.name) == {}
    assert ("host", "memory to lend") in found(settings)


def test_a_daemon_that_can_have_less_than_the_host_is_told_with_the_file_that_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(folder, {"etl": Framework(lambda: 0.0, a1=size(1))})
    fallow = standalone(settings)
    limits = (HostLimit(resource="memory", amount=2 << 20, where="/sys/fs/cgroup/nm/memory.max", daemons=2),)
    monkeypatch.setattr(fallow, "_limits_of_daemons", lambda _now: {("alpha/etl", "a1"): limits})
    until(fallow, lambda: any(ledger.memory.rows for ledger in fallow.controller.ledgers.values()))
    with serving(fallow):
        told = [each for about, each in findings(settings, fallow.node) if about == "alpha/etl"]
        explained = "\n".join(
            explanation_lines(from_json(Explanation, ask(settings.control_socket, {"request": "explain"})))
        )
    fallow.close()
    found = next(each for each in told if each.subject == "limit of this host")
    assert found.detail == "/sys/fs/cgroup/nm/memory.max allows a1 no more than 2 MiB, shared by 2 daemons"
    assert "/sys/fs/cgroup/nm/memory.max allows its daemon no more" in " ".join(explained.split())
