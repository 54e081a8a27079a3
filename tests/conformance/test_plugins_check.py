"""`fallow plugins check`: our plugin passes, a wrong one is told what it breaks, and what is missing is said."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.settings import Settings

ROOT = Path(__file__).parents[2]

SUITE = """\
import pytest
from tests.conformance.memory_framework import MemoryFramework, MemoryInstance, plugin_of
from fallow_hookspecs import Placement, hookimpl
from fallow_hookspecs.testing import Framework
from fallow_hookspecs.testing.placement_suite import PlacementSuite


class Silent(MemoryInstance):
    @hookimpl
    def set_cgroup_parent(self, node, parent):
        return Placement(new_tasks_follow=False)


PLUGIN = plugin_of(Silent)


class TestPlacement(PlacementSuite):
    @pytest.fixture
    def fallow_framework(self) -> Framework:
        return MemoryFramework(PLUGIN)
"""


def check(*arguments: str, path: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it; what lies at `path` is installed, too."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(each) for each in (path, ROOT) if each), **more}
    command = [str(Path(sys.executable).with_name("fallow")), "plugins", "check", *arguments]
    return subprocess.run(command, env=environment, cwd=path, capture_output=True, text=True, check=False)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A distribution with a plugin `memory` that breaks clauses, and its suite."""
    (tmp_path / "memory_plugin.py").write_text(SUITE)
    metadata = tmp_path / "memory_plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: memory-plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[fallow.plugins]\nmemory = memory_plugin:PLUGIN\nsuiteless = memory_plugin:PLUGIN\n"
        "[fallow.conformance]\nmemory = memory_plugin\n"
    )
    return tmp_path


@pytest.mark.timeout(300)
@pytest.mark.parametrize("more", [(), ("--copilot",)], ids=["in process", "through a copilot"])
def test_the_yarn_plugin_passes_on_the_embedded_yarn(tmp_path: Path, more: tuple[str, ...]) -> None:
    run = check("yarn", "--json", "--junit", str(tmp_path / "junit.xml"), *more)
    assert run.returncode == 0, run.stdout + run.stderr
    outcomes = {entry["clause"]: entry["outcome"] for entry in json.loads(run.stdout)["clauses"]}
    not_tried = {clause for clause, outcome in outcomes.items() if outcome != "passed"}
    unable = {"offer.no-take-back", "report.no-news", "kill.why", "kill.reason"}
    assert not_tried == (unable | {"plugin.close"} if more else unable)
    cases = Xml.parse(tmp_path / "junit.xml").getroot().iter("testcase")
    assert {each.get("value") for case in cases for each in case.iter("property")} == outcomes.keys()


def test_a_live_cluster_is_only_asked(tmp_path: Path) -> None:
    settings = Settings(heartbeat_seconds=0.05, starting_seconds=0.0)
    with EmbeddedYarn(tmp_path / "yarn", settings) as yarn:
        app = yarn.submit(containers=2, memory_mb=256, vcores=1, command="exec sleep 600")
        while len(app.running) < 2:
            time.sleep(0.01)
        rm, running = yarn.rm, app.running
        addresses = {"host": "127.0.0.1", "client": rm.client_address, "admin": rm.admin_address, "web": rm.web_address}
        cluster = {"apiVersion": "fallow/v1", "kind": "Cluster", "metadata": {"name": "etl"}, "plugin": "yarn"}
        file = tmp_path / "etl.yaml"
        file.write_text(json.dumps({**cluster, "spec": {"resourceManager": addresses}}))
        run = check("yarn", "--config", str(file), "--json")
        assert (app.running, app.ended) == (running, ())
        assert rm.scheduler is not None
        assert not rm.scheduler.taken, "a size was sent"
    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads(run.stdout)["clauses"]
    passed = {entry["clause"] for entry in found if entry["outcome"] == "passed"}
    assert {"call.shape", "report.rows", "report.units", "report.age", "tasks.values", "tasks.measurable"} <= passed
    assert {note for entry in found for note in entry["notes"] if entry["clause"] == "report.allocated"} == {
        "a live cluster is only asked"
    }


def test_a_wrong_cluster_file_is_shown_as_config_check_does(tmp_path: Path) -> None:
    file = tmp_path / "etl.yaml"
    file.write_text("apiVersion: fallow/v1\nkind: Cluster\nmetadata: {name: etl}\nplugin: yarn\nwight: 1\nspec: {}\n")
    run = check("yarn", "--config", str(file))
    assert run.returncode == 2
    assert f"{file}:5: wight: unknown key; did you mean 'weight'?" in run.stderr


def test_a_wrong_plugin_is_told_which_clause_it_breaks_and_how(installed: Path) -> None:
    run = check("memory", path=installed)
    assert run.returncode == 1
    assert "plugin 'memory' of memory-plugin 1.0" in run.stdout
    failed = [line.split()[1] for line in run.stdout.splitlines() if line.startswith("  FAILED")]
    assert failed == ["placement.each", "placement.why"]
    assert "test_each_task_has_its_place: AssertionError:" in run.stdout
    assert run.stdout.splitlines()[-1] == "5 clauses: 3 passed, 0 not tried, 2 failed"


def test_a_plugin_without_a_suite_is_told_how_to_name_one(installed: Path) -> None:
    run = check("yarm")
    assert "did you mean 'yarn'?" in run.stderr
    (installed / "memory_plugin.py").write_text(
        SUITE.replace("plugin_of(Silent)", "plugin_of(Silent, name='suiteless')")
    )
    run = check("suiteless", path=installed)
    assert run.returncode == 1
    assert "fallow.conformance" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_suite_that_cannot_be_imported_is_shown(installed: Path) -> None:
    entries = installed / "memory_plugin-1.0.dist-info" / "entry_points.txt"
    entries.write_text(entries.read_text().replace("= memory_plugin\n", "= memory_plugin_suite\n"))
    run = check("memory", path=installed)
    assert run.returncode == 1
    assert "memory_plugin_suite" in run.stderr


def test_without_pytest_the_extra_is_named(installed: Path) -> None:
    (installed / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'pytest' else find(name, package)\n"
    )
    run = check("memory", path=installed)
    assert run.returncode == 1
    assert run.stderr.strip() == "the suite needs pytest: pip install 'fallow-hookspecs[testing]'"
