"""The embedded YARN as a whole: it starts fast, its containers are processes, and nothing of it is left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from fallow_yarn.embedded.cluster import EmbeddedYarn, EmbeddedYarnError
from fallow_yarn.embedded.process_guard import marked
from fallow_yarn.embedded.resource_manager import ResourceManager as Embedded
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.errors import NoSuchCallError, StandbyError
from fallow_yarn.ipc.connection import Connection, simple
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.rm.admin import NodeUpdate
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.rm.status import HA_PROTOCOL

SLEEP = "exec sleep 600"
FAST = Settings(heartbeat_seconds=0.05, starting_seconds=0)
ACTIVE, STANDBY = 1, 2
OWNER = """
import sys, time
from pathlib import Path
from fallow_yarn.errors import NoSuchCallError, StandbyError
from fallow_yarn.ipc.connection import Connection, simple
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.rm.admin import NodeUpdate
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.model.size import Size
from fallow_yarn.rm.status import HA_PROTOCOL
from fallow_yarn.embedded.cluster import EmbeddedYarn, EmbeddedYarnError
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
    with EmbeddedYarn(tmp_path / "yarn", FAST) as made:
        yield made


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[EmbeddedYarn]:
    """One with a second ResourceManager."""
    with EmbeddedYarn(tmp_path / "yarn", replace(FAST, ha=True)) as made:
        yield made


@pytest.fixture
def clients() -> Iterator[Callable[..., ResourceManager]]:
    """`clients(rm)`: a client of an embedded ResourceManager."""
    with ExitStack() as stack:

        def client_of(rm: Embedded) -> ResourceManager:
            made = ResourceManager.at(client=rm.client_address, admin=rm.admin_address, web=rm.web_address, user="me")
            stack.callback(made.close)
            return made

        yield client_of


def soon() -> Deadline:
    return Deadline.after(10)


def pid_in(file: Path) -> int:
    wait_for(lambda: file.exists() and file.read_text().strip())
    return int(file.read_text())


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


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


def test_what_a_task_left_running_ends_soon_after_its_first_process(yarn: EmbeddedYarn, tmp_path: Path) -> None:
    app = yarn.submit(containers=1, memory_mb=256, vcores=1, command=f"sleep 600 & echo $! >{tmp_path}/left")
    left = pid_in(tmp_path / "left")
    wait_for(lambda: app.is_over)
    wait_for(lambda: not is_alive(left))


def test_an_end_while_the_node_manager_was_down_is_told_when_it_is_back(yarn: EmbeddedYarn, tmp_path: Path) -> None:
    command = f"while test ! -e {tmp_path}/end; do sleep 0.02; done; exit 7"
    app = yarn.submit(containers=1, memory_mb=256, vcores=1, command=command)
    wait_for(lambda: app.running)
    yarn.nodes["nm1"].end()
    with pytest.raises(EmbeddedYarnError, match="nm1 is not running"):
        _ = yarn.nodes["nm1"].pid
    (tmp_path / "end").touch()
    yarn.nodes["nm1"].start()
    wait_for(lambda: app.ended)
    assert [ended.exit_code for ended in app.ended] == [7]


def test_by_sigterm_a_node_manager_takes_its_containers_with_it(
    yarn: EmbeddedYarn, clients: Callable[..., ResourceManager], tmp_path: Path
) -> None:
    app = yarn.submit(containers=1, memory_mb=256, vcores=1, command=f"echo $$ >{tmp_path}/pid; exec sleep 600")
    pid = pid_in(tmp_path / "pid")
    wait_for(lambda: app.running)
    yarn.nodes["nm1"].end(signal.SIGTERM)
    assert not is_alive(pid)
    (node,) = clients(yarn.rm).nodes(soon())
    # Its master is gone too: the next one will run the task again.
    assert (node.state, app.running, app.pending, app.attempt) == ("SHUTDOWN", frozenset(), 1, 2)


def test_a_node_manager_below_the_minimum_exits_when_the_resource_manager_starts_again(
    yarn: EmbeddedYarn, clients: Callable[..., ResourceManager]
) -> None:
    client, nm = clients(yarn.rm), yarn.nodes["nm1"]
    client.update([NodeUpdate(node_id=nm.node_id, size=Size(100, 1))], soon())
    process = nm.process
    assert process is not None
    assert yarn.rm.scheduler is not None
    node = yarn.rm.scheduler.nodes[nm.node_id]
    wait_for(lambda: node.total == Size(100, 1) and node.is_told)
    with pytest.raises(EmbeddedYarnError, match="doesn't satisfy minimum allocations"):
        yarn.restart_rm()


def test_after_a_fail_over_the_other_one_has_the_containers_and_the_sizes(
    pair: EmbeddedYarn, clients: Callable[..., ResourceManager]
) -> None:
    app = pair.submit(containers=2, memory_mb=256, vcores=1, command=SLEEP)
    wait_for(lambda: len(app.running) == 2)
    first, node_id, before = pair.rm, pair.nodes["nm1"].node_id, app.running
    clients(first).update([NodeUpdate(node_id=node_id, size=Size(1000, 2))], soon())
    assert first.scheduler is not None
    node = first.scheduler.nodes[node_id]
    wait_for(lambda: node.is_told)
    pair.fail_over()
    second = pair.rm
    assert second is not first
    wait_for(lambda: clients(second).read(soon()).nodes[node_id].used == Size(768, 3))
    assert clients(second).read(soon()).nodes[node_id].in_force == Size(1000, 2)
    assert (app.running, app.ended) == (before, ())
    with pytest.raises(StandbyError):
        clients(first).check_rights(soon())
    later = pair.submit(containers=0, memory_mb=256, vcores=1, command=SLEEP)
    assert later.id.startswith(f"application_{second.started_ms}_")


def test_who_is_active_can_be_asked_and_changed_by_ipc(pair: EmbeddedYarn) -> None:
    with ExitStack() as stack:

        def call(rm: Embedded, method: str) -> bytes:
            endpoint = Endpoint.parse(rm.admin_address, setting="test", purpose="the admin port", hadoop_key="test")
            connection = Connection(endpoint, HA_PROTOCOL, "me", simple("me"))
            stack.callback(connection.close)
            return connection.call(method, b"", soon())

        def states() -> list[int]:
            return [call(rm, "getServiceStatus")[1] for rm in pair.rms.values()]

        assert states() == [ACTIVE, STANDBY]
        call(pair.rms["rm1"], "transitionToStandby")
        wait_for(lambda: states() == [STANDBY, STANDBY])
        call(pair.rms["rm2"], "transitionToActive")
        assert states() == [STANDBY, ACTIVE]
        pair.wait_ready()


def test_without_high_availability_there_are_no_such_calls(yarn: EmbeddedYarn) -> None:
    endpoint = Endpoint.parse(yarn.rm.admin_address, setting="test", purpose="the admin port", hadoop_key="test")
    connection = Connection(endpoint, HA_PROTOCOL, "me", simple("me"))
    with pytest.raises(NoSuchCallError, match="Unknown protocol"):
        connection.call("getServiceStatus", b"", soon())
    connection.close()


def test_a_container_that_cannot_be_started_has_failed_and_its_node_goes_on(yarn: EmbeddedYarn) -> None:
    app = yarn.submit(containers=1, memory_mb=256, vcores=1, command=SLEEP)
    wait_for(lambda: app.running)
    usercache = Path(yarn.nodes["nm1"].config.folder) / "local" / "usercache"
    (usercache / "other").write_text("no folder")
    other = yarn.submit(containers=1, memory_mb=256, vcores=1, command=SLEEP, user="other")
    wait_for(lambda: other.is_over)
    assert (other.state, other.attempt) == ("FAILED", 3)
    assert len(app.running) == 1
