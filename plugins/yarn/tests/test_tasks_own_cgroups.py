from pathlib import Path

import pytest

from fallow_hookspecs import Process
from fallow_yarn.nm.procfs import SETTLED_TICKS, TURNS
from fallow_yarn.tasks.own_cgroups import OwnCgroups

NAME = "container_1700000000000_0001_01_000002"
PROCESS = Process(10, 1000)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "10").mkdir()
    return tmp_path


def lists(proc: Path, seen: OwnCgroups, cgroup: str, now_ticks: int) -> tuple[str, ...]:
    """The answer of one list, while the kernel says that the process is there."""
    (proc / "10" / "cgroup").write_text(f"3:cpu:/{cgroup}\n")
    seen.start(now_ticks)
    return seen.of(NAME, PROCESS)


def test_a_young_process_is_looked_up_at_each_list(proc: Path) -> None:
    seen = OwnCgroups(proc)
    assert lists(proc, seen, "yarn", 1001) == ()
    assert lists(proc, seen, f"yarn/{NAME}", 1002) == (f"yarn/{NAME}",)


def test_a_settled_one_is_looked_up_once_in_some_lists(proc: Path) -> None:
    seen, settled = OwnCgroups(proc), 1000 + SETTLED_TICKS
    lists(proc, seen, "yarn", settled)
    found = [lists(proc, seen, f"yarn/{NAME}", settled) for _ in range(TURNS)]
    assert found[0] == ()
    assert found[-1] == (f"yarn/{NAME}",)


def test_a_process_that_no_list_asks_for_is_forgotten(proc: Path) -> None:
    seen = OwnCgroups(proc)
    lists(proc, seen, "yarn", 1001)
    for _ in range(2):
        seen.start(1002)
    assert not seen.known
    assert not seen._before
