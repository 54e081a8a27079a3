import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fallow_core.api.control_socket import ControlServer, Peer
from fallow_core.api.encoding import from_json
from fallow_core.api.tasks import Tasks
from fallow_core.cli import main as cli
from fallow_core.cli import tasks
from fallow_core.cli.table import WIDTH

GIB = 1 << 30


def task(task_id: str, **changes: Any) -> dict[str, Any]:
    return {
        "cluster": "yarn/etl",
        "task": task_id,
        "framework_node": "nm:1",
        "application": "application_1",
        "name": "nightly",
        "user": "ada",
        "queue": "root.etl",
        "role": "worker",
        "state": "running",
        "termination": None,
        "requested": {"cpu_milli": 2000, "memory_bytes": 4 * GIB},
        "used": {"cpu_milli": 500, "memory_bytes": 3 * GIB},
        "age_seconds": 90.0,
        "listed_ago_seconds": 1.0,
        "harm_core_seconds": 330.4,
        "harm": "330 core-s = ...",
        **changes,
    }


def answer(*tasks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    found = {"node": "n1", "tasks": list(tasks), "incomplete": {}, "terminations_error": "", "terminations_lost": ""}
    return found | changes


def lines(found: dict[str, Any]) -> list[str]:
    return tasks.lines(from_json(Tasks, found))


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A configuration whose Fallow knows one task."""
    folder = tmp_path_factory.mktemp("f")
    text = "apiVersion: fallow/v1\nkind: Fallow\nstateDir: state\ncontrolSocket: control\nmetrics: off\n"
    (folder / "fallow.yaml").write_text(text)

    def reply(peer: Peer, question: dict[str, Any]) -> dict[str, Any]:
        assert question == {"request": "tasks"}
        return answer(task("container_1"))

    server = ControlServer(folder / "control", None, reply)
    yield folder
    server.close()


def test_the_command_shows_what_the_running_fallow_knows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tasks", "-c", str(folder)]) == 0
    assert "container_1" in capsys.readouterr().out
    assert cli.main(["tasks", "--json", "-c", str(folder)]) == 0
    assert json.loads(capsys.readouterr().out) == answer(task("container_1"))


def test_a_task_is_a_line_with_use_request_age_and_cost() -> None:
    head, row, note = lines(answer(task("container_1")))
    assert " ".join(head.split()) == "TASK APPLICATION USER QUEUE ROLE STATE CPU USED OF GiB USED OF AGE COST"
    assert " ".join(row.split()) == "container_1 nightly ada root.etl worker running 0.50 2.00 3.00 4.00 90 s 330"
    assert note == "COST: core-seconds lost by terminating it"


def test_what_is_not_known_is_a_question_mark_and_an_application_without_a_name_has_its_id() -> None:
    unknown = task("container_1", name="", user="", queue="", used=None, age_seconds=None)
    row = lines(answer(unknown))[1]
    assert " ".join(row.split()) == "container_1 application_1 ? ? worker running ? 2.00 ? 4.00 ? 330"


def test_a_task_on_its_way_out_says_how_far_it_is() -> None:
    termination = {"phase": "forced", "why": "memory_evict: full", "note": ""}
    assert "  running, forced  " in lines(answer(task("container_1", termination=termination)))[1]


def test_a_long_id_is_not_cut() -> None:
    name = "x" * 30 + "container_e17_1700000000000_0001_01_000002"
    row = lines(answer(task(name)))[1]
    assert row.split()[0] == name


def test_an_empty_host_says_so() -> None:
    assert lines(answer()) == ["no task is known on this host"]


def test_what_spoils_the_picture_comes_first_and_fits_the_screen() -> None:
    found = lines(
        answer(
            incomplete={"yarn/etl": "the NodeManager does not answer " * 10},
            terminations_error="cannot write x",
            terminations_lost="y is unreadable",
        )
    )
    assert found[0].startswith("! yarn/etl: not all tasks are known: the NodeManager does not answer")
    assert found[-3:] == ["! cannot write x", "! y is unreadable", "no task is known on this host"]
    assert all(len(line) <= WIDTH for line in found)
