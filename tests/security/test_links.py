"""A user of this host puts links where Fallow, as root, writes files: nothing that they lead to is touched."""

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.security.conftest import Attack

from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.settings import Settings

PRECIOUS = "precious\n"
NAMES = ["lock", "published.jsonl", "published.part", "running.json", "running.part", "terminations.part"]
NAMES += ["original-values.json", "original-values.part", "policy", ".doctor", "control", "exclude", "row.json"]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the attack is another user's")


@pytest.fixture
def precious(tmp_path: Path) -> Iterator[Path]:
    """A file of root's, which stays as it is."""
    file = tmp_path / "precious"
    file.write_text(PRECIOUS)
    file.chmod(0o600)
    yield file
    assert file.read_text() == PRECIOUS
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.fixture(params=["755", "777"])
def trap(attack: Attack, precious: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A directory of another user's below a sticky one, like /tmp, with links to the file."""
    with tempfile.TemporaryDirectory(prefix="fallow-", dir="/tmp") as public:
        Path(public).chmod(0o1777)
        folder = Path(public) / "theirs"
        process = attack("links", str(folder), request.param, str(precious), *NAMES)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield folder


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "etc"
    (folder / "clusters.d").mkdir(parents=True)
    return folder


def fallow(config: Path, *arguments: str, **core: object) -> tuple[int, str]:
    """The exit code and the output of a command with this configuration."""
    own = {"stateDir": str(config / "state"), "controlSocket": str(config / "control"), "metrics": "off"}
    text = json.dumps({"apiVersion": "fallow/v1", "kind": "Fallow", **own, **core})
    (config / "fallow.yaml").write_text(text)
    code = "import sys; from fallow_core.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, *arguments, "-c", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


@needs_root
@pytest.mark.parametrize("role", ["run", "agent", "restore"])
def test_no_link_in_the_state_directory_is_followed(trap: Path, config: Path, role: str) -> None:
    code, said = fallow(config, role, stateDir=str(trap))
    assert code == 1
    assert "cannot use the state directory" in said
    assert sorted(each.name for each in trap.iterdir() if each.is_symlink()) == sorted(NAMES)


@needs_root
def test_a_link_to_the_directory_of_another_user_is_no_state_directory(trap: Path, config: Path) -> None:
    (config / "state").symlink_to(trap)
    code, said = fallow(config, "run")
    assert code == 1
    assert f"{trap} belongs to " in said


@needs_root
def test_no_link_in_the_place_of_the_control_socket_gets_its_group_or_mode(trap: Path, config: Path) -> None:
    code, said = fallow(config, "run", controlSocket=str(trap / "control"), controlGroup="root")
    assert code == 1
    assert "cannot open the control socket" in said


@needs_root
def test_the_doctor_says_whose_state_directory_it_is_and_leaves_nothing_there(trap: Path, config: Path) -> None:
    _, said = fallow(config, "doctor", stateDir=str(trap))
    assert "can be changed by users other than" in said or "cannot be read: Too many levels of symbolic links" in said


@needs_root
def test_no_exclude_file_is_written_through_a_link_of_another_user(
    trap: Path, precious: Path, config: Path, tmp_path: Path
) -> None:
    with EmbeddedYarn(tmp_path / "yarn", Settings(starting_seconds=0, admins=frozenset({"root"}))) as yarn:
        said = _decommission(yarn, config, excludeFiles=[str(trap / "exclude")])
    assert f"{trap} can be changed" in said or f"{trap} belongs to" in said


@needs_root
def test_a_resource_manager_does_not_choose_the_exclude_file(config: Path, precious: Path, tmp_path: Path) -> None:
    settings = Settings(starting_seconds=0, exclude_file=precious, admins=frozenset({"root"}))
    with EmbeddedYarn(tmp_path / "yarn", settings) as yarn:
        said = _decommission(yarn, config)
    assert "set spec.excludeFiles to its path on this host" in said


def _decommission(yarn: EmbeddedYarn, config: Path, **more: object) -> str:
    rm = yarn.rm
    addresses = {"host": "127.0.0.1", "client": rm.client_address, "admin": rm.admin_address, "web": rm.web_address}
    spec = {"resourceManager": addresses, "user": "root", **more}
    cluster = {
        "apiVersion": "fallow/v1",
        "kind": "Cluster",
        "metadata": {"name": "etl"},
        "plugin": "yarn",
        "spec": spec,
    }
    (config / "clusters.d" / "etl.yaml").write_text(json.dumps(cluster))
    code, said = fallow(config, "yarn", "decommission", "localhost")
    assert code == 1, said
    return said
