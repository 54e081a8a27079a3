import re
from pathlib import Path
from typing import Any, get_origin

import pytest

from fallow_core.cli.main import main
from fallow_core.config.capacity_models import NodeModel, PoolModel, WindowModel
from fallow_core.config.document import read
from fallow_core.config.models import ClusterFile, CoreFile
from fallow_core.config.template import CORE_TEMPLATE, cluster_template
from fallow_core.model.take_back_policy import LEAST_NOTICE_SECONDS
from fallow_hookspecs import Plugin

SOURCE = '''
    from pydantic import BaseModel
    from fallow_hookspecs import Plugin

    class Spec(BaseModel, extra="forbid"):
        host: str

    PLUGIN = Plugin(
        name="alpha_k8s",
        api_levels=(0, 0),
        config_model=lambda: Spec,
        build=print,
        config_template="""
            # Where it is.
            host: rm.example.com
        """,
    )
'''
PLUGIN = Plugin(name="alpha", api_levels=(0, 0), config_model=dict, build=print)  # type: ignore[arg-type]


def keys(data: dict[str, Any], prefix: str = "") -> set[str]:
    return {f"{prefix}{key}" for key in data}.union(
        *(keys(value, f"{prefix}{key}.") for key, value in data.items() if isinstance(value, dict))
    )


def all_set(template: str, file: Path) -> dict[str, Any]:
    """What the file holds with the `#` of every setting taken away."""
    file.write_text(re.sub(r"^#(?! \S)", "", template, flags=re.MULTILINE))
    document, problems = read(file)
    assert problems == []
    assert document is not None
    return document.data


def model_keys(model: Any, prefix: str = "") -> set[str]:
    """The keys of a model and of those in it, without those in lists."""
    found = set()
    for field in model.model_fields.values():
        found.add(f"{prefix}{field.alias}")
        nested = [
            kind
            for kind in (field.annotation, *getattr(field.annotation, "__args__", ()))
            if hasattr(kind, "model_fields") and get_origin(field.annotation) is not list
        ]
        for kind in nested:
            found |= model_keys(kind, f"{prefix}{field.alias}.")
    return found


def test_the_core_template_has_every_key(tmp_path: Path) -> None:
    assert keys(all_set(CORE_TEMPLATE, tmp_path / "x.yaml")) - {"node.labels.pool"} == model_keys(CoreFile)


def test_the_core_template_has_every_key_of_what_is_a_list(tmp_path: Path) -> None:
    shown = all_set(CORE_TEMPLATE, tmp_path / "x.yaml")
    assert shown["capacity"]["schedule"]["windows"][0].keys() == {
        field.alias for field in WindowModel.model_fields.values()
    }
    assert shown["pools"][0].keys() == {field.alias for field in PoolModel.model_fields.values()}
    assert shown["nodes"][0].keys() == {field.alias for field in NodeModel.model_fields.values()}


def test_the_core_template_shows_the_defaults(tmp_path: Path) -> None:
    without_default: Any = dict.fromkeys(["metadata", "control_group", "node", "pools", "nodes"], True)
    without_default["capacity"] = {"schedule"}
    shown = CoreFile.model_validate(all_set(CORE_TEMPLATE, tmp_path / "x.yaml"))
    default = CoreFile.model_validate({"apiVersion": "fallow/v1", "kind": "Fallow"})
    assert shown.model_dump(exclude=without_default) == default.model_dump(exclude=without_default)


def test_the_core_template_says_how_short_a_notice_may_be() -> None:
    assert f"\n# before they are terminated, while the node goes on draining: {LEAST_NOTICE_SECONDS}s" in CORE_TEMPLATE


def test_the_cluster_template_has_every_key(tmp_path: Path) -> None:
    data = all_set(cluster_template(PLUGIN), tmp_path / "x.yaml")
    assert keys(data) - {"nodeSelector.pool"} == model_keys(ClusterFile)
    assert data["spec"] is None


@pytest.fixture
def plugin(install: Any) -> None:
    install("fallow-alpha", "alpha_k8s = fake_alpha:PLUGIN", SOURCE)


@pytest.mark.usefixtures("plugin")
def test_init_writes_all_that_a_start_needs_and_it_passes_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "etc" / "fallow"
    assert main(["config", "init", "alpha_k8s", "--output", str(directory)]) == 0
    assert capsys.readouterr().out == (
        f"wrote {directory}/fallow.yaml\nwrote {directory}/clusters.d/alpha_k8s.yaml\n"
        f"next: edit {directory}/clusters.d/alpha_k8s.yaml, then: fallow config check {directory}\n"
    )
    assert main(["config", "check", str(directory)]) == 0
    assert capsys.readouterr().out.endswith("clusters: alpha_k8s/alpha-k8s\n")


@pytest.mark.usefixtures("plugin")
def test_init_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "clusters.d" / "alpha_k8s.yaml"
    file.parent.mkdir()
    file.write_text("mine")
    assert main(["config", "init", "alpha_k8s", "-o", str(tmp_path)]) == 2
    assert "exists and was not changed" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert not (tmp_path / "fallow.yaml").exists()


@pytest.mark.usefixtures("plugin")
def test_init_adds_a_cluster_to_a_core_file_that_is_there(tmp_path: Path) -> None:
    core = "apiVersion: fallow/v1\nkind: Fallow\nclustersDir: mine\n"
    (tmp_path / "fallow.yaml").write_text(core)
    assert main(["config", "init", "alpha_k8s", "-o", str(tmp_path)]) == 0
    assert (tmp_path / "fallow.yaml").read_text() == core
    assert (tmp_path / "mine" / "alpha_k8s.yaml").exists()


@pytest.mark.usefixtures("plugin")
def test_init_without_a_directory_shows_the_cluster_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "init", "alpha_k8s"]) == 0
    assert capsys.readouterr().out.endswith("spec:\n  # Where it is.\n  host: rm.example.com\n")


@pytest.mark.usefixtures("plugin")
def test_init_where_nothing_can_be_written_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["config", "init", "alpha_k8s", "-o", str(tmp_path / "file")]) == 2
    assert "cannot be written: " in capsys.readouterr().err
