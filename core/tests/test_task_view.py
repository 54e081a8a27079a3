from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_agent import CLUSTER, Host, task
from core.tests.qos_values import GIB

from fallow_core.api.decisions import decisions
from fallow_core.api.encoding import to_json
from fallow_core.api.tasks import tasks
from fallow_core.state.terminations_file import FILE_NAME
from fallow_hookspecs import Application, KillResult, TaskState


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(tmp_path, monkeypatch)
    host.add("old", gib=8, age=500.0)
    host.add("young", gib=8, age=5.0)
    return host


def shown(host: Host) -> dict[str, dict[str, Any]]:
    return {task["task"]: task for task in to_json(tasks(host.evictor, host.now))["tasks"]}


def newest(host: Host) -> dict[str, Any]:
    return to_json(decisions(host.evictor, host.now)[0])


# Tasks


def test_a_task_is_shown_with_its_application_its_use_and_its_request(host: Host) -> None:
    host.applications = (
        Application(id="app", name="nightly", user="ada", queue="etl", kind="spark", master_task_ids=("young",)),
    )
    host.tick()
    host.now += 2
    found = shown(host)["young"]
    harm = host.evictor.harms(host.now)[host.evictor.tasks[1].key]
    assert found == {
        "cluster": CLUSTER,
        "task": "young",
        "framework_node": "nm",
        "application": "app",
        "name": "nightly",
        "user": "ada",
        "queue": "etl",
        "role": "master",
        "state": "running",
        "termination": None,
        "requested": {"cpu_milli": 1000, "memory_bytes": GIB},
        "used": {"cpu_milli": 0, "memory_bytes": 8 * GIB},
        "age_seconds": 5.0,
        "listed_ago_seconds": 2.0,
        "harm_core_seconds": harm.total / 1000,
        "harm": harm.arithmetic,
    }


def test_what_is_not_known_of_a_task_is_said_to_be_unknown(host: Host) -> None:
    host.tasks["starting"] = task("starting", age=None, state=TaskState.STARTING)
    host.tick()
    found = shown(host)["starting"]
    assert (found["used"], found["age_seconds"], found["name"], found["state"]) == (None, None, "", "starting")


def test_the_cheapest_to_terminate_comes_first_and_masters_last(host: Host) -> None:
    host.add("master", age=1.0, master=True)
    host.tick()
    assert list(shown(host)) == ["young", "old", "master"]


def test_a_task_on_its_way_out_is_shown_with_why_and_how_far(host: Host) -> None:
    host.killer.result, host.killer.reason = KillResult.FAILED, "busy"
    host.fill(91)
    host.run(2)
    found = shown(host)
    why = "memory_evict: 91 % of memory is used, the threshold is 90 %"
    assert found["young"]["termination"] == {"phase": "graceful", "why": why, "note": "busy"}
    assert found["old"]["termination"] is None


def test_what_spoils_the_picture_is_told(host: Host) -> None:
    (host.state_dir / FILE_NAME).write_text("{")
    host.start()
    host.complete = False
    host.tick()
    host.evictor.save_error = "cannot write it"
    found = to_json(tasks(host.evictor, host.now))
    assert found["node"] == "n1"
    assert found["incomplete"] == {CLUSTER: "the NodeManager does not answer"}
    assert found["terminations_error"] == "cannot write it"
    assert "terminations under way are forgotten" in found["terminations_lost"]


# Decisions


def test_a_choice_is_shown_with_its_arithmetic_and_with_who_may_not_be_terminated(host: Host) -> None:
    host.add("barred", may_be_ended=False)
    host.fill(91)
    host.tick()
    host.now += 3
    found = newest(host)
    assert (found["ago_seconds"], found["strategy"], found["enforced"]) == (3.0, "memory_evict", True)
    assert found["victims"] == [[CLUSTER, "young"]]
    assert found["barred"] == {"barred": "its framework says that it may not be terminated"}
    (decided,) = host.evictor.decisions
    assert found["arithmetic"] == list(decided.choice.arithmetic)
    assert any(line.startswith("terminates young: frees ") for line in found["arithmetic"])
    assert any(line.startswith("spares old: frees ") for line in found["arithmetic"])


def test_what_became_of_a_victim_is_told_at_each_stage(host: Host) -> None:
    host.killer.reason = "asked"
    host.fill(91)
    host.tick()
    host.now += 4
    assert newest(host)["outcomes"] == ["young: graceful, ordered 4 s ago"]
    host.run(26)
    assert newest(host)["outcomes"] == ["young: forced, ordered 30 s ago"]
    host.remove("young")
    host.tick(1.5)
    assert newest(host)["outcomes"] == ["young: gone after force, 31.5 s after the order"]


def test_a_victim_that_went_within_its_grace_is_told_so(host: Host) -> None:
    host.fill(91)
    host.tick()
    host.remove("young")
    host.tick(2)
    assert newest(host)["outcomes"] == ["young: gone within its grace, 2.0 s after the order"]


def test_a_victim_that_could_not_be_terminated_is_told_with_the_reason(host: Host) -> None:
    host.killer.result, host.killer.reason = KillResult.NO_ACCESS, "another user's"
    del host.tasks["old"]
    host.fill(91)
    host.run(3)
    (outcome,) = newest(host)["outcomes"]
    assert outcome.startswith("young: failed, ordered 2 s ago: ")
    assert "another user's" in outcome


def test_the_newest_choice_comes_first(host: Host) -> None:
    host.fill(91)
    host.tick()
    host.fill(99)
    host.run(5)
    victims = [to_json(decision)["victims"] for decision in decisions(host.evictor, host.now)]
    assert victims == [[[CLUSTER, "old"]], [[CLUSTER, "young"]]]
