"""The facts of a history: sizes in force are looked at all the time, the rest is read from logs in the end."""

import re
import shlex
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Self

from tests.e2e.yarn import rest
from tests.e2e.yarn.application import Application, containers_ended, events
from tests.e2e.yarn.fallow_process import MIB, Fallow
from tests.e2e.yarn_ha.history import (
    Disturbed,
    Ended,
    Fact,
    GroupTarget,
    History,
    InForce,
    Offered,
    Ordered,
    Sent,
    TakenBack,
)
from tests.e2e.yarn_ha.pair import Pair

from fallow_core.errors import ControlError

LINE = re.compile(r"(\S+ \S+) \S+ \S+ (offer_sent|take_back_terminates|tasks_terminate) (.*)")
EVERY_SECONDS = 0.2


class Recorder:
    """Looks at the sizes in force while it is open; a context manager."""

    def __init__(self, pair: Pair, fallow: Fallow) -> None:
        self._pair = pair
        self._fallow = fallow
        self._facts: History = []
        self._over = threading.Event()
        self._disturbances = 0
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def disturbed(self, how: str) -> None:
        """No ResourceManager is active any more."""
        self._disturbances += 1
        self._facts.append(Disturbed(at=time.time(), how=how))

    def wanted(self, least_mb: int, most_mb: int) -> None:
        """So much is wanted from now on."""
        self._facts.append(GroupTarget(at=time.time(), least_mb=least_mb, most_mb=most_mb))

    def shown(self) -> dict[str, InForce]:
        """The newest look at each node since the last disturbance."""
        newest: dict[str, InForce] = {}
        for fact in self._facts:
            if isinstance(fact, Disturbed):
                newest.clear()
            elif isinstance(fact, InForce):
                newest[fact.node] = fact
        return newest

    def history(self, apps: Iterable[Application]) -> History:
        """All facts so far."""
        done = _of_log(self._fallow.log.read_text(), self._fallow.vcore_milli)
        return [*self._facts, *done, *(fact for app in apps for fact in _of_app(app))]

    def _look(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            with suppress(ControlError):
                self._facts += self._offers()
            before = self._disturbances
            with suppress(*rest.NOT_YET):
                nodes = rest.nodes(self._pair.rm.web)
                if before == self._disturbances:  # or else the old one may have answered
                    now = time.time()
                    self._facts += [
                        InForce(at=now, node=node.node_id, size=(node.total_mb, node.total_vcores))
                        for node in nodes.values()
                        if node.state == "RUNNING" and node.total_mb
                    ]

    def _offers(self) -> Iterator[Offered]:
        now = time.time()
        for row in self._fallow.cluster().get("rows", []):
            if row["offer"] is not None:
                size = _size(row["offer"]["memory_bytes"], row["offer"]["cpu_milli"], self._fallow.vcore_milli)
                yield Offered(at=now, node=row["framework_node"], size=size)


def _size(memory_bytes: int, cpu_milli: int, vcore_milli: int) -> tuple[int, int]:
    return memory_bytes // MIB, cpu_milli // vcore_milli


def _of_log(text: str, vcore_milli: int) -> Iterator[Fact]:
    """What Fallow's log says it has done."""
    for time_text, what, rest_of_line in LINE.findall(text):
        at = datetime.strptime(time_text, "%Y-%m-%d %H:%M:%S,%f").timestamp()
        said = dict(word.split("=", 1) for word in shlex.split(rest_of_line) if "=" in word)
        if what == "offer_sent":
            size = _size(int(said["memory_bytes"]), int(said["cpu_milli"]), vcore_milli)
            yield Sent(at=at, node=said["node"], size=size)
        elif what == "take_back_terminates":
            yield TakenBack(at=at, node=said["node"])
        else:
            yield from (Ordered(at=at, container=name) for name in said["tasks"].split(",") if name)


def _of_app(app: Application) -> Iterator[Ended]:
    """The ends that its master was told of."""
    nodes = {event.subject: event.details for event in events(app) if event.kind == "started"}
    for end in containers_ended(app):
        yield Ended(
            at=end.seconds,
            container=end.container,
            node=nodes.get(end.container, ""),
            exit_code=end.exit_code,
            diagnostics=end.diagnostics,
        )
