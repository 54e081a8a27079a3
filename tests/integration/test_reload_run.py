"""`fallow run` as a process of its own: it follows its files, and reads them at once on SIGHUP."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

CORE = "apiVersion: fallow/v1\nkind: Fallow\nstateDir: state\ncontrolSocket: control\nmetrics: off\n"
CLUSTER = (
    "apiVersion: fallow/v1\nkind: Cluster\nmetadata: {name: etl}\nplugin: yarn\n"
    "spec: {resourceManager: {host: 127.0.0.1}}\n"
)


class Run:
    """A Fallow that runs on the files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = (folder / "log").open("w")
        self.process = subprocess.Popen(self._command("run"), stderr=self.log)

    def _command(self, *arguments: str) -> list[str]:
        code = "import sys; from fallow_core.cli.main import main; sys.exit(main(sys.argv[1:]))"
        return [sys.executable, "-c", code, *arguments, "-c", str(self.folder)]

    def status(self) -> dict[str, Any]:
        done = subprocess.run(self._command("status", "--json"), capture_output=True, text=True, check=False)
        answer: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
        return answer

    def until(self, condition: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        deadline = time.monotonic() + 30
        while not ((status := self.status()) and condition(status)):
            assert time.monotonic() < deadline, (status, (self.folder / "log").read_text())
            time.sleep(0.1)
        return status

    def close(self) -> None:
        self.process.terminate()
        assert self.process.wait(20) == 0
        self.log.close()


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("f")
    (folder / "fallow.yaml").write_text(CORE)
    (folder / "clusters.d").mkdir()
    with closing(Run(folder)) as run:
        run.until(lambda status: True)
        yield run


def names(status: dict[str, Any]) -> list[str]:
    return [cluster["cluster"] for cluster in status["clusters"]]


def test_it_follows_its_files_without_being_told(run: Run) -> None:
    file = run.folder / "clusters.d" / "etl.yaml"
    file.write_text(CLUSTER)
    run.until(lambda status: names(status) == ["yarn/etl"])
    file.write_text(CLUSTER + "nonsense: 1\n")
    status = run.until(lambda status: status["refused_files"])
    assert "nonsense: unknown key" in status["refused_files"][0]["problems"][0]
    assert names(status) == ["yarn/etl"]
    file.write_text(CLUSTER)
    run.until(lambda status: not status["refused_files"])


def test_on_sighup_files_are_read_at_once_also_while_they_are_written(run: Run) -> None:
    file = run.folder / "clusters.d" / "etl.yaml"
    file.write_text(CLUSTER[:60])
    os.kill(run.process.pid, signal.SIGHUP)
    run.until(lambda status: status["refused_files"])
    file.write_text(CLUSTER)
    os.kill(run.process.pid, signal.SIGHUP)
    run.until(lambda status: not status["refused_files"] and names(status) == ["yarn/etl"])
    assert run.process.poll() is None
