import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from fallow_core.cli.main import main
from fallow_core.config.document import read
from fallow_core.config.file_schemas import cluster_schema, core_schema
from fallow_core.config.template import CORE_TEMPLATE, cluster_template
from fallow_hookspecs import Plugin


class Limits(BaseModel, extra="forbid"):
    """Core has a model of this name too."""

    tasks: int = 4


class Spec(BaseModel, extra="forbid"):
    limits: Limits = Limits()


TEMPLATE = "#limits:\n#  tasks: 4\n"
PLUGIN = Plugin(name="alpha", api_levels=(0, 0), config_model=lambda: Spec, build=print, config_template=TEMPLATE)  # type: ignore[arg-type]


def all_set(template: str, file: Path) -> Any:
    """What the file holds with the `#` of every setting taken away."""
    file.write_text(re.sub(r"^( *)#(?! \S)", r"\1", template, flags=re.MULTILINE))
    document, problems = read(file)
    assert problems == []
    assert document is not None
    return document.data


def mistakes(schema: dict[str, Any], data: Any) -> list[str]:
    Draft202012Validator.check_schema(schema)
    return [error.message for error in Draft202012Validator(schema).iter_errors(data)]


def test_the_schema_of_a_core_file_takes_every_setting_as_users_write_it(tmp_path: Path) -> None:
    assert mistakes(core_schema(), all_set(CORE_TEMPLATE, tmp_path / "x.yaml")) == []


def test_the_schema_of_a_cluster_file_has_that_of_the_plugins_spec_in_it(tmp_path: Path) -> None:
    data = all_set(cluster_template(PLUGIN), tmp_path / "x.yaml")
    assert data["spec"] == {"limits": {"tasks": 4}}
    assert mistakes(cluster_schema(PLUGIN), data) == []
    data["spec"]["limits"]["cpu"] = "80%"
    assert mistakes(cluster_schema(PLUGIN), data) == ["Additional properties are not allowed ('cpu' was unexpected)"]
    assert mistakes(cluster_schema(PLUGIN), {**data, "spec": {}, "plugin": "beta"}) == ["'alpha' was expected"]


def test_no_default_of_a_schema_is_one_that_a_file_cannot_have() -> None:
    capacity = core_schema()["$defs"]["CpuCapacity"]["properties"]
    assert "default" not in capacity["watermark"]
    assert capacity["policy"]["default"] == "usage"


def test_a_schema_is_shown_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == core_schema()


def test_the_schema_of_an_unknown_plugin_is_a_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "schema", "yran"]) != 0
    assert "yran" in capsys.readouterr().err
