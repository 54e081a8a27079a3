"""An embedded NodeManager, a program of its own: `python -m fallow_yarn.embedded.node MAIN_CLASS JSON`.

The name of the real one's main class among its arguments is what it is known by. The JSON is a `Config`.
"""

import json
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from fallow_yarn.embedded.container_launcher import KILLED_BY_MANAGER, Launched, Place, Spec
from fallow_yarn.embedded.http_server import Request, Response, failure, page, serve_http, settings_page
from fallow_yarn.embedded.listener import HOST, Listener

Json = dict[str, Any]
RETRY_SECONDS: Final = 0.1  # until the next try to reach a ResourceManager
LISTED_SECONDS: Final = 1.0  # how long a container is listed after its end was told
EXECUTOR: Final = "org.apache.hadoop.yarn.server.nodemanager.DefaultContainerExecutor"
RUNNING_CODE: Final = -1000
NEVER_RAN: Final = -1
NAME: Final = "localhost"  # what the address 127.0.0.1 is called by YARN


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a NodeManager is started with. `trackers` are the ports of the ResourceManagers for it."""

    folder: str
    mark: str
    port: int
    web_port: int
    trackers: tuple[int, ...]
    memory_mb: int
    vcores: int
    custom: dict[str, int]
    sigkill_seconds: float
    version: str


class NodeManager:
    """One NodeManager. The loop that talks to the ResourceManager and the web pages share its containers."""

    def __init__(self, config: Config) -> None:
        folder = Path(config.folder)
        self._config = config
        self._place = Place(
            host=NAME,
            port=config.port,
            web_port=config.web_port,
            local=folder / "local",
            logs=folder / "logs",
            sigkill_seconds=config.sigkill_seconds,
            mark=config.mark,
        )
        self._size = [config.memory_mb, config.vcores]
        self._started_ms = round(time.time() * 1000)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._containers = {container.spec.id: container for container in Launched.recover(self._place)}
        self._never_ran: dict[str, str] = {}  # why not, by container
        self._heartbeat_seconds = RETRY_SECONDS
        self._listeners = (
            Listener(config.port, lambda _: None),
            Listener(config.web_port, serve_http(self._page)),
        )

    def run(self) -> None:
        """Serve until it is told to end, by SIGTERM or by the ResourceManager; its containers end with it."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        for listener in self._listeners:
            listener.start()
        trackers = self._config.trackers
        turn = 0
        while not self._stop.is_set():
            # A ResourceManager that ends the connection may be back at once, or another one is active by now.
            with suppress(OSError, ValueError), socket.create_connection((HOST, trackers[turn % len(trackers)])) as rm:
                self._talk(rm)
            turn += 1
            self._stop.wait(RETRY_SECONDS)
        self._end_containers()

    def _talk(self, rm: socket.socket) -> None:
        """Register, and report until the connection ends."""
        rm.settimeout(10)
        with rm.makefile("rb") as incoming:

            def ask(kind: str, **more: object) -> Json:
                message = {"kind": kind, "node": self._place.node_id, "containers": self._statuses(), **more}
                rm.sendall(json.dumps(message).encode() + b"\n")
                answer: Json = json.loads(incoming.readline())
                self._heartbeat_seconds = answer["heartbeat_seconds"]
                return answer

            while not self._stop.is_set():
                answer = ask("register", **self._registration())
                if answer["end_because"]:
                    sys.stderr.write(f"{answer['end_because']}\n")
                    self._stop.set()
                    return
                while not self._stop.is_set():
                    answer = ask("heartbeat")
                    if answer.get("register"):
                        break
                    self._obey(answer)
                    self._stop.wait(self._heartbeat_seconds)
            ask("unregister")

    def _registration(self) -> Json:
        memory_mb, vcores = self._size
        return {
            "web": f"{NAME}:{self._config.web_port}",
            "memory_mb": memory_mb,
            "vcores": vcores,
            "custom": self._config.custom,
            "health_ms": self._started_ms,
        }

    def _statuses(self) -> list[Json]:
        """Every container whose process is there or has ended; those that nobody here knows have ended."""
        with self._lock:
            for container in self._containers.values():
                container.clean_up()
            told = [
                {"id": name, "exit_code": container.exit_code, "diagnostics": container.diagnostics}
                for name, container in self._containers.items()
                if container.told_at is None and (container.has_begun or container.exit_code is not None)
            ]
            return told + [
                {"id": name, "exit_code": NEVER_RAN, "diagnostics": why} for name, why in self._never_ran.items()
            ]

    def _obey(self, orders: Json) -> None:
        with self._lock:
            if orders["size"] is not None:
                self._size = orders["size"]
            for entry in orders["start"]:
                spec = Spec(**entry)
                try:
                    self._containers[spec.id] = Launched.start(spec, self._place)
                except OSError as error:
                    self._never_ran[spec.id] = f"Exception from container-launch: {error}"
            for name, force in orders["signals"]:
                if name in self._containers:
                    self._containers[name].signal(signal.SIGKILL if force else signal.SIGTERM)
            self._forget(orders["forget"], time.monotonic())
            for name in orders["end"]:
                if name in self._containers:
                    self._containers[name].end()
                else:
                    self._never_ran[name] = "it is not here"

    def _forget(self, told: list[str], now: float) -> None:
        """The ResourceManager knows of the end of these; they are listed a little longer."""
        for name in told:
            self._never_ran.pop(name, None)
            if name in self._containers:
                self._containers[name].told_at = now
                self._containers[name].forget()
        for name, container in list(self._containers.items()):
            if container.told_at is not None and now - container.told_at > LISTED_SECONDS:
                del self._containers[name]

    def _end_containers(self) -> None:
        containers = list(self._containers.values())
        for container in containers:
            container.end()
        end = time.monotonic() + 2
        while any(container.exit_code is None for container in containers) and time.monotonic() < end:
            time.sleep(0.02)

    def _page(self, request: Request) -> Response:
        match request.path:
            case "/ws/v1/node/containers":
                with self._lock:
                    entries = [self._entry(container) for container in self._containers.values()]
                return page({"containers": {"container": entries} if entries else {}})
            case "/ws/v1/node" | "/ws/v1/node/info":
                return page({"nodeInfo": self._info()})
            case "/conf":
                return settings_page(self._settings(), request)
        return failure(HTTPStatus.NOT_FOUND, "NotFoundException", f"HTTP 404 Not Found: {request.path}")

    def _entry(self, container: Launched) -> Json:
        code = container.exit_code
        if code is None:
            state = "KILLING" if container.ordered_at is not None else "RUNNING" if container.has_begun else "SCHEDULED"
        elif container.told_at is not None:
            state = "DONE"
        else:
            state = "EXITED_WITH_SUCCESS" if code == 0 else "EXITED_WITH_FAILURE"
        spec, web = container.spec, f"{NAME}:{self._config.web_port}"
        return {
            "id": spec.id,
            "state": state,
            "exitCode": RUNNING_CODE
            if code is None
            else KILLED_BY_MANAGER
            if container.ordered_at is not None
            else code,
            "diagnostics": container.diagnostics,
            "user": spec.user,
            "totalMemoryNeededMB": spec.memory_mb,
            "totalVCoresNeeded": spec.vcores,
            "executionType": "GUARANTEED",
            "containerLogsLink": f"http://{web}/node/containerlogs/{spec.id}/{spec.user}",
            "nodeId": self._place.node_id,
        }

    def _settings(self) -> Json:
        return {
            "yarn.nodemanager.address": f"{HOST}:{self._config.port}",
            "yarn.nodemanager.webapp.address": f"{HOST}:{self._config.web_port}",
            "yarn.nodemanager.resource.memory-mb": self._config.memory_mb,
            "yarn.nodemanager.resource.cpu-vcores": self._config.vcores,
            "yarn.nodemanager.local-dirs": self._place.local,
            "yarn.nodemanager.log-dirs": self._place.logs,
            "yarn.nodemanager.container-executor.class": EXECUTOR,
            "yarn.nodemanager.sleep-delay-before-sigkill.ms": round(self._config.sigkill_seconds * 1000),
            "yarn.nodemanager.disk-health-checker.enable": "false",
            "yarn.nodemanager.recovery.enabled": "true",
        }

    def _info(self) -> Json:
        memory_mb, vcores = self._size
        return {
            "id": self._place.node_id,
            "nodeHostName": NAME,
            "totalPmemAllocatedContainersMB": memory_mb,
            "totalVCoresAllocatedContainers": vcores,
            "nodeHealthy": True,
            "nodeManagerVersion": self._config.version,
            "nmStartupTime": self._started_ms,
        }


def main() -> int:
    """Run the NodeManager that the last argument describes."""
    NodeManager(Config(**json.loads(sys.argv[-1]))).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
