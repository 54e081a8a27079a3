"""`fallow plugins new`: what it writes is the example under another name, and passes the suite as it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FALLOW = str(Path(sys.executable).with_name("fallow"))
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "local_queue"


def new(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [FALLOW, "plugins", "new", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def texts(folder: Path) -> dict[str, str]:
    files = [file for file in folder.rglob("*") if file.is_file() and "cache" not in str(file)]
    return {str(file.relative_to(folder)): file.read_text() for file in files}


def test_under_its_own_name_it_is_the_example(tmp_path: Path) -> None:
    run = new("local_queue", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    written = texts(tmp_path / "fallow-local-queue")
    assert {name: text for name, text in texts(EXAMPLE).items() if name in written} == written
    assert {"pyproject.toml", "README.md", "src/fallow_local_queue/py.typed"} <= written.keys()


def test_a_new_plugin_has_its_name_everywhere_and_passes_the_suite(tmp_path: Path) -> None:
    run = new("demo_rm", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    folder = tmp_path / "fallow-demo-rm"
    for file, text in texts(folder).items():
        for name in ("local_queue", "local-queue", "LocalQueue"):
            assert name not in text, file
            assert name not in file
    assert "class DemoRm:" in (folder / "src" / "fallow_demo_rm" / "plugin.py").read_text()
    tried = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tried.returncode == 0, tried.stdout


@pytest.mark.parametrize("name", ["Demo", "demo-rm", "1rm", "class", "_rm", "rm_", "a" * 41, "a__b"])
def test_a_name_that_cannot_be_is_refused(name: str, tmp_path: Path) -> None:
    run = new(name, folder=tmp_path)
    assert run.returncode == 2
    assert "is no name for a plugin; expected at most 40 lower-case letters" in " ".join(run.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").touch()
    run = new("demo_rm", "-o", "mine", folder=tmp_path)
    assert run.returncode == 2
    assert "mine is not empty" in run.stderr
    assert new("demo_rm", "-o", "other", folder=tmp_path).returncode == 0
    assert (tmp_path / "other" / "README.md").exists()
