"""Processes as /proc shows them, written into a folder."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from fallow_hookspecs import Process
from fallow_yarn.nm.daemons import MAIN_CLASS

NOW_TICKS = 1_000_000
YOUNG_TICKS = NOW_TICKS - 100  # started a second ago
NODE_ID = "worker-1:45454"
NM_PID = 500
NM = Process(NM_PID, 1000)


def container(number: int, application: int = 1, attempt: int = 1) -> str:
    """The id of a container."""
    return f"container_1700000000000_{application:04}_{attempt:02}_{number:06}"


def environment_of(container_id: str, node_id: str = NODE_ID) -> dict[str, str]:
    """What a NodeManager puts into the environment of a container."""
    host, _, port = node_id.rpartition(":")
    return {"PATH": "/bin", "CONTAINER_ID": container_id, "NM_HOST": host, "NM_PORT": port}


class FakeProc:
    """A /proc with init (1), a login shell (400) and a NodeManager (`NM`)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.add(1, parent=0, start=1)
        self.add(400, start=900)
        self.add(NM_PID, start=NM.start_ticks, command=["java", MAIN_CLASS.decode()])

    def add(
        self,
        pid: int,
        *,
        parent: int = 1,
        session: int | None = None,
        start: int = YOUNG_TICKS,
        state: str = "S",
        user: int = 0,
        command: Sequence[str] = ("sh",),
        environment: Mapping[str, str] | None = None,
        cgroups: Sequence[str] = ("0::/",),
        name: str = "a) b",
    ) -> Process:
        """A process, the leader of its session unless one is given; it replaces one of the same pid."""
        folder = self.root / str(pid)
        folder.mkdir(parents=True, exist_ok=True)
        fields = [state, parent, pid, pid if session is None else session, *[0] * 15, start, 0, 0]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(map(str, fields))}\n")
        (folder / "status").write_text(f"Name:\ta\nUid:\t{user}\t0\t0\t0\n")
        (folder / "cmdline").write_text("".join(f"{argument}\0" for argument in command))
        entries = (f"{name}={value}\0" for name, value in (environment or {}).items())
        (folder / "environ").write_text("".join(entries))
        (folder / "cgroup").write_text("".join(f"{line}\n" for line in cgroups))
        return Process(pid, start)

    def launch(self, pid: int, container_id: str, *, user: int = 0, start: int = YOUNG_TICKS) -> Process:
        """A container's root, of this pid, below its launcher, of the pid before."""
        script = f"/local/usercache/al/appcache/app/{container_id}/default_container_executor.sh"
        env = environment_of(container_id)
        self.add(pid - 1, parent=NM_PID, session=NM_PID, start=start, command=["bash", script], environment=env)
        return self.add(pid, parent=pid - 1, start=start, user=user, environment=env)

    def listen(self, pid: int, *ports: int) -> None:
        """A process listens on these ports of the loopback, and on no other any more."""
        folder = self.root / str(pid)
        shutil.rmtree(folder / "fd", ignore_errors=True)
        for name in ("fd", "net"):
            (folder / name).mkdir(exist_ok=True)
        for port in ports:
            (folder / "fd" / str(port)).symlink_to(f"socket:[{port}]")
        lines = (f" 0: 0100007F:{port:04X} 0:0 0A 0:0 0:0 0 0 0 {port} 1 0\n" for port in ports)
        (folder / "net" / "tcp").write_text("head\n" + "".join(lines))

    def end(self, *pids: int) -> None:
        """Processes end, and their parents have waited for them."""
        for pid in pids:
            shutil.rmtree(self.root / str(pid))

    def orphan(self, pid: int, parent: int = 1) -> None:
        """A process gets another parent."""
        stat = self.root / str(pid) / "stat"
        before, _, after = stat.read_text().rpartition(") ")
        fields = after.split()
        fields[1] = str(parent)
        stat.write_text(f"{before}) {' '.join(fields)}\n")
