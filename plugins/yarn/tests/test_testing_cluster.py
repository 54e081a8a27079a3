"""The embedded YARN as a whole: it starts fast, its containers are processes, and nothing of it is left behind."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fallow_yarn.testing.cluster import EmbeddedYarn
from fallow_yarn.testing.guard import marked
from fallow_yarn.testing.settings import Settings

SLEEP = "exec sleep 600"
OWNER = """
import sys, time
from pathlib import Path
from fallow_yarn.testing.cluster import EmbeddedYarn
yarn = EmbeddedYarn(Path(sys.argv[1]))
yarn.start()
app = yarn.submit(containers=1, memory_mb=256, vcores=1, command="trap '' TERM; env -i sleep 601")
while not app.running:
    time.sleep(0.01)
print("runs", flush=True)
time.sleep(60)
"""


def wait_for(test: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not test():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.01)


@pytest.fixture
def yarn(tmp_path: Path) -> Iterator[EmbeddedYarn]:
    with EmbeddedYarn(tmp_path / "yarn", Settings(heartbeat_seconds=0.05, starting_seconds=0)) as made:
        yield made


def test_tasks_run_as_processes_and_their_ends_are_told(yarn: EmbeddedYarn, tmp_path: Path) -> None:
    command = f'echo "$CONTAINER_ID" >{tmp_path}/$$; test -e {tmp_path}/again || {{ touch {tmp_path}/again; exit 3; }}'
    app = yarn.submit(containers=2, memory_mb=256, vcores=1, command=command, attempts=2)
    wait_for(lambda: app.is_over)
    assert (app.state, app.finished, app.progress) == ("FINISHED", 2, 1.0)
    assert sorted(ended.exit_code for ended in app.ended) in ([0, 0, 3], [0, 0, 3, 3])
    ran = {file.read_text().strip() for file in tmp_path.iterdir() if file.name.isdigit()}
    assert ran == {ended.container for ended in app.ended}


def test_what_finds_no_room_waits_in_its_turn(yarn: EmbeddedYarn) -> None:
    first = yarn.submit(containers=3, memory_mb=1024, vcores=1, command=SLEEP)
    wait_for(lambda: len(first.running) == 3)
    second = yarn.submit(containers=2, memory_mb=512, vcores=1, command=SLEEP)
    assert (second.pending, second.running) == (2, frozenset())


def test_when_it_stops_nothing_is_left(tmp_path: Path) -> None:
    yarn = EmbeddedYarn(tmp_path / "yarn")
    with yarn:
        app = yarn.submit(containers=1, memory_mb=256, vcores=1, command="trap '' TERM; env -i sleep 600")
        wait_for(lambda: app.running)
        assert len(marked(str(tmp_path / "yarn"))) > 3
    assert marked(str(tmp_path / "yarn")) == set()


def test_when_its_owner_is_killed_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "yarn"
    with subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"runs\n"
        assert os.getpid() not in marked(str(folder)) != set()
        owner.kill()
    wait_for(lambda: marked(str(folder)) == set())
