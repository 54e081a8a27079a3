"""The suite finds each wrong plugin: for every clause one that breaks it, and the failure says which clause."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance.conftest import SAID
from tests.conformance.wrong_plugins import WRONG

from fallow_hookspecs.testing import CLAUSES

ROOT = Path(__file__).parents[2]

# Each class tries one wrong plugin, and of the suite the tests of the clause that it breaks.
TRIED = """\
import pytest
from tests.conformance.memory_framework import MemoryFramework
from tests.conformance.wrong_plugins import WRONG
from fallow_hookspecs.testing import AgentSuite, ControllerSuite

SUITES = {"Agent": AgentSuite, "Controller": ControllerSuite}


class Impatient(MemoryFramework):
    timeout_seconds = 0.4
    patience_seconds = 0.3


def made(clause, suite, _, plugin):
    def fallow_framework(self):
        return Impatient(plugin())

    name = "Test" + clause.title().replace(".", "").replace("-", "")
    body = {"fallow_framework": pytest.fixture(fallow_framework), "breaks": clause}
    return name, type(name, (SUITES[suite],), body)


globals().update(made(clause, *wrong) for clause, wrong in WRONG.items())
"""
CHOSEN = """\
def pytest_collection_modifyitems(items):
    items[:] = [each for each in items if each.get_closest_marker("fallow_clause").args[0].id == each.cls.breaks]
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, list[dict[str, str]]]:
    """What the suite said, by clause; it is printed at the end of the run, too."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "test_tried.py").write_text(TRIED)
    (folder / "conftest.py").write_text(CHOSEN)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--fallow-report", "report.json", "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    said: dict[str, list[dict[str, str]]] = {}
    for entry in json.loads((folder / "report.json").read_text()):
        said.setdefault(entry["clause"], []).append(entry)
    pytestconfig.stash[SAID] = [
        f"{clause:22} {wrong.name:22} {entry['outcome']}: {entry['message'].splitlines()[0][:160]}"
        for clause, wrong in WRONG.items()
        for entry in said[clause]
        if entry["outcome"] == "failed"
    ]
    return said


def test_each_clause_has_a_wrong_plugin() -> None:
    assert sorted(WRONG) == sorted(CLAUSES)


@pytest.mark.parametrize("clause", CLAUSES)
def test_the_suite_finds_the_plugin_that_breaks_it(clause: str, found: dict[str, list[dict[str, str]]]) -> None:
    failed = [entry for entry in found[clause] if entry["outcome"] == "failed"]
    assert failed, f"{found[clause]}"
    assert all(str(CLAUSES[clause]) in entry["message"] for entry in failed)
