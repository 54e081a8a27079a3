import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fallow_core.api.control_socket import ControlServer, Peer
from fallow_core.cli import inspect
from fallow_core.cli import main as cli

CORE = "apiVersion: fallow/v1\nkind: Fallow\nstateDir: state\ncontrolSocket: control\nmetrics: off\n"


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration, below a path short enough for a socket."""
    folder = tmp_path_factory.mktemp("f")
    (folder / "fallow.yaml").write_text(CORE)
    return folder


@pytest.fixture
def asked(folder: Path) -> Iterator[list[dict[str, Any]]]:
    """What was asked of a Fallow that gives one answer to everything."""
    seen: list[dict[str, Any]] = []

    def answer(peer: Peer, question: dict[str, Any]) -> dict[str, Any]:
        seen.append(question)
        return {"scope": "yarn/etl", "state": "drain"}

    server = ControlServer(folder / "control", None, answer)
    yield seen
    server.close()


def test_switch_asks_for_what_the_words_say(
    folder: Path, asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["switch", "drain", "etl", "--why", "upgrade", "-c", str(folder)]) == 0
    assert asked == [{"request": "switch", "state": "drain", "scope": "etl", "why": "upgrade"}]
    assert capsys.readouterr().out == "yarn/etl: drain\n"


def test_whether_a_file_can_be_read_is_found_out_by_reading_it(
    folder: Path, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # as access(2) says to a service with capabilities only
    assert cli.main(["status", "--json", "-c", str(folder)]) == 0
    assert cli.main(["status", "--json", "--socket", str(folder / "control")]) == 0
    assert cli.main(["config", "check", str(folder)]) == 0


@pytest.mark.parametrize("path", ["", "fallow.yaml"])
def test_the_socket_is_the_one_that_the_config_names(folder: Path, asked: list[dict[str, Any]], path: str) -> None:
    assert cli.main(["status", "--json", "-c", str(folder / path)]) == 0
    assert asked == [{"request": "status"}]


@pytest.mark.parametrize("text", [CORE + "capacty: 3\n", CORE + "clustersDir: nowhere\n"])
def test_a_config_that_is_wrong_by_now_keeps_nobody_from_asking(
    folder: Path, asked: list[dict[str, Any]], text: str
) -> None:
    (folder / "fallow.yaml").write_text(text)
    assert cli.main(["explain", "--json", "n1", "-c", str(folder)]) == 0
    assert asked == [{"request": "explain", "node": "n1"}]


@pytest.mark.parametrize("text", ["", ": [", "controlSocket: 5\n", None])
def test_a_config_that_cannot_be_read_means_the_usual_socket(
    folder: Path, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(inspect, "ask", lambda socket, request: asked.append(socket))
    (folder / "fallow.yaml").unlink()
    if text is not None:
        (folder / "fallow.yaml").write_text(text)
    assert cli.main(["status", "--json", "-c", str(folder)]) == 0
    assert cli.main(["status", "--json", "-c", str(folder), "--socket", "/tmp/other"]) == 0
    assert asked == [Path("/run/fallow/control.sock"), Path("/tmp/other")]


@pytest.mark.parametrize("command", ["status", "explain", "switch", "doctor", "restore", "accept-lost-state"])
def test_every_command_has_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "--help"]) == 0
    assert "--json" in capsys.readouterr().out


def test_json_is_the_answer_as_it_is(
    folder: Path, asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["switch", "drain", "etl", "--json", "-c", str(folder)])
    assert json.loads(capsys.readouterr().out) == {"scope": "yarn/etl", "state": "drain"}
    assert asked != []


@pytest.mark.parametrize("command", ["status", "explain"])
def test_an_answer_of_another_version_is_a_clear_error(
    folder: Path, asked: list[dict[str, Any]], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([command, "-c", str(folder)]) == 1
    assert "the running Fallow is of another version: Object missing required field" in capsys.readouterr().err
    assert asked != []


@pytest.mark.parametrize(
    "command", [["status"], ["explain"], ["switch", "hold", "etl"], ["accept-lost-state", "--why", "the disk broke"]]
)
def test_without_a_running_fallow_the_socket_is_named(
    folder: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, "-c", str(folder)]) == 1
    assert capsys.readouterr().err == f"no Fallow is running: nobody serves {folder}/control\n"


def test_a_state_that_no_switch_has_is_refused_with_those_it_has(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["switch", "restored", "etl", "-c", str(folder)]) == 2
    assert "'lend', 'hold', 'drain'" in capsys.readouterr().err


def test_lost_state_is_accepted_with_a_reason_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["accept-lost-state", "-c", str(folder)]) == 2
    assert "Missing option '--why'" in capsys.readouterr().err


def test_doctor_exits_with_1_if_something_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "-c", str(folder)]) == 1
    out = capsys.readouterr().out
    assert f"WRONG  config: clusters: no file in {folder}/clusters.d" in out
    assert f"ok     host: state directory: {folder}/state can be written" in out
    assert out.splitlines()[-1].endswith("1 wrong")


def test_restore_exits_with_0_where_there_is_nothing_to_put_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["restore", "-c", str(folder)]) == 0
    assert capsys.readouterr().out == "no node of any cluster is here: nothing to put back\n"


@pytest.mark.parametrize("name", ["published.jsonl", "original-values.json", "original-values-memory.json"])
def test_restore_and_doctor_exit_with_1_if_the_state_cannot_be_read_and_leave_it(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = folder / "state" / name
    file.parent.mkdir()
    file.write_text('{"version": 3}\n')
    why = f"{file} was written by a newer Fallow: version 3, this one knows up to 1"
    if name != "original-values-memory.json":  # no group may have had that one here
        assert cli.main(["restore", "-c", str(folder)]) == 1
        assert why in " ".join(capsys.readouterr().out.split())
    assert cli.main(["doctor", "-c", str(folder)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert f"WRONG host: state: {why}" in out
    assert "start that one, or give the file up: fallow accept-lost-state" in out
    assert file.read_text() == '{"version": 3}\n'


def test_restore_exits_with_1_if_a_cluster_file_is_broken(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "clusters.d").mkdir()
    (folder / "clusters.d" / "etl.yaml").write_text("kind: Cluster\n")
    assert cli.main(["restore", "-c", str(folder)]) == 1
    assert "clusters.d/etl.yaml" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["run"], ["doctor"], ["restore"]])
def test_a_core_file_that_is_wrong_is_exit_code_2(
    folder: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "fallow.yaml").write_text(CORE + "capacty: 3\n")
    assert cli.main([*command, "-c", str(folder)]) == 2
    assert "capacty" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["status"], ["explain"], ["tasks"], ["switch", "drain", "etl"], ["top", "--for", "1s"]]
)
def test_a_request_to_a_fallow_that_is_stopping_says_so_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "control"))
        server.listen()

        def close_without_an_answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)

        thread = threading.Thread(target=close_without_an_answer)
        thread.start()
        assert cli.main([*command, "-c", str(folder)]) == 1
        thread.join(5)
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", f"Fallow is stopping: it closed {folder}/control without an answer\n")
