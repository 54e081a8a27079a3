"""What several test modules need."""

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from core.tests.history_counts import Counts

from fallow_core.node.memory_info import PAGE_BYTES

if TYPE_CHECKING:
    from core.tests.fake_agent_process import Started, Tasks

HISTORIES = pytest.StashKey[Counts]()
Install = Callable[..., None]


@pytest.fixture(scope="session")
def histories(pytestconfig: pytest.Config) -> Counts:
    """What histories of the ledger were tried, and what was exposed in them: printed at the end of the run."""
    return pytestconfig.stash.setdefault(HISTORIES, Counts())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash.get(HISTORIES, None)
    if counts is not None:
        terminalreporter.section("ledger histories")
        for line in counts.lines():
            terminalreporter.write_line(line)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Lays out an installed distribution with one entry point, of a plugin: `install(distribution, entry, source)`.

    `entry` is one line of entry_points.txt; `source` is the module that its target names.
    """
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    modules: list[str] = []

    def lay_out(distribution: str, entry: str, source: str, group: str = "fallow.plugins") -> None:
        module = entry.partition("=")[2].strip().partition(":")[0]
        (site / f"{module}.py").write_text(dedent(source))
        info = site / f"{distribution.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
        modules.append(module)

    yield lay_out
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def agent_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where an agent has its files: a short path, since its socket is there too."""
    return tmp_path_factory.mktemp("a")


@pytest.fixture
def tasks() -> "Tasks":
    """A framework with two tasks."""
    from core.tests.fake_agent_process import Tasks

    return Tasks()


@pytest.fixture
def started(agent_folder: Path, tasks: "Tasks") -> "Iterator[Started]":
    """An agent that knows the two tasks, and terminates tasks under pressure and for overdraft."""
    from core.tests.fake_agent_process import QOS, Started

    started = Started(agent_folder, {"etl": tasks}, qos=QOS)
    started.until(lambda: len(started.agent.evictor.tasks) == 2)
    yield started
    started.agent.close()


class FakeProc:
    """A proc file system in a directory, with the files and layouts that are read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.process(1, parent=0, start=1, name="init")
        self.host()

    def host(
        self,
        *,
        busy: int = 0,
        cpus: int = 2,
        total_kib: int = 8_000_000,
        available_kib: int = 6_000_000,
        free_kib: int = 5,
        stolen: int = 777,
    ) -> None:
        """Counters of the host; `busy` in ticks, spread over the kinds of time that are use."""
        user, rest = busy - busy // 4 * 3, busy // 4
        per_cpu = "".join(f"cpu{number} 1 0 1 1 1 0 1 0 0 0\n" for number in range(cpus))
        self.write(
            "stat", f"cpu  {user} {rest} {rest} 99999 555 0 {rest} {stolen} {user} 0\n{per_cpu}intr 1 0 0\nctxt 5\n"
        )
        self.write(
            "meminfo", f"MemTotal: {total_kib} kB\nMemFree: {free_kib} kB\nMemAvailable: {available_kib} kB\nHuge: 0\n"
        )

    def zones(self, *, managed_kib: int, free_kib: int, listed_kib: Sequence[int]) -> None:
        """A zone of memory, with what is in the list of each CPU."""
        managed, free, *listed = (kib * 1024 // PAGE_BYTES for kib in (managed_kib, free_kib, *listed_kib))
        lists = "".join(f"    cpu: {n}\n              count:    {count}\n" for n, count in enumerate(listed))
        zone = f"  pages free     {free}\n        managed  {managed}\n  pagesets\n{lists}"
        self.write("zoneinfo", f"Node 0, zone   Normal\n{zone}")

    def process(
        self,
        pid: int,
        *,
        parent: int = 1,
        start: int = 10,
        own: int = 0,
        reaped: int = 0,
        private_pages: int = 0,
        name: str = "java",
    ) -> None:
        """A process that lives; times in ticks."""
        (self.root / f"{pid}").mkdir(exist_ok=True)
        middle = f"{pid} {pid} 0 -1 4194304 11 12 13 14"
        times = f"{own - own // 3} {own // 3} {reaped - reaped // 3} {reaped // 3}"
        resident = private_pages + 300
        stat = f"{pid} ({name}) S {parent} {middle} {times} 20 0 1 0 {start} 1000 {resident} 1844 1 1 0\n"
        self.write(f"{pid}/stat", stat)
        self.write(f"{pid}/statm", f"9000 {resident} 300 1 0 500 0\n")

    def end(self, pid: int) -> None:
        """The process is gone."""
        shutil.rmtree(self.root / f"{pid}")

    def write(self, name: str, content: str) -> None:
        """Any content in any file."""
        (self.root / name).write_text(content)


@pytest.fixture
def fake_proc(tmp_path: Path) -> FakeProc:
    root = tmp_path / "proc"
    root.mkdir()
    return FakeProc(root)
