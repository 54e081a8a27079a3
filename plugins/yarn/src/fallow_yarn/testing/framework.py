"""A YARN, embedded or real, as the conformance suite of `fallow_hookspecs` needs it. Needs `fallow-hookspecs[testing]`.

Its truth comes from the pages of the ResourceManager and of the NodeManager, read without the plugin. Wires stand
between the plugin and the ResourceManager; a NodeManager is stopped by a signal.
"""

import http.client
import json
import os
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from fallow_hookspecs import Node, Resources
from fallow_hookspecs.testing import Framework, UnableError
from fallow_hookspecs.testing.calling import wait_until
from fallow_hookspecs.testing.wire import Wire
from fallow_yarn.entry import PLUGIN
from fallow_yarn.model.size import MIB_BYTES, Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import FAR_TIMEOUT_MS, NodeUpdate
from fallow_yarn.rm.client import ResourceManager

TASK: Final = Size(256, 1)
VCORE_MILLI: Final = 1000
DELAY_SECONDS: Final = 2.0
DONE_STATES: Final = ("DONE", "COMPLETE")

Submit = Callable[[int, int, int, str], Callable[[], Collection[str]]]
"""Runs an application with a number of containers, of so many MB and vcores, each with a shell command. The answer
tells the ids of those whose command has begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A YARN with one NodeManager of this size, in which nothing runs. Addresses are host:port; `master` is the size of
    an application's master. `delay`, where there is one, makes its scheduler take so long for each change of a size.
    """

    client: str
    admin: str
    web: str
    user: str
    node_id: str
    node_web: str
    node_pid: Callable[[], int]
    size: Size
    master: Size
    submit: Submit
    delay: Callable[[float], None] | None = None


class YarnFramework(Framework):
    """See `Framework`. `folder` is for the files by which tasks are told to end."""

    plugin = PLUGIN
    nodes = (Node(name="here", addresses=("localhost", "127.0.0.1")),)
    request = Resources(TASK.vcores * VCORE_MILLI, TASK.memory_mb * MIB_BYTES)

    def __init__(self, yarn: Running, wires: Sequence[Wire], folder: Path, patience_seconds: float) -> None:
        self._yarn = yarn
        self._wires = wires
        self._folder = folder
        self._rounds = count(1)
        self._round = 0
        self._stopped: int | None = None
        self.patience_seconds = patience_seconds
        client, admin, web = (wire.address for wire in wires)
        addresses = {"host": "127.0.0.1", "client": client, "admin": admin, "web": web}
        self.spec: Mapping[str, Any] = {"resourceManager": addresses, "user": yarn.user}

    def reset(self) -> None:
        """Tell every task to end, and give the node its size."""
        (self._folder / f"all-{self._round}").touch()
        self._round = next(self._rounds)
        size = self._yarn.size
        manager = ResourceManager.at(
            client=self._yarn.client, admin=self._yarn.admin, web=self._yarn.web, user=self._yarn.user
        )
        try:
            update = NodeUpdate(node_id=self._yarn.node_id, size=size, over_commit_timeout_ms=FAR_TIMEOUT_MS)
            manager.update([update], Deadline.after(self.timeout_seconds))
        finally:
            manager.close()
        wait_until(self._is_reset, 4 * self.patience_seconds, "the YARN is as at its start")

    def start_tasks(self, count: int, *, stubborn: bool = False) -> tuple[str, ...]:
        """An application of its own, with a master of its own."""
        return self._start(count, TASK, stubborn) if count else ()

    def finish(self, task_ids: Collection[str]) -> None:
        """Tell them to end."""
        for task_id in task_ids:
            (self._folder / task_id).touch()
        wait_until(lambda: self.tasks().isdisjoint(task_ids), self.patience_seconds, f"{task_ids} have ended")

    def tasks(self) -> frozenset[str]:
        """The containers on the page of the NodeManager that are not done."""
        listed = (_page(self._yarn.node_web, "/ws/v1/node/containers").get("containers") or {}).get("container") or []
        return frozenset(each["id"] for each in listed if each["state"] not in DONE_STATES)

    def sizes(self) -> Mapping[str, Resources]:
        """What is used and what is free, which the scheduler knows."""
        node = self._node()
        vcores = node["usedVirtualCores"] + node["availableVirtualCores"]
        memory_mb = node["usedMemoryMB"] + node["availMemoryMB"]
        return {self._yarn.node_id: Resources(vcores * VCORE_MILLI, memory_mb * MIB_BYTES)}

    def allocated(self) -> Mapping[str, Resources]:
        """What the ResourceManager shows as used."""
        node = self._node()
        used = Resources(node["usedVirtualCores"] * VCORE_MILLI, node["usedMemoryMB"] * MIB_BYTES)
        return {self._yarn.node_id: used}

    def queue_tasks(self, count: int) -> Resources:
        """Containers of which the node holds one beside a master."""
        yarn = self._yarn
        size = Size(yarn.size.memory_mb - yarn.master.memory_mb - TASK.memory_mb, 1)
        self._start(count + 1, size, False, begun=1)
        return Resources(count * VCORE_MILLI, count * size.memory_mb * MIB_BYTES)

    def cut_off(self) -> None:
        """Cut the wires; the NodeManager can only be made to hang."""
        for wire in self._wires:
            wire.cut()
        self._stop_node()

    def hang(self) -> None:
        """Let nothing through."""
        for wire in self._wires:
            wire.hang()
        self._stop_node()

    def slow(self, seconds: float) -> None:
        """Keep answers back."""
        for wire in self._wires:
            wire.slow(seconds)

    def delay_changes(self) -> None:
        """Have the scheduler take its time."""
        if self._yarn.delay is None:
            raise UnableError("its scheduler cannot be held back")
        self._yarn.delay(DELAY_SECONDS)

    def mend(self) -> None:
        """Let all through, and the NodeManager go on."""
        if self._yarn.delay is not None:
            self._yarn.delay(0.0)
        for wire in self._wires:
            wire.mend()
        if self._stopped is not None:
            os.kill(self._stopped, signal.SIGCONT)
            self._stopped = None

    def _start(self, containers: int, size: Size, stubborn: bool, begun: int | None = None) -> tuple[str, ...]:
        command = f'while [ ! -e "{self._folder}/all-{self._round}" ] && [ ! -e "{self._folder}/$CONTAINER_ID" ]; '
        command += "do sleep 0.1; done"
        command = f"trap '' TERM; {command}" if stubborn else command
        running = self._yarn.submit(containers, size.memory_mb, size.vcores, command)
        wanted = containers if begun is None else begun
        wait_until(
            lambda: len(running()) == wanted and set(running()) <= self.tasks(),
            4 * self.patience_seconds,
            f"{wanted} containers run",
        )
        return tuple(sorted(running()))

    def _is_reset(self) -> bool:
        full = Resources(self._yarn.size.vcores * VCORE_MILLI, self._yarn.size.memory_mb * MIB_BYTES)
        empty = self.allocated()[self._yarn.node_id] == Resources(0, 0)
        return empty and not self.tasks() and self.sizes()[self._yarn.node_id] == full

    def _stop_node(self) -> None:
        self._stopped = self._yarn.node_pid()
        os.kill(self._stopped, signal.SIGSTOP)

    def _node(self) -> dict[str, Any]:
        found: dict[str, Any] = _page(self._yarn.web, f"/ws/v1/cluster/nodes/{self._yarn.node_id}")["node"]
        return found


@contextmanager
def wired(yarn: Running, folder: Path, patience_seconds: float) -> Iterator[YarnFramework]:
    """The framework of a YARN, with wires to its ResourceManager."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(target)) for target in (yarn.client, yarn.admin, yarn.web)]
        yield YarnFramework(yarn, wires, folder, patience_seconds)


def _page(address: str, path: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", f"{path}?user.name=conformance", headers={"Accept": "application/json"})
        page: dict[str, Any] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return page
