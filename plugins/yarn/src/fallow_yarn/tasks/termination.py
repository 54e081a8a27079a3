"""Ending containers by signals that hit their processes and nothing else.

A pid may be another process's by the time a signal arrives. So all processes of a container are held by pidfds first,
then each is shown to be the container's (see `proof`), and then signalled through its pidfd; and again, until a look
finds none without a signal.

Launchers are left alone: they tell the NodeManager the exit code. A NodeManager that sees the end of a container's
root ends what is left of its process group by itself, after `yarn.nodemanager.sleep-delay-before-sigkill.ms`.
"""

import errno
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from fallow_hookspecs import KillAnswer, KillResult, Process
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.nm.procfs import PROC_ROOT, Stat, now_ticks
from fallow_yarn.tasks.container_processes import Containers
from fallow_yarn.tasks.process_check import Proof
from fallow_yarn.tasks.process_tree import INIT_PID, Found

MAX_ROUNDS: Final = 20
MAX_HELD: Final = 256  # descriptors; who is left comes next round
NO_SIGNAL: Final = 0

Send = Callable[[int, int], None]
"""Sends a signal through a pidfd: descriptor, number."""


@dataclass(slots=True)
class _Ending:
    """What became of the processes of one container.

    A graceful signal is for `first`, the processes at the first look, and for who started before `before_ticks`.
    `denied` and `missed` have the processes that may not, and that could not be signalled, and why.
    """

    proof: Proof
    signalled: set[Process] = field(default_factory=set)
    denied: dict[Process, str] = field(default_factory=dict)
    missed: dict[Process, str] = field(default_factory=dict)
    first: frozenset[Process] = frozenset()
    before_ticks: int = 0
    is_done: bool = False

    def answer(self) -> KillAnswer:
        """It as the contract says it."""
        if self.denied:
            return KillAnswer(result=KillResult.NO_ACCESS, reason=next(iter(self.denied.values())))
        if not self.is_done:
            return KillAnswer(result=KillResult.FAILED, reason="again and again it had processes without a signal")
        if self.missed and not self.signalled:
            return KillAnswer(result=KillResult.FAILED, reason=next(iter(self.missed.values())))
        return KillAnswer(result=KillResult.ENDING)


class Killer:
    """Signals the processes of containers. Use it from one thread."""

    def __init__(
        self,
        containers: Containers,
        proc_root: Path = PROC_ROOT,
        clock: Callable[[], int] = now_ticks,
        send: Send = signal.pidfd_send_signal,
    ) -> None:
        self._containers = containers
        self._proc_root = proc_root
        self._clock = clock
        self._send = send
        self._asked: dict[str, _Ending] = {}

    def terminate(
        self, container_ids: Iterable[str], daemons: Iterable[Process], deadline: Deadline, *, force: bool
    ) -> dict[str, KillAnswer]:
        """Signal all processes of these containers; the answer lacks those that have none.

        With `force` what they start meanwhile as well. Without, only what was there: a task that is told to end may
        start processes to do so. For the same reason asking again signals nobody twice.
        """
        daemons = tuple(daemons)
        found = self._containers.find(daemons)
        self._asked = {container_id: asked for container_id, asked in self._asked.items() if container_id in found}
        wanted = [container_id for container_id in dict.fromkeys(container_ids) if container_id in found]
        endings = {container_id: self._ending(container_id, force) for container_id in wanted}
        for ending in endings.values():
            ending.is_done = False
        for number in range(MAX_ROUNDS):
            for container_id, ending in endings.items():
                signalled = not ending.is_done and self._signal(found.get(container_id), ending, force)
                ending.is_done = not signalled and number > 0
            if all(ending.is_done for ending in endings.values()) or deadline.left_seconds() <= 0:
                break
            found = self._containers.find(daemons)
        return {container_id: ending.answer() for container_id, ending in endings.items()}

    def _ending(self, container_id: str, force: bool) -> _Ending:
        fresh = _Ending(proof=Proof(self._proc_root, container_id))
        return fresh if force else self._asked.setdefault(container_id, fresh)

    def _signal(self, found: Found | None, ending: _Ending, force: bool) -> bool:
        """Signal the processes that had no signal yet; whether there were any."""
        ending.missed.clear()
        if not ending.before_ticks and found is not None:
            ending.first = frozenset(stat.process for stat in found.members)
        proven: list[tuple[int, Stat]] = []
        with ExitStack() as held:
            for stat in islice(self._new(found, ending, force), MAX_HELD):
                descriptor = self._hold(stat, held, ending)
                if descriptor is None:
                    continue
                if ending.proof.shows(stat, is_root=found is not None and stat in found.roots):
                    proven.append((descriptor, stat))
                elif ending.proof.is_still_there(stat):
                    ending.missed[stat.process] = f"process {stat.pid} is not shown to be a part of it"
            if not ending.before_ticks:  # now, as what a signal makes start may do so within the same tick
                ending.before_ticks = self._clock()
            for descriptor, stat in proven:
                with suppress(ProcessLookupError):
                    self._send(descriptor, signal.SIGKILL if force else signal.SIGTERM)
                ending.signalled.add(stat.process)
        return bool(proven)

    def _new(self, found: Found | None, ending: _Ending, force: bool) -> Iterator[Stat]:
        """The processes to signal now, the oldest first."""
        for stat in () if found is None else found.members:
            is_tried = stat.process in ending.signalled or stat.process in ending.denied
            is_meant = force or stat.process in ending.first or stat.start_ticks < ending.before_ticks
            if is_meant and not is_tried and stat.pid not in (INIT_PID, os.getpid()):
                yield stat

    def _hold(self, stat: Stat, held: ExitStack, ending: _Ending) -> int | None:
        """A pidfd of a process that may be signalled."""
        try:
            descriptor = os.pidfd_open(stat.pid)
            held.callback(os.close, descriptor)
            self._send(descriptor, NO_SIGNAL)
        except ProcessLookupError:
            return None
        except PermissionError:
            ending.denied[stat.process] = f"process {stat.pid} is another user's, and may not be signalled from here"
            return None
        except OSError as error:
            if error.errno == errno.ENOSYS:
                ending.denied[stat.process] = "this kernel has no pidfds (5.3 and newer have): no signal is safe"
            else:
                ending.missed[stat.process] = f"process {stat.pid} cannot be held: {error.strerror}"
            return None
        return descriptor
