"""fallow-yarn answers the same in Fallow's process and through the copilot, and `fallow run` lends through it."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.copilot_stage import Copilot, build, outcome, through, wait_for

from fallow_core.plugins import discovery
from fallow_core.plugins.instance import PluginInstance
from fallow_hookspecs import CapacityReport, KillOrder, KillResult, Node, Offer, Refusal, Resources, TaskList
from fallow_yarn.embedded.application import Application
from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.settings import Settings

GIB = 2**30
NODE = Node(name="worker-1", addresses=("127.0.0.1", "localhost"))
CORE = (
    "apiVersion: fallow/v1\nkind: Fallow\nstateDir: state\ncontrolSocket: control\nmetrics: off\n"
    "publishing: {mode: enforce}\n"
)


@pytest.fixture
def yarn(tmp_path: Path) -> Iterator[EmbeddedYarn]:
    with EmbeddedYarn(tmp_path / "yarn", Settings(heartbeat_seconds=0.05, starting_seconds=0)) as made:
        yield made


@pytest.fixture
def app(yarn: EmbeddedYarn) -> Application:
    """Three containers that run."""
    submitted = yarn.submit(containers=3, memory_mb=256, vcores=1, command="exec sleep 600")
    wait_for(lambda: len(submitted.running) == 3)
    return submitted


@pytest.fixture
def spec(yarn: EmbeddedYarn) -> dict[str, Any]:
    rm = yarn.rm
    addresses = {"host": "127.0.0.1", "client": rm.client_address, "admin": rm.admin_address, "web": rm.web_address}
    return {"resourceManager": addresses, "user": "tester"}


@pytest.fixture
def copilot(tmp_path: Path, spec: dict[str, Any]) -> Iterator[Copilot]:
    made = Copilot(tmp_path / "copilot", "yarn", spec)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def both(copilot: Copilot, spec: dict[str, Any]) -> Iterator[tuple[PluginInstance, PluginInstance]]:
    """An instance in this process, and one behind the copilot."""
    pair = build(discovery.load("yarn"), spec), through(copilot)
    yield pair
    for each in pair:
        outcome(each.close(5.0))


def without_ages(answer: CapacityReport | TaskList) -> CapacityReport | TaskList:
    if isinstance(answer, CapacityReport):
        rows = tuple(replace(row, age_seconds=0.0, started_age_seconds=0.0) for row in answer.rows)
        return replace(answer, rows=rows)
    tasks = tuple(sorted((replace(task, age_seconds=0.0) for task in answer.tasks), key=lambda task: task.id))
    return replace(answer, tasks=tasks, age_seconds=0.0)


def same(ask: Callable[[PluginInstance], Any], both: tuple[PluginInstance, PluginInstance]) -> Any:
    """What both answer, when that is the same; what they talk about changes all the time."""
    end = time.monotonic() + 20
    while True:
        here, there = (without_ages(outcome(ask(each))) for each in both)
        if here == there:
            return there
        assert time.monotonic() < end, (here, there)


@pytest.mark.usefixtures("app")
def test_reports_and_lists_are_the_same(both: tuple[PluginInstance, PluginInstance]) -> None:
    report = same(lambda asked: asked.start_report((NODE,), 10.0), both)
    (row,) = report.rows
    assert row.allocated == Resources(4000, (3 * 256 + 256) << 20)
    assert len(report.applications) == 1
    listed = same(lambda asked: asked.start_list_tasks(NODE, 10.0), both)
    assert listed.complete
    assert len(listed.tasks) == 4
    assert len(listed.daemons) == 1
    assert all(task.processes for task in listed.tasks)


@pytest.mark.usefixtures("app")
def test_what_is_offered_and_ended_through_the_copilot_is_so(both: tuple[PluginInstance, PluginInstance]) -> None:
    here, there = both
    (row,) = same(lambda asked: asked.start_report((NODE,), 10.0), both).rows
    size = Resources(6000, 3 * GIB)
    offers = tuple(
        Offer(node=NODE.name, framework_node=name, total=size) for name in (row.framework_node, "elsewhere:1")
    )
    published = outcome(there.start_publish((NODE,), offers, 10.0))
    of_node = {answer.framework_node: answer for answer in published.answers}
    assert of_node[row.framework_node].accepted == size
    assert of_node["elsewhere:1"].refusal is Refusal.UNKNOWN_NODE

    def in_force(report: CapacityReport) -> Resources | None:
        return report.rows[0].in_force

    wait_for(lambda: in_force(outcome(here.start_report((NODE,), 10.0))) == size)
    assert in_force(same(lambda asked: asked.start_report((NODE,), 10.0), both)) == size

    tasks = same(lambda asked: asked.start_list_tasks(NODE, 10.0), both).tasks
    order = KillOrder(task_ids=(tasks[-1].id, "container_1_0001_01_000099"), reason="memory is short", force=True)
    answers = outcome(there.start_kill_tasks(NODE, order, 10.0)).answers
    assert [answers[task_id].result for task_id in order.task_ids] == [KillResult.TERMINATING, KillResult.ALREADY_GONE]

    def listed(asked: PluginInstance) -> set[str]:
        return {task.id for task in outcome(asked.start_list_tasks(NODE, 10.0)).tasks}

    wait_for(lambda: all(tasks[-1].id not in listed(each) for each in both))
    again = [outcome(each.start_kill_tasks(NODE, order, 10.0)).answers for each in both]
    assert again[0] == again[1]


def test_an_operator_reads_the_same_of_the_framework(both: tuple[PluginInstance, PluginInstance]) -> None:
    here, there = (outcome(each.start_diagnose((NODE,), 15.0)) for each in both)
    assert [finding.subject for finding in there[:2]] == ["copilot's socket", "copilot"]
    assert [(each.subject, each.ok) for each in there[2:]] == [(each.subject, each.ok) for each in here]


class Fallow:
    """`fallow run` on the files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = (folder / "log").open("w")
        self.process = subprocess.Popen(self._command("run"), stderr=self._log)

    def _command(self, *arguments: str) -> list[str]:
        return [str(Path(sys.executable).parent / "fallow"), *arguments, "-c", str(self._folder)]

    def ask(self, *arguments: str) -> Any:
        done = subprocess.run(self._command(*arguments, "--json"), capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.stdout else {}

    def cluster(self) -> dict[str, Any]:
        found: dict[str, Any] = next(iter(self.ask("status").get("clusters", ())), {})
        return found

    def end(self) -> None:
        self.process.terminate()
        assert self.process.wait(20) == 0
        self._log.close()


@pytest.fixture
def fallow(tmp_path: Path, copilot: Copilot) -> Iterator[Fallow]:
    folder = tmp_path / "fallow"
    (folder / "clusters.d").mkdir(parents=True)
    (folder / "fallow.yaml").write_text(CORE)
    (folder / "clusters.d" / "batch.yaml").write_text(
        "apiVersion: fallow/v1\nkind: Cluster\nmetadata: {name: batch}\nplugin: copilot\n"
        f"spec: {{socket: {copilot.socket}}}\n"
    )
    running = Fallow(folder)
    yield running
    running.end()


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("app")
def test_fallow_run_lends_through_the_copilot_and_goes_on_after_its_restart(
    fallow: Fallow, yarn: EmbeddedYarn, copilot: Copilot
) -> None:
    scheduler = yarn.rm.scheduler
    assert scheduler is not None
    wait_for(lambda: len(scheduler.taken) > 0, 60)
    cluster = fallow.cluster()
    assert cluster["cluster"] == "copilot/batch"
    assert cluster["detail"].startswith("ResourceManager 3.5.0 at ")
    assert cluster["rows"][0]["allocated"]["cpu_milli"] == 4000
    assert {task["cluster"] for task in fallow.ask("tasks")["tasks"]} == {"copilot/batch"}
    copilot.kill()
    wait_for(lambda: "cannot be reached" in fallow.cluster()["reads"]["reason"], 60)
    copilot.start()
    wait_for(lambda: fallow.cluster()["reads"]["state"] == "ok", 90)
    found = {each["subject"]: each for each in fallow.ask("doctor") if each["about"] == "copilot/batch"}
    assert str(copilot.socket) in found["copilot's socket"]["detail"]
    assert found["copilot"]["detail"].startswith("plugin 'yarn' of fallow-yarn ")
    assert found["ResourceManager"]["ok"]
