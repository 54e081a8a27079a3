import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fallow_core.cli import main as cli
from fallow_core.errors import PluginLoadError
from fallow_core.plugins import discovery
from fallow_core.plugins.copilot import PLUGIN, CopilotSpec
from fallow_hookspecs import ClusterConfig, Role

CLUSTER = "apiVersion: fallow/v1\nkind: Cluster\nmetadata: {name: batch}\nplugin: copilot\nspec:\n"


def check(folder: Path, spec: str, capsys: pytest.CaptureFixture[str]) -> str:
    (folder / "fallow.yaml").write_text("apiVersion: fallow/v1\nkind: Fallow\n")
    (folder / "clusters.d").mkdir()
    (folder / "clusters.d" / "batch.yaml").write_text(CLUSTER + spec)
    code = cli.main(["config", "check", str(folder)])
    said = capsys.readouterr()
    return said.out if code == 0 else said.err


def test_it_is_found_as_any_plugin_is() -> None:
    assert discovery.load("copilot").plugin is PLUGIN


def test_loading_it_and_checking_its_file_imports_no_grpc() -> None:
    code = (
        "import sys; from fallow_core.plugins import discovery; plugin = discovery.load('copilot').plugin;"
        "plugin.config_model().model_validate({'socket': '/run/x/socket'});"
        "print({'grpc', 'google'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def test_its_template_is_a_spec_and_so_is_what_is_commented_out_there() -> None:
    assert CopilotSpec.model_validate(yaml.safe_load(PLUGIN.config_template)).user is None
    text, count = re.subn(r"# (user):", r"\1:", PLUGIN.config_template)
    assert count == 1
    assert CopilotSpec.model_validate(yaml.safe_load(text)).user == "fallow-copilot"


def test_a_good_file_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = check(tmp_path, "  socket: /run/fallow-copilot/batch/socket\n  user: spark\n", capsys)
    assert "clusters: copilot/batch" in said


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("  socket: run/socket\n", "'run/socket' is not an absolute path"),
        (f"  socket: /{'x' * 120}\n", "longer than 107 bytes"),
        ("  socket: /run/a/socket\n  user: ''\n", "spec.user"),
        ("  socket: /run/a/socket\n  port: 5\n", "port: unknown key; allowed here: socket, user"),
        ("  user: me\n", "socket: this required key is missing"),
    ],
)
def test_a_mistake_is_shown_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spec: str, said: str
) -> None:
    found = check(tmp_path, spec, capsys)
    assert said in found
    assert "batch.yaml:" in found


def test_without_grpc_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.startswith(("fallow_hookspecs.copilot", "fallow_core.plugins.copilot_client")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "grpc", None)
    spec = CopilotSpec(socket="/run/a/socket")
    with pytest.raises(PluginLoadError, match=r"grpc is missing: pip install 'fallow-core\[copilot\]'"):
        PLUGIN.build(ClusterConfig(name="batch", roles=frozenset(Role), spec=spec))
