"""`fallow run` and `fallow agent` as processes of their own, killed, with damaged state files, asked by commands."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CORE = "apiVersion: fallow/v1\nkind: Fallow\nstateDir: state\ncontrolSocket: control\nmetrics: off\n"


class Host:
    """A Fallow that can be killed and started anew on one folder."""

    def __init__(self, folder: Path, role: str) -> None:
        self.folder, self.role = folder, role
        self.state = folder / "state"
        self.process: subprocess.Popen[bytes] | None = None

    def _command(self, *arguments: str) -> list[str]:
        code = "import sys; from fallow_core.cli.main import main; sys.exit(main(sys.argv[1:]))"
        return [sys.executable, "-c", code, *arguments, "-c", str(self.folder)]

    def start(self) -> None:
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(self._command(self.role), stderr=log)
        deadline = time.monotonic() + 30
        while self.call("explain")[0]:
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.1)

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(20)
            self.process = None

    def call(self, *arguments: str) -> tuple[int, str]:
        """The exit code of a command, and what it prints in one line."""
        done = subprocess.run(self._command(*arguments), capture_output=True, text=True, check=False)
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def status(self) -> dict[str, Any]:
        _, text = self.call("status", "--json")
        found: dict[str, Any] = json.loads(text)
        return found


@pytest.fixture(params=["run", "agent"])
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A Fallow that was told to stop, and then killed."""
    folder = tmp_path_factory.mktemp("f")
    (folder / "fallow.yaml").write_text(CORE)
    (folder / "clusters.d").mkdir()
    host = Host(folder, request.param)
    host.start()
    assert host.call("switch", "stop", "all", "--why", "audit")[0] == 0
    host.kill()
    yield host
    host.kill()


def test_lost_state_is_unknown_until_a_person_gives_it_up(host: Host) -> None:
    journal, originals = host.state / "published.jsonl", host.state / "original-values.json"
    os.truncate(journal, journal.stat().st_size // 2)
    originals.write_text('{"version": 3, "boot_id": "x", "groups": {}}')
    damaged = {file.name: file.read_bytes() for file in (journal, originals)}
    whys = (f"{journal} is not JSON in line 1", "was written by a newer Fallow: version 3, this one knows up to 1")
    for starts in (1, 2):
        host.start()
        for command, code in (("status", 0), ("explain", 0), ("restore", 1), ("doctor", 1))[: 4 if starts == 1 else 1]:
            found = host.call(command)
            assert found[0] == code, found
            assert all(why in found[1] for why in whys), found
        if starts == 1:
            host.kill()
    assert {file.name: file.read_bytes() for file in (journal, originals)} == damaged
    assert host.call("accept-lost-state", "--why", "the disk broke")[0] == 0
    host.kill()
    host.start()
    status = host.status()
    assert status["lost_state"] == []
    assert len(status["accepted_losses"]) == 2
    for accepted in status["accepted_losses"]:
        assert (accepted["why"], accepted["when"] > 1.7e9, bool(accepted["who"])) == ("the disk broke", True, True)
        assert (host.state / accepted["kept_as"]).read_bytes() == damaged[accepted["kept_as"].partition(".lost-")[0]]
    assert host.call("accept-lost-state", "--why", "again") == (
        1,
        "every file of the state directory can be read: there is nothing to accept",
    )
