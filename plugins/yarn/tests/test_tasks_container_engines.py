"""What a container engine runs for a task is its own, or the list says that it is not known."""

from pathlib import Path

import pytest
from plugins.yarn.tests.proc_fakes import NM, FakeProc, container, environment_of

from fallow_yarn.nm.procfs import read_all
from fallow_yarn.tasks.container_engines import unseen
from fallow_yarn.tasks.container_processes import ContainerProcesses

ONE = container(1)


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


def reasons(proc: FakeProc) -> list[str]:
    stats = read_all(proc.root)
    return list(unseen(ContainerProcesses(proc.root).find((NM,), stats), stats))


def test_a_task_without_an_engine_is_known(proc: FakeProc) -> None:
    proc.launch(601, ONE)
    assert reasons(proc) == []


def test_a_task_that_runs_an_engines_client_makes_the_list_incomplete_with_the_reason(proc: FakeProc) -> None:
    proc.launch(601, ONE)
    proc.add(602, parent=601, session=601, name="docker")
    assert reasons(proc) == [
        f"{ONE} runs docker: what the engine runs for it cannot be told from other use of this host"
    ]


def test_it_is_known_where_what_the_engine_runs_names_the_container(proc: FakeProc) -> None:
    proc.launch(601, ONE)
    proc.add(602, parent=601, session=601, name="docker")
    proc.add(800, parent=1, name="containerd-shim")
    proc.add(801, parent=800, environment=environment_of(ONE))
    assert reasons(proc) == []
