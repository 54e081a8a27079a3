import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from fallow_core.cli import main as cli
from fallow_core.errors import ConfigError, FallowError


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], int]:
    """Runs `fallow fake`, a command that does what it is told."""

    def run(action: Callable[[], Any]) -> int:
        module = type(sys)("fake_command")
        module.fake = click.Command("fake", callback=action)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "fallow_core.cli.fake_command", module)
        monkeypatch.setitem(cli.COMMANDS, "fake", ("fake_command:fake", "Fake."))
        return cli.main(["fake"])

    return run


def raising(error: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


def test_a_command_that_works_exits_with_zero(command: Any) -> None:
    assert command(lambda: None) == 0


def test_a_command_may_choose_its_exit_code(command: Any) -> None:
    assert command(lambda: click.get_current_context().exit(3)) == 3


@pytest.mark.parametrize(("error", "code"), [(FallowError("no way"), 1), (ConfigError("no way"), 2)])
def test_an_error_of_ours_is_its_text_and_its_code(
    command: Any, capsys: pytest.CaptureFixture[str], error: FallowError, code: int
) -> None:
    assert command(raising(error)) == code
    assert capsys.readouterr() == ("", "no way\n")


@pytest.mark.parametrize("kind", [FallowError, click.UsageError])
def test_an_error_does_nothing_to_the_terminal(
    command: Any, capsys: pytest.CaptureFixture[str], kind: type[Exception]
) -> None:
    command(raising(kind("a task named \x1b]0;mine\x07 and\na second line")))
    error = capsys.readouterr().err
    assert "\x1b" not in error
    assert "\x07" not in error
    assert error.endswith("a task named \ufffd]0;mine\ufffd and\na second line\n")


def test_ctrl_c_ends_without_a_traceback(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(raising(KeyboardInterrupt())) == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["no-such-command"], ["config"], ["config", "check"], ["--no-such-option"]])
def test_a_wrong_command_line_says_how_to_call_it(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    assert "Usage: fallow" in capsys.readouterr().err


def test_help_names_every_command_and_imports_none(capsys: pytest.CaptureFixture[str], command: Any) -> None:
    cli.COMMANDS["absent"] = ("module_that_is_nowhere:x", "Nothing.")
    try:
        assert cli.main(["--help"]) == 0
    finally:
        del cli.COMMANDS["absent"]
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in cli.COMMANDS)


def test_a_new_plugin_that_cannot_be_written_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plugins", "new", "alpha", "-o", "/proc/alpha"]) == 1
    assert capsys.readouterr().err.startswith("/proc/alpha/")


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("fallow, version 0.")


def python(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, **options)


@pytest.mark.parametrize("arguments", [["--help"], ["watch", "--help"], ["plugins", "list"]])
def test_a_light_command_does_not_import_pydantic(arguments: list[str]) -> None:
    code = f"import sys; from fallow_core.cli.main import main; main({arguments}); sys.exit('pydantic' in sys.modules)"
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_has_gone_is_no_traceback() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    code = "import sys; from fallow_core.cli.main import main; sys.exit(main(['--help']))"
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=write_end, stderr=subprocess.PIPE, text=True, timeout=30, check=False
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("output", "code", "error"), [("/dev/full", 1, "No space left on device; free"), ("&-", 0, "")]
)
def test_an_output_that_is_full_or_closed_is_no_traceback(output: str, code: int, error: str) -> None:
    call = "from fallow_core.cli.main import main; import sys; sys.exit(main(['plugins', 'list']))"
    shell = ["/bin/sh", "-c", f"exec '{sys.executable}' -c \"{call}\" >{output}"]
    done = subprocess.run(shell, stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    assert done.returncode == code
    assert error in done.stderr
    assert "Traceback" not in done.stderr


def test_a_thread_that_cannot_be_started_is_no_traceback() -> None:
    done = python(
        "import sys; from fallow_core.cli import main as cli, plugins\n"
        'def fail(*_): raise RuntimeError("can\'t start new thread")\n'
        "plugins.discovery.installed = fail\n"
        "sys.exit(cli.main(['plugins', 'list']))"
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("can't start new thread; this user or container may not start more processes")


GOOD = """
    from fallow_hookspecs import Plugin
    PLUGIN = Plugin(name="alpha", api_levels=(0, 0), config_model=dict, build=print)
"""


def test_the_list_of_plugins_imports_none(install: Any, capsys: pytest.CaptureFixture[str]) -> None:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", "raise AssertionError('imported')")
    assert cli.main(["plugins", "list"]) == 0
    heads, *lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert heads == ["NAME", "DISTRIBUTION", "VERSION", "TARGET", "STATE"]
    assert ["alpha", "fallow-alpha", "1.2", "fake_alpha:PLUGIN", "installed"] in lines


def test_a_plugin_that_fails_is_listed_with_its_reason_beside_the_others(
    install: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", GOOD)
    install("fallow-beta", "beta = fake_beta:PLUGIN", "import module_that_is_nowhere")
    assert cli.main(["plugins", "list", "--load"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("alpha") and line.endswith("loaded")]
    assert [line for line in lines if line.startswith("beta") and "failed: plugin 'beta' of fallow-beta" in line]


def test_a_name_that_two_distributions_claim_is_seen_in_the_list(
    install: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", GOOD)
    install("other-alpha", "alpha = fake_other:PLUGIN", GOOD)
    assert cli.main(["plugins", "list", "--json"]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out) if row["name"] == "alpha"]
    assert [(row["distribution"], row["state"]) for row in rows] == [
        ("fallow-alpha", "failed"),
        ("other-alpha", "failed"),
    ]
    assert "is claimed by" in rows[0]["reason"]


def test_an_environment_without_plugins_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fallow_core.plugins.discovery.installed", tuple)
    assert cli.main(["plugins", "list"]) == 0
    assert capsys.readouterr().out == "no plugin is installed in this Python environment\n"
