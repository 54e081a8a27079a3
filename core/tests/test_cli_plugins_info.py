import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from fallow_core.cli import main as cli

PLUGIN = """
    from fallow_hookspecs import Plugin, Setting

    class Model:
        @classmethod
        def model_validate(cls, spec):
            return spec

    def settings(cluster):
        if "fail" in cluster.spec:
            raise ValueError(cluster.spec["fail"])
        if "wrong" in cluster.spec:
            return ["text"]
        return [
            Setting(name="address", value=cluster.spec["host"] + ":80", source="spec.host, the default port"),
            Setting(name="pace", value="5 s", source="default"),
        ]

    PLUGIN = Plugin(name="alpha", api_levels=(0, 0), config_model=lambda: Model, build=print, settings=settings)
"""


@pytest.fixture
def config(install: Any, tmp_path: Path) -> Path:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", PLUGIN)
    (tmp_path / "fallow.yaml").write_text("apiVersion: fallow/v1\nkind: Fallow\n")
    (tmp_path / "clusters.d").mkdir()
    cluster(tmp_path, "one", "host: here")
    return tmp_path


def cluster(config: Path, name: str, spec: str) -> Path:
    file = config / "clusters.d" / f"{name}.yaml"
    text = f"apiVersion: fallow/v1\nkind: Cluster\nmetadata: {{name: {name}}}\nplugin: alpha\nspec:\n  {spec}\n"
    file.write_text(text)
    return file


def info(config: Path, *arguments: str) -> int:
    return cli.main(["plugins", "info", "alpha", "-c", str(config), *arguments])


def test_each_setting_has_its_value_and_its_origin_with_the_line(config: Path, capsys: Any) -> None:
    assert info(config) == 0
    file = config / "clusters.d" / "one.yaml"
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == f"cluster alpha/one of {file}"
    assert lines[3:] == [
        "SETTING VALUE FROM",
        f"address here:80 spec.host in {file}:6, the default port",
        "pace 5 s default",
    ]


def test_the_same_as_json(config: Path, capsys: Any) -> None:
    assert info(config, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["cluster"] == "alpha/one"
    assert answer["settings"][1] == {"name": "pace", "value": "5 s", "source": "default"}


@pytest.mark.parametrize("name", ["two", "alpha/two"])
def test_of_several_clusters_one_is_named(config: Path, capsys: Any, name: str) -> None:
    cluster(config, "two", "host: there")
    assert info(config) == 2
    assert "several clusters, say which with --cluster: one, two" in capsys.readouterr().err
    assert info(config, "--cluster", name) == 0
    assert "there:80" in capsys.readouterr().out


def test_a_cluster_that_is_not_there_is_told_with_those_that_are(config: Path, capsys: Any) -> None:
    assert info(config, "--cluster", "two") == 2
    assert "no cluster 'two' of plugin 'alpha'; it has: one" in capsys.readouterr().err


def test_the_mistakes_of_the_clusters_file_are_shown(config: Path, capsys: Any) -> None:
    (config / "clusters.d" / "one.yaml").write_text("apiVersion: fallow/v1\nkind: Cluster\nplugin: alpha\n")
    assert info(config, "--cluster", "one") == 2
    assert "one.yaml" in capsys.readouterr().err


def test_what_the_plugin_raises_is_one_message(config: Path, capsys: Any) -> None:
    file = cluster(config, "one", "fail: no such folder")
    assert info(config) == 2
    assert capsys.readouterr().err == f"alpha/one of {file}: no such folder\n"


def test_a_setting_of_another_kind_names_the_plugin(config: Path, capsys: Any) -> None:
    cluster(config, "one", "wrong: true")
    assert info(config) == 1
    assert "reports 'text' as a setting" in capsys.readouterr().err


def test_a_plugin_that_tells_nothing_says_where_to_look(config: Path, install: Any, capsys: Any) -> None:
    source = dedent(PLUGIN).replace(", settings=settings)", ")").replace("alpha", "beta")
    install("fallow-beta", "beta = fake_beta:PLUGIN", source)
    file = cluster(config, "one", "host: here")
    file.write_text(file.read_text().replace("alpha", "beta"))
    assert cli.main(["plugins", "info", "beta", "-c", str(config)]) == 1
    assert f"does not report its settings; see {file}" in capsys.readouterr().err
