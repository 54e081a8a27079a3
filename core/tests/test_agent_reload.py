"""An agent follows its files by the same reload as `fallow run`."""

import threading
from collections.abc import Callable, Iterator

import pytest
from core.tests.fake_standalone import until
from core.tests.reload_files import Place, framework

from fallow_core.cli.render_status import status_lines
from fallow_core.runtime import reload
from fallow_core.runtime.agent import AgentProcess
from fallow_core.runtime.node_process import NodeProcess


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(reload, "LOOK_SECONDS", 0.02)
    place = Place(tmp_path_factory.mktemp("f"), etl=framework())
    place.cluster("etl")
    return place


@pytest.fixture
def agent(place: Place) -> Iterator[AgentProcess]:
    agent = place.start_agent()
    until(agent, lambda: "alpha/etl" in agent.clusters)
    yield agent
    agent.close()


def read_again(agent: AgentProcess) -> None:
    assert agent.files is not None
    before = agent.refusals.taken + agent.refusals.refused
    agent.files.ask()
    until(agent, lambda: agent.refusals.taken + agent.refusals.refused > before)


def reads(agent: AgentProcess) -> dict[str, float]:
    samples = (sample for family in agent.metrics() for sample in family.samples)
    return {s.labels["outcome"]: s.value for s in samples if s.name == "fallow_config_reads_total"}


def test_how_often_files_were_read_is_measured(place: Place, agent: AgentProcess) -> None:
    assert reads(agent) == {"taken": 0, "refused": 0}
    read_again(agent)
    place.cluster("etl", "weigth: 4\n")
    read_again(agent)
    assert reads(agent) == {"taken": 1, "refused": 1}


def test_a_refused_file_is_logged_once_for_each_problem(
    place: Place, agent: AgentProcess, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    place.cluster("etl", "weigth: 4\n")
    for _ in range(3):
        read_again(agent)
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("file_refused ")]
    assert len(lines) == 1
    assert "unknown key; did you mean 'weight'?" in lines[0]
    place.cluster("etl", "weigth: 4\nwieght: 4\n")
    read_again(agent)
    assert len([r for r in caplog.records if r.getMessage().startswith("file_refused ")]) == 2


def test_a_removed_cluster_is_closed(place: Place, agent: AgentProcess) -> None:
    (place.folder / "clusters.d" / "etl.yaml").unlink()
    until(agent, place.frameworks["etl"].closed.is_set)
    assert agent.requests.status().clusters == ()


def test_a_reader_that_takes_too_long_is_shown(
    place: Place, agent: AgentProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "READ_SECONDS", 0.05)
    place.wait["alpha"] = hangs = threading.Event()
    place.cluster("etl", "weight: 4\n")
    until(agent, lambda: "reading the files takes too long" in str(agent.requests.status().config_problems))
    hangs.set()
    until(agent, lambda: agent.refusals.taken == 1)
    assert agent.requests.status().config_problems == ()


@pytest.mark.parametrize("start", [Place.start, Place.start_agent])
def test_kernel_events_that_do_not_come_are_shown(place: Place, start: Callable[[Place], NodeProcess]) -> None:
    process = start(place)
    process.prober.kernel_events.missing["pressure of cpu"] = "no such file"
    try:
        status = process.requests.status()
        assert "no kernel events for pressure of cpu: no such file" in status.probe_problems
        assert "! no kernel events for pressure of cpu: no such file" in status_lines(status)
    finally:
        process.close()
