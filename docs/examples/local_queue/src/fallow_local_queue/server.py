"""The resource manager: a queue of shell commands. It starts them in order while they fit its size.

It listens on a Unix socket and answers each line of JSON with a line. If its size shrinks, it only starts nothing new.
"""

import contextlib
import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

TICK_SECONDS = 0.02


@dataclass(slots=True)
class Job:
    """A command, and its process while it runs."""

    id: str
    command: str
    cpu_milli: int
    memory_bytes: int
    process: subprocess.Popen[bytes] | None = None
    terminating_since: float | None = None


class Queue:
    """The jobs that run and those that wait, in their order. Any thread may call it."""

    def __init__(self, cpu_milli: int, memory_bytes: int) -> None:
        self._lock = threading.Lock()
        self._cpu_milli, self._memory_bytes = cpu_milli, memory_bytes
        self._jobs: list[Job] = []
        self._told: dict[str, str] = {}
        self._numbers = count(1)

    def do(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry out one request: `do` says which, the other keys are its arguments."""
        with self._lock:
            self._tick()
            match request:
                case {"do": "state"}:
                    pass
                case {"do": "submit", "command": str(command), "cpu_milli": int(cpu), "memory_bytes": int(memory)}:
                    self._jobs.append(Job(f"job-{os.getpid()}-{next(self._numbers)}", command, cpu, memory))
                case {"do": "resize", "cpu_milli": int(cpu), "memory_bytes": int(memory)} if min(cpu, memory) >= 0:
                    self._cpu_milli, self._memory_bytes = cpu, memory
                case {"do": "end", "jobs": list(jobs), "force": bool(force), "reason": str(reason)}:
                    return {"terminating": [job for job in jobs if self._end(job, force, reason)]}
                case _:
                    return {"error": f"no such request: {request}"}
            self._tick()
            return self._state()

    def tick(self) -> None:
        """Notice what has ended, and start what fits."""
        with self._lock:
            self._tick()

    def close(self) -> None:
        """End all jobs."""
        with self._lock:
            for job in self._running():
                self._signal(job, signal.SIGKILL)
            self._jobs.clear()

    def _state(self) -> dict[str, Any]:
        now = time.monotonic()
        return {
            "cpu_milli": self._cpu_milli,
            "memory_bytes": self._memory_bytes,
            "told": self._told,
            "jobs": [
                {
                    "id": job.id,
                    "cpu_milli": job.cpu_milli,
                    "memory_bytes": job.memory_bytes,
                    "pid": None if job.process is None else job.process.pid,
                    "terminating_seconds": None if job.terminating_since is None else now - job.terminating_since,
                }
                for job in self._jobs
            ],
        }

    def _running(self) -> list[Job]:
        return [job for job in self._jobs if job.process is not None]

    def _tick(self) -> None:
        self._jobs = [job for job in self._jobs if job.process is None or job.process.poll() is None]
        for job in self._jobs:
            if job.process is not None:
                continue
            held = [*self._running(), job]
            if sum(each.cpu_milli for each in held) > self._cpu_milli:
                return
            if sum(each.memory_bytes for each in held) > self._memory_bytes:
                return
            job.process = subprocess.Popen(["/bin/sh", "-c", job.command], start_new_session=True)

    def _end(self, job_id: str, force: bool, reason: str) -> bool:
        """Signal a job; whether it is there."""
        for job in self._jobs:
            if job.id == job_id:
                self._told[job_id] = reason
                job.terminating_since = job.terminating_since or time.monotonic()
                self._signal(job, signal.SIGKILL if force else signal.SIGTERM)
                return True
        return False

    def _signal(self, job: Job, number: signal.Signals) -> None:
        if job.process is None:
            self._jobs.remove(job)  # it waits
        elif job.process.poll() is None:  # its process id is its own until it was waited for
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.process.pid, number)


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        """Answer each line."""
        server = self.server
        assert isinstance(server, Server)
        for line in self.rfile:
            self.wfile.write(json.dumps(server.queue.do(json.loads(line))).encode() + b"\n")


class Server(socketserver.ThreadingUnixStreamServer):
    """Serves a queue on a socket that its owner alone may use."""

    daemon_threads = True

    def __init__(self, path: Path, queue: Queue) -> None:
        self.queue = queue
        before = os.umask(0o177)
        try:
            super().__init__(str(path), _Handler)
        finally:
            os.umask(before)

    def service_actions(self) -> None:
        """Called again and again while it serves."""
        self.queue.tick()


def main() -> None:
    """SOCKET CPU_MILLI MEMORY_BYTES: serve until SIGTERM."""
    path, cpu_milli, memory_bytes = sys.argv[1:]
    queue = Queue(int(cpu_milli), int(memory_bytes))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with Server(Path(path), queue) as server:
            server.serve_forever(TICK_SECONDS)
    finally:
        queue.close()
        Path(path).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
