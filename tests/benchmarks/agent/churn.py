"""What a container's life costs `fallow run` with the YARN plugin: some containers stay, others come and go.

    python -m tests.benchmarks.agent.churn [--stay 300] [--seconds 60] [--groups] [--enforce] [--agents] [CHECKOUT ...]

Each checkout of this repository, by default this one, runs a process of its own at the same time, beside the same
NodeManager: what else the host does hits all of them. Ratios are to the first one. With `--agents` they are agents, and
the first one has the small plugin of the stage, which knows the same tasks by their groups.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.benchmarks.agent import cost
from tests.benchmarks.agent.stage import ACCOUNTING, CPU, Stage, until

from fallow_core.api.control_socket import ask
from fallow_core.errors import NotRunningError
from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.model.size import Size

MASTER_MB, TASK_MB, VCORE_MILLI = 256, 4, 1
"""Small ones, so that this host can lend what all of them request."""
SLOTS = 10
STAYS, ENDS = "exec sleep 3600", "sleep 1; exec sleep 2"
GROUP = "d={}/$CONTAINER_ID; until mkdir -p $d && echo $$ >$d/cgroup.procs; do :; done; "
"""A container makes the group that the LinuxContainerExecutor would make; an empty one may be removed just then."""
HEARTBEAT_SECONDS = 2.0
"""At each one the embedded NodeManager reads files of all its containers; a real one uses less CPU."""
SETTLE_SECONDS, CLEAN_SECONDS = 20.0, 0.2
FALLOW = "import sys; from fallow_core.cli.main import main; sys.exit(main())"
SOURCES = ("", "core/src", "hookspecs/src", "plugins/yarn/src")
MOST_THREADS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one process had used at a time: CPU in seconds, also by thread, and resident MiB."""

    at: float
    cpu: float
    threads: dict[str, float]
    resident: float


@dataclass(slots=True, kw_only=True)
class Run:
    """A process of one checkout, in a group of its own for CPU accounting. `read`: its readings in their order."""

    checkout: Path
    folder: Path
    group: Path
    process: "subprocess.Popen[bytes]"
    read: list[Reading] = field(default_factory=list)

    @classmethod
    def start(cls, checkout: Path, folder: Path, group: Path, files: Mapping[str, Any], command: Sequence[str]) -> Self:
        """Start it with these files, each with its kind and its content."""
        (folder / "clusters.d").mkdir(parents=True)
        group.mkdir()
        for name, content in files.items():
            (folder / name).write_text(json.dumps({"apiVersion": "fallow/v1", **content}))
        sources = os.pathsep.join(str(checkout / source) for source in SOURCES)
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *command], stderr=log, env={**os.environ, "PYTHONPATH": sources}
            )
        (group / "cgroup.procs").write_text(f"{process.pid}")
        return cls(checkout=checkout, folder=folder, group=group, process=process)

    def tasks(self) -> int:
        """How many tasks it knows."""
        try:
            return len(ask(self.folder / "s", {"request": "tasks"})["tasks"])
        except NotRunningError:
            return 0

    def take(self) -> None:
        """Take a reading."""
        threads: dict[str, float] = {}
        for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
            used = int((thread / "schedstat").read_text().split()[0]) / 1e9
            threads["main" if thread.name == f"{self.process.pid}" else f"thread {thread.name}"] = used
        resident = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        assert resident is not None
        cpu = int((self.group / "cpuacct.usage").read_text()) / 1e9
        self.read.append(Reading(at=time.monotonic(), cpu=cpu, threads=threads, resident=int(resident[1]) / 1024))

    def share(self, first: int) -> float:
        """The share of a core that it used from one reading to the next one."""
        before, after = self.read[first : first + 2]
        return (after.cpu - before.cpu) / (after.at - before.at)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(20)


def measure(given: argparse.Namespace) -> tuple[list[Run], int]:
    """One process a checkout, with readings before and after a quiet time, and before and after one with churn.

    Returns also how many lives ended during the latter.
    """
    vcores = given.stay + SLOTS + 1
    size = Settings(
        memory_mb=2 * MASTER_MB + TASK_MB * vcores,
        vcores=vcores,
        minimum=Size(1, 1),
        heartbeat_seconds=HEARTBEAT_SECONDS,
    )
    settings: dict[str, Any] = {"qos": cost.ENFORCED} if given.enforce else {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stage = stack.enter_context(Stage(folder))
        group = GROUP.format(CPU / stage.group) if given.groups else ""
        yarn = stack.enter_context(EmbeddedYarn(folder / "yarn", size))
        stack.enter_context(_cleaning(CPU / stage.group))
        stage.put(yarn.nodes["nm1"].pid, "batch")
        yarn.submit(containers=given.stay - 1, memory_mb=TASK_MB, vcores=1, command=group + STAYS)
        rm = yarn.rm
        addresses = {"host": "127.0.0.1", "client": rm.client_address, "admin": rm.admin_address, "web": rm.web_address}
        spec = {"resourceManager": addresses, "user": "tester", "vcoreMilli": VCORE_MILLI}
        core = {"stateDir": "state", "controlSocket": "s", "metrics": "off", "node": {"name": "bench"}, **settings}
        cluster = {"kind": "Cluster", "metadata": {"name": "bench"}, "plugin": "yarn", "spec": spec}
        if given.agents:
            cluster |= {"roles": ["agent"], "spec": {"nodeManagers": [yarn.nodes["nm1"].node_id]}}
        with_yarn = {"fallow.yaml": {"kind": "Fallow", **core}, "clusters.d/yarn.yaml": cluster}
        small = {"fallow.yaml": with_yarn["fallow.yaml"]}
        started = [(checkout, with_yarn) for checkout in given.checkouts]
        runs = []
        for number, (checkout, files) in enumerate([(given.checkouts[0], small)] * given.agents + started):
            name = f"run{number}"
            command = ["-c", FALLOW, "run", "--config", str(folder / name)]
            if given.agents:
                command = ["-m", "tests.benchmarks.agent.driver", str(folder / name), stage.top, "still"]
            run = Run.start(checkout.absolute(), folder / name, ACCOUNTING / stage.top / name, files, command)
            stack.callback(run.stop)
            runs.append(run)
        most = given.stay - given.agents  # the master has no group, so the small plugin does not know it
        until(lambda: all(run.tasks() >= most for run in runs), "they know all tasks")
        time.sleep(SETTLE_SECONDS)
        _take_two(runs, given.seconds)
        app = yarn.submit(containers=10_000, memory_mb=TASK_MB, vcores=1, command=group + ENDS)
        until(lambda: app.finished > SLOTS, "containers come and go")
        before = app.finished
        _take_two(runs, given.seconds)
        return runs, app.finished - before


def _take_two(runs: Sequence[Run], seconds: float) -> None:
    for run in runs:
        run.take()
    time.sleep(seconds)
    for run in runs:
        run.take()


@contextmanager
def _cleaning(folder: Path) -> Iterator[None]:
    """Remove the groups of ended containers, as their executor would."""
    done = threading.Event()

    def clean() -> None:
        while not done.wait(CLEAN_SECONDS):
            for group in folder.glob("container_*"):
                with suppress(OSError):
                    group.rmdir()

    thread = threading.Thread(target=clean, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def main() -> None:
    """Print what quiet containers cost, and the lives of others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[Path.cwd()])
    parser.add_argument("--stay", type=int, default=300, help="containers that stay")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to measure each part")
    parser.add_argument("--groups", action="store_true", help="each container has a group of its own")
    parser.add_argument("--enforce", action="store_true", help="limit batch; only with one checkout")
    parser.add_argument(
        "--agents", action="store_true", help="measure agents, the small plugin's first; needs --groups"
    )
    given = parser.parse_args()
    runs, lives = measure(given)
    first_quiet, first_life = runs[0].share(0), _life(runs[0], lives)
    print(f"{given.stay} containers stay, {lives} lives in {given.seconds:.0f} s")
    for run in runs:
        quiet, life = run.share(0), _life(run, lives)
        print(f"{run.checkout}: quiet {quiet:.2%} of a core ({quiet / first_quiet:.2f}), churn {run.share(2):.2%}")
        print(f"  {1000 * life:.1f} ms a life ({life / first_life:.2f})")
        print(f"  {', '.join(f'{reading.resident:.1f}' for reading in run.read)} MiB")
        for part, at in (("quiet", 0), ("churn", 2)):
            before, after = run.read[at : at + 2]
            used = {name: spent - before.threads.get(name, 0.0) for name, spent in after.threads.items()}
            most = sorted(used.items(), key=lambda item: -item[1])[:MOST_THREADS]
            print(f"  {part}:", ", ".join(f"{name} {spent / (after.at - before.at):.2%}" for name, spent in most))


def _life(run: Run, lives: int) -> float:
    """CPU seconds beyond those of a quiet time, by life."""
    return (run.share(2) - run.share(0)) * (run.read[3].at - run.read[2].at) / lives


if __name__ == "__main__":
    main()
