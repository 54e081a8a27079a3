import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fallow_hookspecs import ClusterConfig, Role
from fallow_yarn.commands import COMMANDS
from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.lifecycle import command, decommissioning
from fallow_yarn.settings.agent_model import AgentModel
from fallow_yarn.settings.config import YarnSpec

TEXT = "# ours\n"


class Host:
    """A core with one cluster."""

    def __init__(self, **spec: object) -> None:
        self.spec = spec
        self.asked: list[tuple[str | None, Path | None]] = []

    def cluster(self, name: str | None, config: Path | None = None) -> ClusterConfig:
        self.asked.append((name, config))
        return ClusterConfig(name="etl", roles=frozenset(Role), spec=YarnSpec.model_validate(self.spec))


def places(yarn: EmbeddedYarn) -> dict[str, object]:
    rm = yarn.rm
    addresses = {"client": rm.client_address, "admin": rm.admin_address, "web": rm.web_address}
    return {"resourceManager": {"host": "127.0.0.1", **addresses}}


@pytest.fixture(scope="module")
def exclude(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lists") / "exclude"


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory, exclude: Path) -> Iterator[EmbeddedYarn]:
    exclude.write_text(TEXT)
    settings = Settings(heartbeat_seconds=0.05, starting_seconds=0, exclude_file=exclude, admins=frozenset({"hadoop"}))
    with EmbeddedYarn(tmp_path_factory.mktemp("yarn"), settings) as yarn:
        yield yarn


@pytest.fixture
def host(yarn: EmbeddedYarn, exclude: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A cluster whose node is in use."""
    exclude.write_text(TEXT)
    monkeypatch.setattr(command, "POLL_SECONDS", 0.05)
    host = Host(**places(yarn), user="hadoop", excludeFiles=[str(exclude)])
    assert call(host, "recommission", "localhost").exit_code == 0
    yarn.nodes["nm1"].end()
    yarn.nodes["nm1"].start()
    yarn.wait_ready()
    return host


def call(host: Host, *arguments: str) -> Result:
    return CliRunner().invoke(COMMANDS.build(host), arguments)


def test_a_node_goes_out_and_comes_in_again(host: Host, yarn: EmbeddedYarn, exclude: Path) -> None:
    done = call(host, "decommission", yarn.nodes["nm1"].node_id, "--cluster", "etl", "-c", "/etc/other")
    assert done.exit_code == 0, done.output
    assert "DECOMMISSION" in done.output
    assert "localhost: decommissioned. To undo it: fallow yarn recommission localhost" in done.output
    assert exclude.read_text() == TEXT + "localhost\n"
    assert host.asked[-1] == ("etl", Path("/etc/other"))
    back = call(host, "recommission", "localhost")
    assert (back.exit_code, back.output.splitlines()[-1]) == (0, "localhost: may register again; start its NodeManager")
    assert exclude.read_text() == TEXT


def test_a_node_that_the_file_names_by_its_address_comes_in_again(host: Host, exclude: Path) -> None:
    exclude.write_text(TEXT + "127.0.0.1\n")
    done = call(host, "decommission", "localhost")
    assert done.exit_code == 0, done.output
    back = call(host, "recommission", "LOCALHOST")
    assert back.exit_code == 0, back.output
    assert exclude.read_text() == TEXT


def test_ctrl_c_says_how_to_go_on(host: Host, exclude: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(decommissioning.Decommissioning, "poll", interrupted)
    done = call(host, "decommission", "localhost")
    assert done.exit_code == 0  # of a command that returns; `fallow` makes the returned number its own
    assert "continues without this command" in done.output
    assert "fallow yarn recommission localhost" in done.output
    assert exclude.read_text() == TEXT + "localhost\n"


@pytest.mark.parametrize(
    ("more", "arguments", "why"),
    [
        ({}, ["decommission", "localhos"], "does not know node 'localhos'; did you mean 'localhost'?"),
        ({"user": "alice"}, ["decommission", "localhost"], "alice"),
        ({"user": "alice"}, ["recommission", "localhost"], "alice"),
        ({"excludeFiles": ["/nowhere/exclude"]}, ["decommission", "localhost"], "/nowhere"),
        ({}, ["decommission", "localhost", "--grace", "soon"], "'soon': expected a duration such as 90s, 10m or 1h30m"),
        ({}, ["decommission"], "Missing argument 'NODE...'"),
    ],
)
def test_what_is_wrong_is_told_and_changes_nothing(
    host: Host, exclude: Path, more: dict[str, object], arguments: list[str], why: str
) -> None:
    host.spec |= more
    done = call(host, *arguments)
    assert done.exit_code in (1, 2)
    assert why in done.output
    assert "Traceback" not in done.output
    assert exclude.read_text() == TEXT


def test_the_resource_manager_does_not_choose_which_file_is_written(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text(TEXT)
    with EmbeddedYarn(tmp_path / "yarn", Settings(starting_seconds=0, exclude_file=precious)) as yarn:
        done = call(Host(**places(yarn), user=os.environ.get("USER", "root")), "decommission", "localhost")
    assert done.exit_code == 1
    assert "set spec.excludeFiles to its path on this host" in done.output
    assert precious.read_text() == TEXT
    assert [file.name for file in tmp_path.iterdir() if "precious" in file.name] == ["precious"]


def test_a_resource_manager_that_is_away_is_told_with_its_address(exclude: Path) -> None:
    away = {"host": "127.0.0.1", "client": "127.0.0.1:9"}
    done = call(Host(resourceManager=away, excludeFiles=[str(exclude)]), "decommission", "n1")
    assert done.exit_code == 1
    assert "127.0.0.1:9" in done.output


def test_another_decommissioning_with_the_same_file_is_waited_for(host: Host, exclude: Path) -> None:
    from fallow_yarn.lifecycle.list_file import ListFile

    with ListFile(exclude).locked():
        done = call(host, "decommission", "localhost")
    assert done.exit_code == 1
    assert "another fallow is decommissioning with it" in done.output


def test_a_cluster_that_an_agent_alone_knows_has_no_resource_manager_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host()
    alone = ClusterConfig(name="etl", roles=frozenset({Role.AGENT}), spec=AgentModel.model_validate({}))
    monkeypatch.setattr(host, "cluster", lambda *_: alone)
    found = call(host, "recommission", "worker-1")
    assert found.exit_code == 1
    assert "spec does not say where the ResourceManager is: give one of resourceManager" in found.output
