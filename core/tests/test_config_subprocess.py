"""An agent's files, read in a process of its own."""

from pathlib import Path

import pytest
from core.tests.conftest import Install

from fallow_core.config.load import load
from fallow_core.errors import ConfigError
from fallow_core.plugins import discovery
from fallow_core.runtime import config_subprocess
from fallow_core.runtime.agent_config import load_or_last
from fallow_core.state.last_config import keep

CORE = """\
apiVersion: fallow/v1
kind: Fallow
stateDir: state
metadata: {name: house}
node: {name: n1, labels: {pool: night}, addresses: [192.0.2.1]}
capacity:
  schedule: {timeZone: Europe/Berlin, ramp: 15m, windows: [{from: "22:00", to: "06:00", cpu: {watermark: 80%}}]}
pools: [{name: night, nodeSelector: {pool: night}, capacity: {memory: {reserved: 5%}}}]
"""
CLUSTER = """\
apiVersion: fallow/v1
kind: Cluster
metadata: {name: etl}
plugin: alpha
spec: {a: 1}
"""
PLUGIN = """
    from fallow_hookspecs import Plugin

    print("imported")

    class Spec:
        def __init__(self, said):
            self.said = said

        def __eq__(self, other):
            return self.said == other.said

        @classmethod
        def model_validate(cls, obj):
            return cls({said})

        @classmethod
        def model_json_schema(cls):
            return {{"type": "object"}}

    class OfAgent(Spec):
        pass

    PLUGIN = Plugin(
        name="alpha", api_levels=(0, 0), config_model=lambda: Spec, build=print, agent_model=lambda: OfAgent
    )
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "clusters.d").mkdir()
    (tmp_path / "fallow.yaml").write_text(CORE)
    return tmp_path


@pytest.fixture
def cluster(folder: Path, install: Install, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(folder / "site"))
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", PLUGIN.format(said="dict(obj)"))
    file = folder / "clusters.d" / "etl.yaml"
    file.write_text(CLUSTER)
    return file


def test_what_is_read_aside_is_what_would_be_read_here(folder: Path, cluster: Path) -> None:
    found = config_subprocess.Reading(folder).result()
    assert found == load_or_last(folder, discovery.load)
    assert found.seen is not None
    assert found.clusters[0].plugin.plugin is discovery.load("alpha").plugin


def test_a_spec_is_that_of_the_role_of_an_agent_whatever_else_the_file_is_for(folder: Path, cluster: Path) -> None:
    assert type(config_subprocess.Reading(folder).result().clusters[0].config.spec).__name__ == "OfAgent"
    assert type(load(folder, discovery.load).clusters[0].config.spec).__name__ == "Spec"
    cluster.write_text(CLUSTER + "roles: [agent]\n")
    assert type(load(folder, discovery.load).clusters[0].config.spec).__name__ == "OfAgent"


def test_a_wrong_core_file_is_the_same_error(folder: Path) -> None:
    (folder / "fallow.yaml").write_text(CORE + "sampleInterval: soon\n")
    with pytest.raises(ConfigError, match="sampleInterval") as aside_error:
        config_subprocess.Reading(folder).result()
    with pytest.raises(ConfigError) as error:
        load_or_last(folder, discovery.load)
    assert str(aside_error.value) == str(error.value)


def test_files_that_have_changed_are_read_again_and_mistakes_leave_what_is_in_force(
    folder: Path, cluster: Path
) -> None:
    before = config_subprocess.Reading(folder).result()
    cluster.write_text(CLUSTER.replace("etl", "ops"))
    assert [each.name for each in config_subprocess.read_again(before).clusters] == ["alpha/ops"]
    (folder / "fallow.yaml").write_text(CORE + "sampleInterval: soon\n")
    again = config_subprocess.read_again(before)
    assert again.policies == before.policies
    assert "sampleInterval" in str(again.problems[0])


def test_the_last_right_files_are_read_aside_too(folder: Path, cluster: Path) -> None:
    before = config_subprocess.Reading(folder).result()
    assert keep(before.state_dir, before.file, before.clusters_dir, [each.file for each in before.clusters]) == ""
    (folder / "fallow.yaml").write_text(CORE + "sampleInterval: soon\n")
    assert config_subprocess.Reading(folder).result().policies == before.policies


def test_a_spec_that_cannot_be_handed_over_is_read_here(
    folder: Path, install: Install, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(folder / "site"))
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", PLUGIN.format(said="lambda: obj"))
    (folder / "clusters.d" / "etl.yaml").write_text(CLUSTER)
    assert config_subprocess.Reading(folder).result().clusters[0].config.spec.said() == {"a": 1}
    assert "files_read_here" in caplog.text


def test_without_a_process_they_are_read_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert config_subprocess.Reading(folder).result().name == "house"
