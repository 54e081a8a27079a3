"""`fallow run` on a real YARN node whose memory runs out: who ends, how, and that nobody else does.

The pressure is real: the threshold lies a little above what the host uses, and a process outside of YARN allocates what
is missing.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.yarn.application import Application, containers_ended, containers_running, events
from tests.e2e.yarn.cluster import Cluster, StartCluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.fallow_process import MIB, TIED, Fallow, spec_of
from tests.e2e.yarn.processes import end_containers
from tests.e2e.yarn.rest import wait_for
from tests.e2e.yarn.sizes import FAR_MS, resize

from fallow_core.api.control_socket import ask
from fallow_core.node.procfs import PROC_ROOT, read_memory
from fallow_core.state.terminations_file import FILE_NAME

SETUP = Setup(memory_mb=4096, vcores=20, min_mb=8, heartbeat_ms=300)
HOG_MB, HOG_USES_MB = 448, 540
MARGIN_PERCENT = 5
LENT_BELOW_PERCENT = 1
OVERSHOOT = 64 * MIB
BALLAST_AT_MOST = 1600 * MIB
GRACE_SECONDS = 6.0
COOL_DOWN_SECONDS = 4.0
SECONDS = 60

HOG = f"b = b'x' * ({HOG_USES_MB} << 20); open(sys.argv[1], 'w').close(); time.sleep(900)"
BALLAST = """
import sys, time
from pathlib import Path
from fallow_core.node.procfs import PROC_ROOT, read_memory
least, at_most = int(sys.argv[1]), int(sys.argv[2])
def lacking():
    return read_memory(PROC_ROOT).unused_bytes - least
held = [b'x' * min(lacking(), at_most)]
while lacking() > 0 and len(held) < 5:  # others freed some; never as much as a hog frees
    held.append(b'x' * (1 << 25))
print('full', flush=True)
time.sleep(900)
"""

StartFallow = Callable[..., Fallow]
pytestmark = pytest.mark.timeout(5 * SECONDS)


@pytest.fixture(scope="module")
def cluster(yarn_cluster: StartCluster) -> Cluster:
    return yarn_cluster(SETUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """Two applications, the second one younger by some seconds, each with two containers. Each hog uses more memory
    than has to be freed; one container of the younger application is no hog: its end would free nothing.
    """

    folder: Path
    old: Application
    young: Application

    @property
    def youngest(self) -> str:
        """The only hog of the younger application."""
        (hog,) = self.hogs() & {file.name for file in self.young.begun.iterdir()}
        return hog

    def hogs(self) -> set[str]:
        """All hogs."""
        return {file.stem for file in self.folder.glob("*.full")}

    def exits(self) -> dict[str, int]:
        """The exit codes of all containers whose end their masters were told."""
        return {ended.container: ended.exit_code for app in (self.old, self.young) for ended in containers_ended(app)}

    def running(self) -> set[str]:
        """All containers but the masters whose end was not told."""
        return containers_running(self.old) | containers_running(self.young)

    def told_to_end(self) -> set[str]:
        """The hogs that got TERM."""
        return {file.stem for file in self.folder.glob("*.term")}

    def errors(self) -> list[str]:
        """What went wrong in the eyes of the masters."""
        return [each.details for app in (self.old, self.young) for each in events(app) if each.kind == "error"]


def hog(folder: Path, *, most: int, stubborn: bool) -> str:
    """A shell command that uses memory, and on TERM notes that it came, and ends by it, or does not care.

    Only the first `most` containers of the application use memory.
    """
    on_term = "" if stubborn else f': >"{folder}/$CONTAINER_ID.term"; trap - TERM; kill -TERM $$'
    fill = f'{sys.executable} -ISc "import sys, time; {HOG}" "{folder}/$CONTAINER_ID.full"'
    places = " || ".join(f'mkdir "{folder}/$APPLICATION.{place}" 2>&-' for place in range(most))
    application = 'APPLICATION=$(echo "$CONTAINER_ID" | cut -d_ -f3)'
    return f"trap '{on_term}' TERM\n{application}\n{places} || exec sleep 900\n{fill} & wait\nwait"


def submit(cluster: Cluster, folder: Path, hogs: int, *, stubborn: bool) -> Application:
    """An application with two containers, so many of them hogs, all of which have their memory."""
    full = len(list(folder.glob("*.full"))) + hogs
    app = cluster.submit(2, HOG_MB, 1, hog(folder, most=hogs, stubborn=stubborn))
    wait_for(lambda: len(containers_running(app)) == 2, SECONDS, "the containers")
    wait_for(lambda: len(list(folder.glob("*.full"))) == full, SECONDS, "the hogs")
    return app


@contextmanager
def crew(cluster: Cluster, folder: Path, *, stubborn: bool = False) -> Iterator[Crew]:
    """Hogs on a node of its configured size; in the end they are gone."""
    (nm,) = cluster.nms.values()
    resize(cluster, nm.node_id, SETUP.memory_mb, SETUP.vcores, FAR_MS)
    folder.mkdir()
    try:
        old = submit(cluster, folder, 2, stubborn=stubborn)
        time.sleep(2)
        yield Crew(folder=folder, old=old, young=submit(cluster, folder, 1, stubborn=stubborn))
    finally:
        end_containers(cluster.folder)
        wait_for(lambda: cluster.nodes()[nm.node_id].used_mb == 0, SECONDS, "an empty node")


def used_percent() -> float:
    memory = read_memory(PROC_ROOT)
    return 100 * (1 - memory.unused_bytes / memory.total_bytes)


def mark_above_use() -> int:
    """A mark that real use is well below now."""
    return int(used_percent()) + MARGIN_PERCENT


@contextmanager
def pressure(mark: int) -> Iterator[None]:
    """A process outside of YARN that takes memory until a bit more than the threshold is used, and keeps it."""
    total = read_memory(PROC_ROOT).total_bytes
    least = total - total * mark // 100 - OVERSHOOT
    command = [*TIED, sys.executable, "-Ic", BALLAST, str(least), str(BALLAST_AT_MOST)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as ballast:
        try:
            assert ballast.stdout is not None
            assert ballast.stdout.readline() == b"full\n"
            yield
        finally:
            ballast.kill()


@pytest.fixture
def start_fallow(cluster: Cluster, tmp_path: Path) -> Iterator[StartFallow]:
    """Starts `fallow run` with a mode of memory eviction and a threshold; lends up to a bit less."""
    with ExitStack() as stack:

        def start(mark: int, mode: str = "enforce", **more: object) -> Fallow:
            specs = {"real": spec_of(cluster.rm)}
            folder = tmp_path / "fallow"
            fallow = Fallow(folder, specs, cpu_reserved_milli=0, memory_limit_mb=2 * SETUP.memory_mb)
            file = folder / "fallow.yaml"
            core = json.loads(file.read_text())
            core["capacity"]["memory"]["watermark"] = mark - LENT_BELOW_PERCENT
            memory_evict = {
                "mode": mode,
                "threshold": mark,
                "lowerThreshold": mark - 1,
                "coolDown": f"{COOL_DOWN_SECONDS:g}s",
            }
            core["qos"] = {"memoryEvict": memory_evict, "termination": {"grace": f"{GRACE_SECONDS:g}s"}}
            file.write_text(json.dumps(merged(core, more)))
            stack.enter_context(fallow).start()
            return fallow

        yield start


def merged(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """The one with the other in it, mapping by mapping."""
    nested = {k: merged(base[k], v) for k, v in more.items() if isinstance(v, dict) and isinstance(base.get(k), dict)}
    return {**base, **more, **nested}


def tasks(fallow: Fallow) -> dict[str, dict[str, Any]]:
    return {task["task"]: task for task in ask(fallow.socket, {"request": "tasks"})["tasks"]}


def incomplete(fallow: Fallow) -> dict[str, str]:
    """Why not all tasks of a cluster are known."""
    return dict(ask(fallow.socket, {"request": "tasks"})["incomplete"])


def decisions(fallow: Fallow) -> list[dict[str, Any]]:
    return list(ask(fallow.socket, {"request": "explain"})["decisions"])


def logged(fallow: Fallow, event: str) -> list[str]:
    """The lines of the log about an event."""
    return [line for line in fallow.log.read_text().splitlines() if f" {event} " in line]


def terminations(fallow: Fallow) -> list[dict[str, Any]]:
    """The terminations as they would survive a kill; times are monotonic seconds."""
    file = fallow.folder / "state" / FILE_NAME
    return list(json.loads(file.read_text())["terminations"]["active"]) if file.exists() else []


def wait_until_measured(fallow: Fallow, crew: Crew) -> dict[str, dict[str, Any]]:
    """Wait until Fallow knows the use of all tasks; the tasks."""
    found: dict[str, dict[str, Any]] = {}

    def is_measured() -> bool:
        found.clear()
        found.update(tasks(fallow))
        used = {name: task["used"]["memory_bytes"] for name, task in found.items() if task["used"]}
        known = all(used.get(name, 0) >= HOG_USES_MB * MIB for name in crew.hogs() & crew.running())
        return known and used.keys() == found.keys() and len(found) == len(crew.running()) + 2

    wait_for(is_measured, SECONDS, "the measured tasks")
    return found


def test_the_cheapest_task_that_frees_enough_ends_gracefully_and_nothing_else_does(
    cluster: Cluster, start_fallow: StartFallow, tmp_path: Path
) -> None:
    with crew(cluster, tmp_path / "hogs") as hogs:
        mark = mark_above_use()
        fallow = start_fallow(mark)
        found = wait_until_measured(fallow, hogs)
        assert hogs.youngest in list(found)[:2]  # the cheapest first, and masters last
        assert [task["role"] for task in found.values()] == ["worker"] * 4 + ["master"] * 2
        assert {found[name]["requested"]["memory_bytes"] for name in hogs.running()} == {HOG_MB * MIB}
        shown = fallow.succeed("tasks")
        assert all(name[-30:] in shown for name in found)
        wait_for(lambda: room_mb(cluster, fallow) > 0, SECONDS, "a size with room")

        with pressure(mark):
            wait_for(lambda: hogs.youngest in hogs.exits(), SECONDS, "the end of the youngest")
            wait_for(lambda: used_percent() < mark, SECONDS, "its memory")
            time.sleep(COOL_DOWN_SECONDS + 2)
            assert hogs.exits() == {hogs.youngest: 143}, json.dumps(decisions(fallow))
            assert hogs.told_to_end() == {hogs.youngest}
            wait_for(lambda: room_mb(cluster, fallow) < 0, SECONDS, "a size without room")

        (decision,) = decisions(fallow)
        assert (decision["strategy"], decision["enforced"]) == ("memory_evict", True)
        assert [task for _, task in decision["victims"]] == [hogs.youngest]
        need, victim, *spared, freed = decision["arithmetic"]
        assert f"the threshold is {mark} %" in need
        assert victim.startswith(f"terminates {hogs.youngest}: frees ")
        assert [line.split(":")[0] for line in spared[:3]] == [f"spares {name}" for name in cheapest_first(hogs, found)]
        assert all("(master)" in line for line in spared[3:])
        assert freed.endswith("short of 0")
        wait_for(lambda: "gone within its grace" in decisions(fallow)[0]["outcomes"][0], SECONDS, "its outcome")
        explained = " ".join(fallow.succeed("explain").split())
        assert "memory_evict terminated 1 task" in explained
        assert "gone within its grace" in explained
        assert hogs.errors() == []


def room_mb(cluster: Cluster, fallow: Fallow) -> int:
    """How much larger the node is than what is allocated on it; 0 while Fallow and the scheduler see another size."""
    (node,) = cluster.nodes().values()
    memory_mb, _ = fallow.in_force().get(node.node_id, (0, 0))
    return node.total_mb - node.used_mb if memory_mb == node.total_mb else 0


def cheapest_first(crew: Crew, found: dict[str, dict[str, Any]]) -> list[str]:
    """The containers that run, without masters, in the order of their costs."""
    return [name for name in found if name in crew.running()]


def test_a_task_that_ignores_term_is_forced_when_its_grace_is_over_although_fallow_is_killed_meanwhile(
    cluster: Cluster, start_fallow: StartFallow, tmp_path: Path
) -> None:
    with crew(cluster, tmp_path / "hogs", stubborn=True) as hogs:
        mark = mark_above_use()
        fallow = start_fallow(mark)
        wait_until_measured(fallow, hogs)
        with pressure(mark):
            wait_for(lambda: bool(logged(fallow, "kill_ordered")), SECONDS, "the order")
            (before,) = terminations(fallow)
            assert (before["key"][1], before["phase"]) == (hogs.youngest, "graceful")
            time.sleep(max(0.0, before["ordered_at"] + GRACE_SECONDS / 2 - time.monotonic()))
            fallow.end(signal.SIGKILL)
        assert hogs.exits() == {}
        fallow.start()
        back_at = time.monotonic()
        forced: list[dict[str, Any]] = []

        def is_forced() -> bool:
            forced[:] = [termination for termination in terminations(fallow) if termination["forced_at"] is not None]
            return bool(forced)

        wait_for(is_forced, SECONDS, "force")
        (after,) = forced
        assert (after["key"], after["ordered_at"]) == (before["key"], before["ordered_at"])
        assert after["forced_at"] >= before["ordered_at"] + GRACE_SECONDS
        # a grace that began anew would have ended later than this
        assert after["forced_at"] < max(back_at, before["ordered_at"] + GRACE_SECONDS) + GRACE_SECONDS / 2
        wait_for(lambda: hogs.youngest in hogs.exits(), SECONDS, "its end")
        assert time.monotonic() < after["forced_at"] + 20
        wait_for(lambda: terminations(fallow) == [], SECONDS, "the end of its termination")
        assert hogs.exits() == {hogs.youngest: 137}
        assert hogs.errors() == []


def test_a_task_ends_while_the_node_manager_is_stopped_and_all_goes_on_when_it_is_back(
    cluster: Cluster, start_fallow: StartFallow, tmp_path: Path
) -> None:
    with crew(cluster, tmp_path / "hogs") as hogs:
        mark = mark_above_use()
        fallow = start_fallow(mark)
        wait_until_measured(fallow, hogs)
        (nm,) = cluster.nms.values()
        assert nm.process is not None
        nm.process.send_signal(signal.SIGSTOP)
        try:
            with pressure(mark):
                wait_for(lambda: hogs.told_to_end() == {hogs.youngest}, SECONDS, "the signal")
                wait_for(lambda: list(incomplete(fallow)) == ["yarn/real"], SECONDS, "an incomplete list")
            wait_for(lambda: len(tasks(fallow)) == 5, SECONDS, "a list without the task")
            assert hogs.exits() == {}
        finally:
            nm.process.send_signal(signal.SIGCONT)
        wait_for(lambda: hogs.exits() == {hogs.youngest: 143}, SECONDS, "the end at the master")
        wait_for(lambda: "gone" in decisions(fallow)[0]["outcomes"][0], SECONDS, "its outcome")
        assert incomplete(fallow) == {}
        assert len(decisions(fallow)) == 1
        assert hogs.told_to_end() == {hogs.youngest}
        assert [node.state for node in cluster.nodes().values()] == ["RUNNING"]
        assert hogs.errors() == []


def test_observe_ends_nothing_and_says_whom_enforce_would_have_ended(
    cluster: Cluster, start_fallow: StartFallow, tmp_path: Path
) -> None:
    with crew(cluster, tmp_path / "hogs") as hogs:
        mark = mark_above_use()
        fallow = start_fallow(mark, "observe")
        found = wait_until_measured(fallow, hogs)
        with pressure(mark):
            wait_for(lambda: bool(decisions(fallow)), SECONDS, "a decision")
            time.sleep(GRACE_SECONDS + COOL_DOWN_SECONDS)
            first = decisions(fallow)[-1]
        assert [task for _, task in first["victims"]] == [hogs.youngest]
        assert (first["enforced"], first["outcomes"]) == (False, [])
        assert f"terminates {hogs.youngest}: frees " in first["arithmetic"][1]
        assert hogs.youngest in logged(fallow, "tasks_would_terminate")[0]
        assert "would have terminated (observe) 1 task" in " ".join(fallow.succeed("explain").split())
        assert logged(fallow, "tasks_terminate") + logged(fallow, "kill_ordered") == []
        assert terminations(fallow) == []
        assert hogs.told_to_end() == set()
        assert hogs.exits() == {}
        assert tasks(fallow).keys() == found.keys()


def test_after_a_restore_pressure_ends_nothing_nor_does_the_next_start_until_it_lends_again(
    cluster: Cluster, start_fallow: StartFallow, tmp_path: Path
) -> None:
    def lacks() -> bool:
        return any("yarn/real is restored" in shortfall["spared"] for shortfall in fallow.status()["shortfalls"])

    with crew(cluster, tmp_path / "hogs") as hogs:
        mark = mark_above_use()
        fallow = start_fallow(mark)
        found = wait_until_measured(fallow, hogs)
        fallow.succeed("restore")
        with pressure(mark):
            for number in range(2):
                if number:
                    fallow.end(signal.SIGKILL)
                    fallow.start()
                wait_until_measured(fallow, hogs)
                wait_for(lacks, SECONDS, "pressure that is not relieved")
                time.sleep(GRACE_SECONDS + COOL_DOWN_SECONDS)
                assert hogs.told_to_end() == set()
                assert hogs.exits() == {}
                assert tasks(fallow).keys() == found.keys()
                assert logged(fallow, "kill_ordered") == logged(fallow, "tasks_terminate") == []
            assert "pressure on memory is not relieved" in " ".join(fallow.succeed("status").split())
            fallow.succeed("switch", "lend", "yarn/real")
            wait_for(lambda: hogs.exits() == {hogs.youngest: 143}, SECONDS, "the end of the youngest")
        assert hogs.errors() == []


def test_starting_and_stopping_with_everything_enforced_ends_nothing_where_more_is_allocated_than_can_be_lent(
    cluster: Cluster, start_fallow: StartFallow, tmp_path: Path
) -> None:
    with crew(cluster, tmp_path / "hogs") as hogs:
        at_once = {"mode": "enforce", "after": "1s"}
        fallow = start_fallow(
            95,
            capacity={"memory": {"watermark": 1}},
            takeBack={**at_once, "notice": "60s"},
            qos={"cpuEvict": {"mode": "enforce"}, "overdraftEvict": at_once},  # CPU: after a minute
        )
        for number in range(2):
            if number:
                fallow.start()
            wait_until_measured(fallow, hogs)
            wait_for(lambda: fallow.status()["nodes"][0]["memory"]["overdraft"] > 0, SECONDS, "an overdraft")
            time.sleep(8)
            assert decisions(fallow) == []
            assert fallow.end(signal.SIGTERM) == 0
        assert logged(fallow, "take_back_starts") == logged(fallow, "tasks_terminate") == []
        assert hogs.told_to_end() == set()
        assert hogs.exits() == {}
        assert hogs.errors() == []
