import importlib.metadata
import re
import subprocess
import sys

import pytest
import yaml

from fallow_hookspecs import API_LEVEL, ENTRY_POINT_GROUP, ClusterConfig, Plugin, Role
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.settings.rm_addresses import rm_addresses


@pytest.fixture
def loaded() -> Plugin:
    """What the entry point names."""
    (found,) = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP, name="yarn")
    plugin: Plugin = found.load()
    return plugin


def test_the_entry_point_names_a_plugin_of_the_same_name_for_this_contract(loaded: Plugin) -> None:
    assert isinstance(loaded, Plugin)
    assert loaded.name == "yarn"
    assert loaded.api_levels[0] <= API_LEVEL <= loaded.api_levels[1]


def test_its_template_is_a_spec_that_builds_an_instance(loaded: Plugin) -> None:
    spec = loaded.config_model().model_validate(yaml.safe_load(loaded.config_template))
    built = loaded.build(ClusterConfig(name="etl", roles=frozenset(Role), spec=spec))
    assert isinstance(built, YarnInstance)
    built.close()


def test_what_is_commented_out_in_the_template_is_right_too(loaded: Plugin) -> None:
    text, count = re.subn(r"# (client|admin|web|nodeManagers):", r"\1:", loaded.config_template)
    spec = loaded.config_model().model_validate(yaml.safe_load(text))
    assert count == 4
    assert rm_addresses(spec)[0].client.authority == "rm.example.com:8032"
    assert spec.node_managers == ["worker-1.example.com:45454"]


def test_loading_the_entry_point_imports_nothing_heavy() -> None:
    code = "import sys, fallow_yarn.entry; print(*{'pydantic', 'google.protobuf', 'ssl'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_the_blocks_that_are_commented_out_make_a_spec_together(loaded: Plugin) -> None:
    blocks = re.findall(r"^# \w+:\n(?:#   .*\n)+", loaded.config_template, re.MULTILINE)
    text = re.sub(r"^# ", "", "".join(blocks), flags=re.MULTILINE)
    spec = loaded.config_model().model_validate(yaml.safe_load(text))
    assert [place.name for place in rm_addresses(spec)] == ["rm1", "rm2"]
    assert (spec.kerberos.principal, spec.tls.ca_file) == ("fallow@EXAMPLE.COM", "/etc/fallow/hadoop-ca.pem")
