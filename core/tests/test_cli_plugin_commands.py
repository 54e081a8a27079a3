import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fallow_core.cli import main as cli
from fallow_core.cli.plugin_commands import Host
from fallow_core.errors import ConfigError

CORE = "apiVersion: fallow/v1\nkind: Fallow\nstateDir: state\n"
PLUGIN = """
    from fallow_hookspecs import Plugin

    class Model:
        @classmethod
        def model_validate(cls, given):
            return given
        @classmethod
        def model_json_schema(cls):
            return {}

    PLUGIN = Plugin(name="alpha", api_levels=(0, 0), config_model=lambda: Model, build=print, settings=lambda _: [])
"""
COMMANDS = """
    import click
    from fallow_hookspecs import Commands

    def build(host):
        @click.group("alpha")
        def alpha():
            '''What alpha can do.'''

        @alpha.command()
        @click.argument("name", required=False)
        @click.option("--config", "-c")
        def greet(name, config):
            '''Say a name.'''
            click.echo(f"hello {host.cluster(name, config and __import__('pathlib').Path(config)).spec}")

        @alpha.command()
        def fail():
            raise click.ClickException("that went wrong")

        @alpha.command()
        def seven():
            return 7

        return alpha

    COMMANDS = Commands(name="alpha", api_levels=(0, 0), build=build)
"""


@pytest.fixture
def brought(install: Any) -> Callable[..., None]:
    """Installs the commands of a plugin alpha, which are these by default."""

    def bring(source: str = COMMANDS, entry: str = "alpha = fake_alpha_commands:COMMANDS") -> None:
        install("fallow-alpha-commands", entry, source, group="fallow.commands")

    return bring


@pytest.fixture
def folder(install: Any, tmp_path: Path) -> Path:
    """A configuration with the plugin alpha and no cluster yet."""
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", PLUGIN)
    (tmp_path / "fallow.yaml").write_text(CORE)
    (tmp_path / "clusters.d").mkdir()
    return tmp_path


def add(folder: Path, name: str, more: str = "") -> None:
    text = f"apiVersion: fallow/v1\nkind: Cluster\nmetadata: {{name: {name}}}\nplugin: alpha\nspec: {{is: {name}}}\n"
    (folder / "clusters.d" / f"{name}.yaml").write_text(text + more)


def test_help_names_commands_of_plugins_and_imports_nothing(
    brought: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    brought("raise AssertionError('imported')")
    assert cli.main(["--help"]) == 0
    assert "alpha  Run commands of the plugin alpha (fallow-alpha-commands)." in capsys.readouterr().out
    assert "fake_alpha_commands" not in sys.modules


def test_a_command_of_a_plugin_is_called_with_its_cluster(
    brought: Callable[..., None], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brought()
    add(folder, "etl")
    assert cli.main(["alpha", "greet", "-c", str(folder)]) == 0
    assert cli.main(["alpha", "greet", "alpha/etl", "-c", str(folder)]) == 0
    assert capsys.readouterr().out == "hello {'is': 'etl'}\n" * 2


def test_info_of_a_plugin_names_its_commands(
    brought: Callable[..., None], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(folder, "etl")
    assert cli.main(["plugins", "info", "alpha", "-c", str(folder)]) == 0
    assert "commands" not in capsys.readouterr().out
    brought("raise AssertionError('imported')")
    assert cli.main(["plugins", "info", "alpha", "-c", str(folder)]) == 0
    assert "its commands: fallow alpha --help" in capsys.readouterr().out


def test_its_errors_and_numbers_are_those_of_the_command(
    brought: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    brought()
    assert cli.main(["alpha", "seven"]) == 7
    assert cli.main(["alpha", "fail"]) == 1
    assert capsys.readouterr().err == "Error: that went wrong\n"
    assert cli.main(["alpha", "nothing"]) == 2


def test_a_command_of_core_cannot_be_replaced(brought: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    brought("raise AssertionError('imported')", "status = fake_alpha_commands:COMMANDS")
    assert cli.main(["status", "--help"]) == 0
    assert cli.main(["--help"]) == 0
    assert "commands of the plugin status" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("1 / 0", "cannot be imported: ZeroDivisionError"),
        ("COMMANDS = 5", "it names a int, not a fallow_hookspecs.Commands"),
        (COMMANDS.replace("(0, 0)", "(8, 9)"), "it is written for API levels 8 to 9"),
        (COMMANDS.replace("return alpha", "return 5"), "it builds a int, not a click.Command"),
        (COMMANDS.replace("return alpha", "1 / 0"), "cannot be used: ZeroDivisionError: division by zero"),
    ],
)
def test_what_cannot_be_used_names_where_it_is_from(
    brought: Callable[..., None], source: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    brought(source)
    assert cli.main(["alpha", "greet"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("command 'alpha' of fallow-alpha-commands 1.2 (fake_alpha_commands:COMMANDS) ")
    assert why in said


def test_of_several_clusters_one_has_to_be_named(folder: Path) -> None:
    add(folder, "etl")
    add(folder, "night")
    with pytest.raises(ConfigError, match="say which with --cluster: etl, night"):
        Host("alpha").cluster(None, folder)
    assert Host("alpha").cluster("night", folder).name == "night"
    with pytest.raises(ConfigError, match="has no cluster 'day' of plugin 'alpha'; it has: etl, night"):
        Host("alpha").cluster("day", folder)


def test_a_wrong_file_of_another_cluster_is_no_hindrance_and_that_of_this_one_is_shown(folder: Path) -> None:
    add(folder, "etl")
    add(folder, "night", "wieght: 3\n")
    assert Host("alpha").cluster("etl", folder).name == "etl"
    with pytest.raises(ConfigError, match="wieght"):
        Host("alpha").cluster("night", folder)


def test_without_a_cluster_of_the_plugin_that_is_said(folder: Path) -> None:
    with pytest.raises(ConfigError, match="has no cluster '' of plugin 'alpha'"):
        Host("alpha").cluster(None, folder)
