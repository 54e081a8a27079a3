"""`fallow run` as a child process beside a real cluster, with short intervals; CPU load; servers that are no YARN."""

import json
import os
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.e2e.yarn.daemons import ResourceManager
from tests.e2e.yarn.rest import USER, wait_for

from fallow_core.api.control_socket import ask
from fallow_core.errors import ControlError

COMMAND = str(Path(sys.executable).with_name("fallow"))
TIED = ["setpriv", "--pdeathsig", "KILL"]  # ends with the test run, however that ends
VCORE_MILLI = 100
DEAD_BAND_PERCENT = 10
MIB = 1 << 20

Sizes = dict[str, tuple[int, int]]
"""MB and vcores of each node, by its id."""


def resource_manager_spec(client: str, admin: str, web: str, **more: object) -> dict[str, object]:
    """The `spec` of a cluster file."""
    addresses = {"host": "127.0.0.1", "client": client, "admin": admin, "web": web}
    return {"resourceManager": addresses, "user": USER, "vcoreMilli": VCORE_MILLI, **more}


def spec_of(rm: ResourceManager, **more: object) -> dict[str, object]:
    """The `spec` for a real ResourceManager."""
    return resource_manager_spec(rm.client, rm.admin, rm.web, **more)


class Fallow:
    """A configuration below `folder`, and `fallow run` on it. A context manager that kills what still runs."""

    def __init__(
        self,
        folder: Path,
        specs: Mapping[str, Mapping[str, object]],
        *,
        cpu_reserved_milli: int,
        memory_limit_mb: int,
        vcore_milli: int = VCORE_MILLI,
    ) -> None:
        self.folder = folder
        self.vcore_milli = vcore_milli
        self.log = folder / "log.txt"
        self.command = [COMMAND, "run", "-c", str(folder)]
        self.process: subprocess.Popen[bytes] | None = None
        self._socket_folder = tempfile.TemporaryDirectory(prefix="fallow-", dir="/tmp")  # a short path, for a socket
        self.socket = Path(self._socket_folder.name) / "control"
        (folder / "clusters.d").mkdir(parents=True)
        core = {
            "apiVersion": "fallow/v1",
            "kind": "Fallow",
            "stateDir": "state",
            "controlSocket": str(self.socket),
            "metrics": "off",
            "capacity": {
                "cpu": {"watermark": "95%", "reserved": f"{cpu_reserved_milli}m"},
                "memory": {"watermark": "95%"},
            },
            "publishing": {
                "mode": "enforce",
                "growthDelay": "3s",
                "deadBand": f"{DEAD_BAND_PERCENT}%",
                "interval": "1s",
                "reportInterval": "1s",
                "inFlight": "5s",
            },
        }
        (folder / "fallow.yaml").write_text(json.dumps(core))
        for name, spec in specs.items():
            cluster = {
                "apiVersion": "fallow/v1",
                "kind": "Cluster",
                "metadata": {"name": name},
                "plugin": "yarn",
                "limit": {"memory": f"{memory_limit_mb}Mi"},
                "spec": spec,
            }
            (folder / "clusters.d" / f"{name}.yaml").write_text(json.dumps(cluster))

    def add(self, file: str, **keys: object) -> None:
        """Put further keys into one of the files, or replace them."""
        path = self.folder / file
        path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))

    def told(self, event: str) -> list[str]:
        """The lines of the log that tell of an event."""
        return [line for line in self.log.read_text().splitlines() if event in line.split()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(signal.SIGKILL)
        self._socket_folder.cleanup()

    def start(self, seconds: float = 30) -> None:
        """Start the process; return when it answers."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*TIED, *self.command], stdout=log, stderr=log)

        def answers() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text()
            with suppress(ControlError):
                return bool(self.status())
            return False

        wait_for(answers, seconds, "an answer of fallow run")

    def end(self, signal_number: int) -> int | None:
        """Send a signal, wait for the end, and return the exit code; nothing if it is not running."""
        if self.process is None:
            return None
        self.process.send_signal(signal_number)
        code = self.process.wait(40)
        self.process = None
        return code

    def status(self) -> dict[str, Any]:
        """What `fallow status` is made of."""
        return dict(ask(self.socket, {"request": "status"}))

    def cluster(self, name: str = "yarn/real") -> dict[str, Any]:
        """The part of the status about one cluster; empty while its plugin is being built."""
        return next((cluster for cluster in self.status()["clusters"] if cluster["cluster"] == name), {})

    def problem(self, name: str = "yarn/real") -> str:
        """Why there are no reports of a cluster now; empty if there are."""
        return str(self.cluster(name).get("failing", {}).get("report", ""))

    def wait_for_problem(self, name: str, part: str) -> None:
        """Wait until the status of a cluster tells a problem with these words in it."""
        wait_for(lambda: part in self.problem(name), 60, f"{part!r} as the problem of {name}")

    def in_force(self) -> Sizes:
        """The sizes in force of the real cluster, as Fallow shows them; nothing while one is in flight or unknown."""
        rows = self.cluster().get("rows", [])
        if any(row["in_flight"] or row["in_force"] is None for row in rows):
            return {}
        sizes = {row["framework_node"]: row["in_force"] for row in rows}
        return {
            name: (size["memory_bytes"] // MIB, size["cpu_milli"] // self.vcore_milli) for name, size in sizes.items()
        }

    def shown(self) -> str:
        """What its status says of the node and of the real cluster, for the message of a test that waited in vain."""
        try:
            return json.dumps({"nodes": self.status()["nodes"], "cluster": self.cluster()})
        except ControlError as error:
            return f"nothing: {error}"

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another command of Fallow on the same configuration."""
        command = [COMMAND, *arguments, "-c", str(self.folder)]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    def succeed(self, *arguments: str) -> str:
        """Run another command that has to succeed; what it printed."""
        done = self.call(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def all_cpus_busy() -> Iterator[None]:
    """A busy process for each CPU of this host, below no NodeManager."""
    burners = [subprocess.Popen([*TIED, "sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


@contextmanager
def no_resource_manager(answer: bytes) -> Iterator[str]:
    """A server on loopback that gives this answer to whatever comes, or none and keeps the connection; its address."""

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                while self.request.recv(65536) and not answer:
                    pass
                self.request.sendall(answer)

    with _Server(("127.0.0.1", 0), Connection) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
