"""Built wheels in fresh environments: the demo runs, and plugins from outside of this workspace pass the suite.

Needs uv, and a package index or uv's cache for what others publish.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "examples" / "local_queue"
DISTRIBUTIONS = (ROOT / "hookspecs", ROOT / "core", ROOT / "plugins" / "yarn", EXAMPLE)
NAMES = ("fallow-hookspecs", "fallow-core", "fallow-yarn", "fallow-local-queue")
UV = shutil.which("uv") or "uv"
MYPY = "mypy==2.4.1"

pytestmark = pytest.mark.timeout(300)


def run(*command: str | Path, folder: Path) -> str:
    """What a command prints, in an environment without a way to the sources."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels, each built from a source distribution, as a publisher does."""
    folder = tmp_path_factory.mktemp("wheels")
    for distribution in DISTRIBUTIONS:
        run(UV, "build", "-q", "-o", folder, distribution, folder=folder)
    return folder


@pytest.fixture(scope="module")
def environment(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a fresh environment with core and the example in it."""
    folder = fresh(tmp_path_factory.mktemp("environment"))
    install(folder, wheels, "fallow-core", "fallow-local-queue[testing]", MYPY)
    return folder


def fresh(folder: Path) -> Path:
    """The folder, with an environment `venv` in it that has nothing installed."""
    run(UV, "venv", "-q", "--python", sys.executable, folder / "venv", folder=folder)
    return folder


def install(folder: Path, wheels: Path, *what: str) -> None:
    """Install into an environment what has no other source than the wheels, and what others publish."""
    own = [f"--refresh-package={name}" for name in NAMES]
    command: list[str | Path] = [
        UV,
        "pip",
        "install",
        "-q",
        "--python",
        folder / "venv" / "bin" / "python",
        "--find-links",
        wheels,
    ]
    run(*command, *own, *what, folder=folder)


def test_all_comes_from_the_wheels(environment: Path) -> None:
    names = ("fallow_hookspecs", "fallow_core", "fallow_local_queue")
    code = "\n".join(f"import {name}; print({name}.__file__)" for name in names)
    files = run(environment / "venv" / "bin" / "python", "-c", code, folder=environment).split()
    assert all(Path(file).is_relative_to(environment / "venv") for file in files), files
    assert all(Path(file).with_name("py.typed").exists() for file in files)


def test_the_example_passes_the_suite(environment: Path) -> None:
    fallow = environment / "venv" / "bin" / "fallow"
    listed = run(fallow, "plugins", "list", "--load", folder=environment)
    assert "local_queue" in listed
    said = run(fallow, "plugins", "check", "local_queue", folder=environment)
    assert ", 0 failed" in said.splitlines()[-1]


def test_a_new_plugin_builds_is_typed_and_passes_the_suite(environment: Path, wheels: Path) -> None:
    binaries = environment / "venv" / "bin"
    run(binaries / "fallow", "plugins", "new", "demo_rm", folder=environment)
    folder = environment / "fallow-demo-rm"
    run(UV, "build", "-q", "-o", wheels, folder, folder=environment)
    install(environment, wheels, "fallow-demo-rm")
    run(binaries / "mypy", "src", "tests", folder=folder)
    said = run(binaries / "fallow", "plugins", "check", "demo_rm", folder=environment)
    assert said.startswith("plugin 'demo_rm' of fallow-demo-rm 0.1.0 (fallow_demo_rm.entry:PLUGIN)")
    assert ", 0 failed" in said.splitlines()[-1]
    assert "installed" in run(binaries / "fallow", "plugins", "list", folder=environment)


def test_core_and_yarn_alone_run_the_demo(wheels: Path, tmp_path: Path) -> None:
    folder = fresh(tmp_path)
    install(folder, wheels, "fallow-core", "fallow-yarn")
    said = run(folder / "venv" / "bin" / "fallow", "demo", folder=folder)
    assert re.search(r"[1-9]\d* finished, \d+ lost", said), said
