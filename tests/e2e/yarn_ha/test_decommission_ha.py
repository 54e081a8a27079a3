"""`fallow yarn decommission` beside two real ResourceManagers: nothing ends before its grace, whoever is active."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.e2e.yarn.application import Application, containers_ended, containers_running
from tests.e2e.yarn.fallow_process import COMMAND, TIED, Fallow
from tests.e2e.yarn.jars import Jars
from tests.e2e.yarn.rest import USER, wait_for
from tests.e2e.yarn.sizes import SETUP
from tests.e2e.yarn_ha.pair import Pair

from fallow_hookspecs import (
    ClusterConfig,
    Node,
    NodeState,
    Offer,
    OfferAnswer,
    PluginError,
    Refusal,
    ReportRow,
    Resources,
    Role,
)
from fallow_yarn.lifecycle.when_empty import EMPTY_SECONDS
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.settings.config import YarnSpec

HERE = Node(name="here", addresses=("localhost", "127.0.0.1"))
SECONDS = 60
KEPT = "# nodes that are repaired\n"
INCLUDE_PATH = "yarn.resourcemanager.nodes.include-path"

pytestmark = pytest.mark.timeout(6 * SECONDS, func_only=True)


@pytest.fixture(scope="module")
def exclude(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("lists") / "exclude"
    file.write_text(KEPT)
    return file


@pytest.fixture(scope="module")
def pair(hadoop_jars: Jars, tmp_path_factory: pytest.TempPathFactory, exclude: Path) -> Iterator[Pair]:
    site = {"rm": {"yarn.resourcemanager.nodes.exclude-path": str(exclude)}}
    setup = replace(SETUP, node_managers=1, site=site)
    with Pair(hadoop_jars, tmp_path_factory.mktemp("ha") / "cluster", setup) as pair:
        yield pair


@pytest.fixture(scope="module")
def fallow(pair: Pair, tmp_path_factory: pytest.TempPathFactory, exclude: Path) -> Iterator[Fallow]:
    """A configuration that knows both by the cluster's own files; no `fallow run`."""
    spec = {"hadoopConfDir": str(pair.folder / "client"), "user": USER, "excludeFiles": [str(exclude)]}
    with Fallow(tmp_path_factory.mktemp("f"), {"real": spec}, cpu_reserved_milli=0, memory_limit_mb=1024) as fallow:
        yield fallow


@pytest.fixture
def app(pair: Pair, exclude: Path, tmp_path: Path) -> Iterator[Application]:
    """Two containers that end when the file `end` is there. Before it the node is in use, with its NodeManager anew."""
    exclude.write_text(KEPT)
    pair.kill("nm1")
    pair.launch("nm1")
    pair.wait_ready()
    end = tmp_path / "end"
    app = pair.submit(2, 256, 1, f"while ! test -e {end}; do sleep 0.1; done")
    wait_for(lambda: len(containers_running(app)) == 2, SECONDS, "the containers")
    yield app
    end.touch()


def states(pair: Pair) -> list[str]:
    return [node.state for node in pair.nodes().values()]


@contextmanager
def decommissioning(pair: Pair, fallow: Fallow, *more: str) -> Iterator["subprocess.Popen[str]"]:
    """The command in the background, once the ResourceManager knows."""
    (node_id,) = pair.nodes()
    command = [*TIED, COMMAND, "yarn", "decommission", node_id, "--cluster", "real", "-c", str(fallow.folder), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            wait_for(lambda: process.poll() is not None or states(pair) == ["DECOMMISSIONING"], SECONDS, "the start")
            yield process
        finally:
            process.kill()


def test_a_grace_lasts_through_a_kill_and_a_failover(
    pair: Pair, fallow: Fallow, app: Application, exclude: Path, tmp_path: Path
) -> None:
    running = containers_running(app)
    changes: list[Callable[[], object]] = [pair.killed, pair.failed_over]
    with decommissioning(pair, fallow, "--grace", "10m") as command:
        for change in changes:
            with change():  # type: ignore[attr-defined]
                wait_for(lambda: states(pair) == ["DECOMMISSIONING"], SECONDS, "the new active one to know of it")
            assert containers_running(app) == running
            assert exclude.read_text() == KEPT
        (tmp_path / "end").touch()
        told, _ = command.communicate(timeout=SECONDS)
    assert command.returncode == 0, told
    assert "told again" in told
    assert "localhost: decommissioned." in told
    assert states(pair) == ["DECOMMISSIONED"]
    assert exclude.read_text() == KEPT + "localhost\n"
    assert {ended.exit_code for ended in containers_ended(app)} == {0}
    assert "may register again; start its NodeManager" in fallow.succeed("yarn", "recommission", "localhost")
    assert exclude.read_text() == KEPT
    pair.kill("nm1")
    pair.launch("nm1")
    pair.wait_ready()


def test_fallow_run_beside_it_sends_no_sizes_and_finds_no_fault(
    pair: Pair, fallow: Fallow, app: Application, exclude: Path
) -> None:
    fallow.start()
    wait_for(lambda: "offer_sent" in fallow.log.read_text(), SECONDS, "the first size")
    wait_for(lambda: fallow.in_force() != {}, SECONDS, "its arrival")
    with decommissioning(pair, fallow) as command:
        wait_for(lambda: fallow.cluster()["rows"][0]["state"] == "draining", SECONDS, "Fallow to see it")
        begin = len(fallow.log.read_text())
        time.sleep(3)
        said = fallow.log.read_text()[begin:]
        assert "offer_sent" not in said
        assert "size_changed_by_others" not in said
        assert fallow.problem() == ""
        doctor = {finding["subject"]: finding for finding in json.loads(fallow.call("doctor", "--json").stdout)}
        assert [f["ok"] for s, f in doctor.items() if s.startswith("NodeManagers of")] == [True]
        command.send_signal(signal.SIGINT)
        command.wait(SECONDS)
    fallow.succeed("yarn", "recommission", "localhost")
    wait_for(lambda: fallow.cluster()["rows"][0]["state"] == "running", SECONDS, "it to be in use again")
    fallow.end(signal.SIGTERM)
    assert containers_ended(app) == []


def test_ctrl_c_leaves_it_to_go_on_and_it_can_be_undone(
    pair: Pair, fallow: Fallow, app: Application, exclude: Path
) -> None:
    with decommissioning(pair, fallow) as command:
        command.send_signal(signal.SIGINT)
        told, _ = command.communicate(timeout=SECONDS)
    assert command.returncode == 130
    assert "fallow yarn recommission localhost" in told
    assert exclude.read_text() == KEPT + "localhost\n"
    assert states(pair) == ["DECOMMISSIONING"]
    assert ": RUNNING" in fallow.succeed("yarn", "recommission", "localhost")
    assert exclude.read_text() == KEPT
    assert containers_ended(app) == []


def test_force_ends_what_runs(pair: Pair, fallow: Fallow, app: Application) -> None:
    running = containers_running(app)
    assert len(running) == 2
    assert "decommissioned" in fallow.succeed("yarn", "decommission", "localhost", "--force")
    assert states(pair) == ["DECOMMISSIONED"]
    assert "RUNNING" not in fallow.succeed("yarn", "recommission", "localhost")


def test_a_node_that_is_out_for_being_empty_comes_back_through_a_failover(pair: Pair, exclude: Path) -> None:
    exclude.write_text(KEPT)
    pair.kill("nm1")
    pair.launch("nm1")
    pair.wait_ready()
    wait_for(lambda: sum(node.containers for node in pair.nodes().values()) == 0, SECONDS, "the end of earlier tests")
    later = 0.0
    (node_id,) = pair.nodes()
    given = {"user": USER, "whenEmpty": "decommission", "excludeFiles": [str(exclude)]}
    spec = {"hadoopConfDir": str(pair.folder / "client"), **given}
    config = ClusterConfig(name="real", roles=frozenset(Role), spec=YarnSpec.model_validate(spec))
    instance = YarnInstance(config, lambda: time.monotonic() + later)

    def rows() -> Sequence[ReportRow]:
        with suppress(PluginError):
            return instance.report_capacity((HERE,), (), 20.0).rows
        return ()

    def offer(size: Resources) -> OfferAnswer:
        offered = Offer(node=HERE.name, framework_node=node_id, total=size)
        return instance.report_capacity((HERE,), (offered,), 20.0).answers[0]

    def is_out() -> bool:
        shown = [(row.in_force, row.state) for row in rows()]
        return shown == [(floor, NodeState.RUNNING)] and exclude.read_text() == KEPT + "localhost\n"

    with closing(instance):
        wait_for(lambda: len(rows()) == 1, SECONDS, "a report")
        floor = rows()[0].floor
        assert offer(floor).accepted == floor
        wait_for(lambda: [row.in_force for row in rows()] == [floor], SECONDS, "the floor")
        later += EMPTY_SECONDS
        wait_for(is_out, SECONDS, "the empty node to be out")
        with pair.failed_over():
            wait_for(is_out, SECONDS, "it to be out still")
            assert states(pair) in ([], ["DECOMMISSIONED"])
            assert offer(Resources(2 * floor.cpu_milli, 2 * floor.memory_bytes)).refusal is Refusal.UNKNOWN_NODE
            assert exclude.read_text() == KEPT
            pair.kill("nm1")
            pair.launch("nm1")
            pair.wait_ready()
            assert [row.state for row in rows()] == [NodeState.RUNNING]


def lists_of_their_own(pair: Pair, exclude: Path, folder: Path) -> dict[str, list[str]]:
    """Each ResourceManager gets an exclude and an include file of its own, which it reads from the next call on."""
    paths: dict[str, list[str]] = {"excludeFiles": [], "includeFiles": []}
    for name, rm in pair.rms.items():
        own_exclude, own_include = folder / f"{name}.exclude", folder / f"{name}.include"
        own_exclude.write_text(KEPT)
        own_include.write_text("localhost\n127.0.0.1\n")
        include = f"<property><name>{INCLUDE_PATH}</name><value>{own_include}</value></property>\n</configuration>"
        site = rm.home / "conf" / "yarn-site.xml"
        text = site.read_text().replace(f">{exclude}<", f">{own_exclude}<")
        site.write_text(text.replace("</configuration>", include))
        paths["excludeFiles"].append(str(own_exclude))
        paths["includeFiles"].append(str(own_include))
    return paths


def test_with_lists_of_their_own_both_resource_managers_take_a_node_out_and_in_again(
    pair: Pair, app: Application, exclude: Path, tmp_path: Path
) -> None:
    lists = lists_of_their_own(pair, exclude, tmp_path)
    files, includes = ([Path(name) for name in lists[kind]] for kind in ("excludeFiles", "includeFiles"))
    spec = {"hadoopConfDir": str(pair.folder / "client"), "user": USER, **lists}
    with Fallow(tmp_path / "f", {"real": spec}, cpu_reserved_milli=0, memory_limit_mb=1024) as fallow:
        running = containers_running(app)
        with decommissioning(pair, fallow, "--grace", "10m") as command:
            with pair.failed_over():
                wait_for(lambda: states(pair) == ["DECOMMISSIONING"], SECONDS, "the new active one to know of it")
            assert containers_running(app) == running
            assert [file.read_text() for file in files] == [KEPT, KEPT]
            (tmp_path / "end").touch()
            told, _ = command.communicate(timeout=SECONDS)
        assert command.returncode == 0, told
        assert "told again" in told
        assert [file.read_text() for file in files] == [KEPT + "localhost\n"] * 2
        for file in includes:
            file.write_text("another\n")
        with pair.failed_over():
            assert states(pair) in ([], ["DECOMMISSIONED"])
            fallow.succeed("yarn", "recommission", "localhost")
        assert [file.read_text() for file in files] == [KEPT, KEPT]
        assert [file.read_text() for file in includes] == ["another\nlocalhost\n"] * 2
        pair.kill("nm1")
        pair.launch("nm1")
        pair.wait_ready()
