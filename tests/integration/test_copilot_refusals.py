"""What `fallow-copilot serve` refuses, in words."""

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration import copilot_plugin
from tests.integration.copilot_stage import lay_out

from fallow_hookspecs.copilot.command import main

GOOD = "kind: Cluster\nplugin: copilot_fake\nmetadata: {name: x}\n"

Refusal = Callable[..., str]


@pytest.fixture
def refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refusal:
    """`refusal(file, plugin)`: what the command says on its way out."""
    monkeypatch.syspath_prepend(lay_out(tmp_path / "site", "copilot_fake", "tests.integration.copilot_plugin:PLUGIN"))

    def ask(text: str = GOOD, plugin: str = "copilot_fake") -> str:
        file = tmp_path / "cluster.yaml"
        file.write_text(text)
        assert main(["serve", plugin, "--config", str(file), "--socket", str(tmp_path / "run" / "socket")]) == 1
        return capsys.readouterr().err

    return ask


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no cluster file"),
        ("kind: Fallow\n", "is no cluster file"),
        ("kind: Cluster\nplugin: yarn\n", "is for plugin 'yarn', not for 'copilot_fake'"),
        ("kind: Cluster\nplugin: copilot_fake\n", "has no metadata.name"),
        (GOOD + "roles: [king]\n", "'king' is not a valid Role"),
        (GOOD + "spec: {a: 1}\n", "spec is wrong"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_wrong_file(refusal: Refusal, text: str, said: str) -> None:
    assert said in refusal(text)


def test_each_mistake_of_a_model_in_a_line(refusal: Refusal) -> None:
    said = refusal("kind: Cluster\nplugin: yarn\nmetadata: {name: x}\nspec: {user: '', weather: fine}\n", "yarn")
    assert "spec.user: " in said
    assert "spec.weather: " in said


def test_a_plugin_that_is_not_there(refusal: Refusal) -> None:
    said = refusal(plugin="nowhere")
    assert "plugin 'nowhere' is not installed; installed are " in said
    assert "yarn" in said


@pytest.mark.parametrize(
    ("levels", "said"),
    [((7, 9), "it is written for API levels 7 to 9, this Fallow has level 0"), (None, "it has the api_levels None")],
)
def test_a_plugin_of_another_level(refusal: Refusal, monkeypatch: pytest.MonkeyPatch, levels: Any, said: str) -> None:
    monkeypatch.setattr(copilot_plugin, "PLUGIN", replace(copilot_plugin.PLUGIN, api_levels=levels))
    assert said in refusal()


def test_a_directory_that_is_open_to_others(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o755)
    assert "is open to others (mode 0755)" in refusal()


def test_a_directory_in_nothing(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to("nowhere/at/all")
    assert "cannot be created" in refusal()


def test_what_is_no_socket_is_left_alone(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "run" / "socket").write_text("mine")
    assert "exists and is no socket" in refusal()
    assert (tmp_path / "run" / "socket").read_text() == "mine"


def test_a_socket_that_somebody_serves_is_not_taken_over(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(os.fspath(tmp_path / "run" / "socket"))
        other.listen()
        assert "already serves at" in refusal()


def test_a_path_that_is_too_long_for_a_socket(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / ("x" * 100) / "socket"
    assert main(["serve", "yarn", "--config", "none", "--socket", str(path)]) == 1
    assert "is longer than 107 bytes" in capsys.readouterr().err
