import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fallow_hookspecs import Daemon, Process
from fallow_yarn.nm import daemons
from fallow_yarn.nm.daemons import MAIN_CLASS, RunningNodeManagers, node_managers
from fallow_yarn.nm.procfs import SETTLED_TICKS, read_all, read_command

JAVA = b"/usr/lib/jvm/bin/java\0-Xmx1g\0" + MAIN_CLASS + b"\0"
TABLE_HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LISTEN, ESTABLISHED = "0A", "01"


class ProcTree:
    """Writes processes as /proc shows them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "self").symlink_to("10")
        (root / "meminfo").write_text("MemTotal: 1 kB\n")

    def add(
        self,
        pid: int,
        *,
        command: bytes = JAVA,
        start_ticks: int = 4242,
        ports: dict[str, list[int]] | None = None,
        state: str = LISTEN,
        uid: int = 0,
        parent_pid: int = 1,
    ) -> Path:
        """A process that has sockets on these ports, in tables such as `tcp6`."""
        process = self.root / str(pid)
        (process / "fd").mkdir(parents=True)
        (process / "net").mkdir()
        (process / "cmdline").write_bytes(command)
        (process / "status").write_text(f"Name:\tjava\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        before, after = f"S {parent_pid} " + "0 " * 17, " 0 0"
        (process / "stat").write_text(f"{pid} (java) x) {before}{start_ticks}{after}\n")
        (process / "fd" / "0").symlink_to("/dev/null")
        inode = pid * 100
        for table, numbers in (ports or {"tcp": []}).items():
            lines = [TABLE_HEAD]
            for port in numbers:
                inode += 1
                (process / "fd" / str(inode)).symlink_to(f"socket:[{inode}]")
                lines.append(self.line(port, state, inode))
            (process / "net" / table).write_text("".join(lines))
        return process

    def line(self, port: int, state: str, inode: int) -> str:
        return (
            f"   0: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 0 0 {inode} 1 0\n"
        )

    def find(self, *node_ids: str, before: tuple[Daemon, ...] = ()) -> list[Daemon]:
        found = node_managers(node_ids, before, self.root)
        return sorted(found, key=lambda daemon: daemon.process.pid)


@pytest.fixture
def proc(tmp_path: Path) -> ProcTree:
    return ProcTree(tmp_path)


def daemon(pid: int, node_id: str | None, start_ticks: int = 4242) -> Daemon:
    return Daemon(process=Process(pid, start_ticks), framework_node=node_id)


def test_a_node_manager_is_found_by_its_main_class_and_its_port(proc: ProcTree) -> None:
    proc.add(10, ports={"tcp": [8040, 45454]})
    assert proc.find("worker-1:45454") == [daemon(10, "worker-1:45454")]


def test_a_port_of_ipv6_counts_as_well(proc: ProcTree) -> None:
    proc.add(10, ports={"tcp6": [45454]})
    assert proc.find("worker-1:45454") == [daemon(10, "worker-1:45454")]


def test_two_node_managers_are_told_apart_by_their_ports(proc: ProcTree) -> None:
    proc.add(10, ports={"tcp": [1001]})
    proc.add(11, ports={"tcp": [1002]}, start_ticks=5)
    assert proc.find("worker-1:1001", "worker-1:1002") == [
        daemon(10, "worker-1:1001"),
        daemon(11, "worker-1:1002", 5),
    ]


def test_of_two_on_one_port_the_known_one_stays_and_else_the_one_on_all_addresses(proc: ProcTree) -> None:
    proc.add(10, ports={"tcp": [1001]}, start_ticks=5)
    assert proc.find("worker-1:1001") == [daemon(10, "worker-1:1001", 5)]
    real = proc.add(11, ports={"tcp": [1001]})
    table = real / "net" / "tcp"
    table.write_text(table.read_text().replace("0100007F", "00000000"))
    assert proc.find("worker-1:1001") == [daemon(11, "worker-1:1001")]
    known = (daemon(10, "worker-1:1001", 5),)
    assert proc.find("worker-1:1001", before=known) == [*known]


def test_a_node_manager_of_another_cluster_is_not_ours(proc: ProcTree) -> None:
    proc.add(10, ports={"tcp": [1001]})
    proc.add(11, ports={"tcp": [1002]})
    assert proc.find("worker-1:1002") == [daemon(11, "worker-1:1002")]


@pytest.mark.parametrize(
    "command",
    [
        b"java\0org.apache.hadoop.yarn.server.resourcemanager.ResourceManager\0",
        b"java\0" + MAIN_CLASS + b"Test\0",
        b"grep\0-r " + MAIN_CLASS + b"\0",
        b"",
    ],
)
def test_a_process_without_the_main_class_as_an_argument_is_none(proc: ProcTree, command: bytes) -> None:
    proc.add(10, command=command, ports={"tcp": [45454]})
    assert proc.find("worker-1:45454") == []
    assert proc.find() == []


def test_a_connection_on_the_port_is_not_listening(proc: ProcTree) -> None:
    proc.add(10, ports={"tcp": [45454]}, state=ESTABLISHED)
    assert proc.find("worker-1:45454") == []


def test_a_socket_of_another_process_in_the_same_table_does_not_count(proc: ProcTree) -> None:
    table = proc.add(10) / "net" / "tcp"
    table.write_text(TABLE_HEAD + proc.line(45454, LISTEN, 999))
    assert proc.find("worker-1:45454") == []


def test_damaged_lines_of_a_table_are_passed_over(proc: ProcTree) -> None:
    table = proc.add(10, ports={"tcp": [45454]}) / "net" / "tcp"
    table.write_text(table.read_text() + "\n   1: 0100007F:B18E\n")
    assert proc.find("worker-1:45454") == [daemon(10, "worker-1:45454")]


def test_without_ids_every_node_manager_of_the_host_counts(proc: ProcTree) -> None:
    proc.add(10, ports={"tcp": [1001]})
    proc.add(11)
    assert proc.find() == [daemon(10, None), daemon(11, None)]


def test_a_host_without_node_managers_has_none(proc: ProcTree) -> None:
    proc.add(10, command=b"bash\0")
    assert proc.find("worker-1:45454") == []


@pytest.mark.parametrize("missing", ["cmdline", "stat"])
def test_a_process_that_ends_while_it_is_looked_at_is_passed_over(proc: ProcTree, missing: str) -> None:
    (proc.add(10, ports={"tcp": [1001]}) / missing).unlink()
    proc.add(11, ports={"tcp": [1002]})
    ids = ("worker-1:1001", "worker-1:1002")
    assert proc.find(*ids) == [daemon(11, "worker-1:1002")]


def test_a_process_that_ends_before_its_sockets_are_read_is_passed_over(proc: ProcTree) -> None:
    (proc.add(10) / "fd").rename(proc.root / "fd")
    assert proc.find("worker-1:45454") == []


def test_a_descriptor_that_is_closed_meanwhile_is_passed_over(proc: ProcTree, monkeypatch: pytest.MonkeyPatch) -> None:
    proc.add(10, ports={"tcp": [45454]})
    refuse(monkeypatch, "readlink", FileNotFoundError, lambda path: path.name == "0")
    assert proc.find("worker-1:45454") == [daemon(10, "worker-1:45454")]


def test_a_truncated_stat_file_is_passed_over(proc: ProcTree) -> None:
    (proc.add(10, ports={"tcp": [45454]}) / "stat").write_text("10 (java) S 1")
    assert proc.find("worker-1:45454") == []


def test_a_node_manager_whose_sockets_cannot_be_read_counts_without_a_node(
    proc: ProcTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.add(10, ports={"tcp": [45454]})
    proc.add(11, ports={"tcp": [1001]})
    refuse(monkeypatch, "iterdir", PermissionError, lambda path: path.parent.name == "10")
    assert proc.find("worker-1:45454", "worker-1:1001") == [daemon(10, None), daemon(11, "worker-1:1001")]


@pytest.mark.parametrize("name", ["cmdline", "stat"])
def test_a_process_of_which_nothing_can_be_read_is_passed_over(proc: ProcTree, name: str) -> None:
    (proc.add(10, ports={"tcp": [45454]}) / name).unlink()
    proc.add(11, ports={"tcp": [45455]})
    assert proc.find("worker-1:45454", "worker-1:45455") == [daemon(11, "worker-1:45455")]


def test_the_sockets_of_what_was_found_are_not_read_again(proc: ProcTree, monkeypatch: pytest.MonkeyPatch) -> None:
    proc.add(10, ports={"tcp": [45454]})
    before = proc.find("worker-1:45454")
    refuse(monkeypatch, "read_text", AssertionError, lambda path: path.parent.name == "net")
    assert proc.find("worker-1:45454", before=tuple(before)) == before


def test_what_was_found_counts_only_while_it_is_the_same_process_and_its_node_is_asked_for(proc: ProcTree) -> None:
    proc.add(10, ports={"tcp": [1001]}, start_ticks=2)
    proc.add(11, ports={"tcp": [1002]})
    restarted, moved, ended = daemon(10, "worker-1:1002", 1), daemon(11, "worker-1:9999"), daemon(12, "worker-1:1001")
    assert proc.find("worker-1:1001", "worker-1:1002", before=(restarted, moved, ended)) == [
        daemon(10, "worker-1:1001", 2),
        daemon(11, "worker-1:1002"),
    ]


def test_a_node_manager_that_listens_only_later_is_found_then(proc: ProcTree) -> None:
    process = proc.add(10)
    assert proc.find("worker-1:45454") == []
    (process / "fd" / "9").symlink_to("socket:[77]")
    (process / "net" / "tcp").write_text(TABLE_HEAD + proc.line(45454, LISTEN, 77))
    assert proc.find("worker-1:45454") == [daemon(10, "worker-1:45454")]


SERVER = """
import socket, sys
with socket.create_server((sys.argv[2], 0), family=getattr(socket, sys.argv[3])) as listener:
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=[("127.0.0.1", "AF_INET"), ("::1", "AF_INET6")], ids=["ipv4", "ipv6"])
def listener(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """Process id and port of a real process that looks like a NodeManager."""
    if request.param[1] == "AF_INET6" and not Path("/proc/net/if_inet6").exists():
        pytest.skip("needs IPv6 on this host")
    command = [sys.executable, "-c", SERVER, MAIN_CLASS.decode(), *request.param]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        process.kill()


def test_a_real_process_is_found_until_it_ends(listener: tuple[int, int]) -> None:
    pid, port = listener
    (found,) = node_managers([f"worker-1:{port}"])
    assert (found.process.pid, found.framework_node) == (pid, f"worker-1:{port}")
    stat = Path(f"/proc/{pid}/stat").read_text()
    assert found.process.start_ticks == int(stat.rpartition(")")[2].split()[19])
    assert pid in [daemon.process.pid for daemon in node_managers([])]
    os.kill(pid, 9)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
    assert node_managers([f"worker-1:{port}"], [found]) == ()


class Looks:
    """Looks for NodeManagers again and again, and notes whose command line it reads."""

    def __init__(self, proc: ProcTree, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proc = proc
        self.finder = RunningNodeManagers(proc.root, lambda: NOW_TICKS)
        self.read: list[int] = []
        monkeypatch.setattr(daemons, "read_command", self._command)

    def look(self) -> tuple[list[int], list[int]]:
        """The NodeManagers, and whose command line was read."""
        self.read.clear()
        found = self.finder.find(read_all(self.proc.root))
        return [process.pid for process in found], sorted(self.read)

    def _command(self, root: Path, pid: int) -> list[bytes]:
        self.read.append(pid)
        return read_command(root, pid)


NOW_TICKS = 1_000_000
OLD_TICKS = NOW_TICKS - SETTLED_TICKS - 1


def test_a_young_process_is_read_at_every_look_and_an_old_one_in_turn(
    proc: ProcTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(proc, monkeypatch)
    proc.add(10, start_ticks=OLD_TICKS)
    proc.add(11, command=b"bash\0", start_ticks=NOW_TICKS)
    for pid in range(100, 132):
        proc.add(pid, command=b"bash\0", start_ticks=OLD_TICKS)
    assert looks.look() == ([10], [10, 11, *range(100, 132)])
    read = [looks.look()[1] for _ in range(16)]
    assert all(each[:2] == [10, 11] and len(each) == 4 for each in read)
    assert {pid for each in read for pid in each[2:]} == set(range(100, 132))


def test_an_old_start_script_that_becomes_a_node_manager_is_found_in_its_turn(
    proc: ProcTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(proc, monkeypatch)
    script = proc.add(10, command=b"bash\0", start_ticks=OLD_TICKS)
    assert looks.look()[0] == []
    (script / "cmdline").write_bytes(JAVA)
    assert [10] in [looks.look()[0] for _ in range(16)]
    assert looks.look()[0] == [10]


def test_a_pid_that_was_reused_is_read_again(proc: ProcTree, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(proc, monkeypatch)
    process = proc.add(10, command=b"bash\0", start_ticks=OLD_TICKS - 1)
    looks.look()
    (process / "stat").write_text((process / "stat").read_text().replace(str(OLD_TICKS - 1), str(OLD_TICKS)))
    (process / "cmdline").write_bytes(JAVA)
    assert looks.look()[0] == [10]


def refuse(
    monkeypatch: pytest.MonkeyPatch, method: str, error: type[BaseException], applies: Callable[[Path], bool]
) -> None:
    """Let a method of `Path` fail for some paths."""
    real = getattr(Path, method)

    def call(path: Path) -> object:
        if applies(path):
            raise error
        return real(path)

    monkeypatch.setattr(Path, method, call)
