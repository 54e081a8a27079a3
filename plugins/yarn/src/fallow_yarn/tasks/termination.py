"""Terminates containers by signals that reach their processes and no other ones.

A pid may belong to another process by the time a signal arrives. So all processes of a container are held by pidfds
first, then each is verified to belong to it (see `process_check`) and signalled through its pidfd. This is repeated
until no process without a signal is found. Processes that replace each other faster than that are killed by their
cgroup, where they have one (`container_cgroups`).

Launchers are not signalled: they report the exit code to the NodeManager. When a container's root has ended, the
NodeManager kills the rest of its process group after `yarn.nodemanager.sleep-delay-before-sigkill.ms`.
"""

import errno
import os
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Final

from fallow_hookspecs import KillAnswer, KillResult, Process
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.nm.procfs import PROC_ROOT, Stat, now_ticks
from fallow_yarn.tasks.container_cgroups import ContainerCgroups, Send
from fallow_yarn.tasks.container_processes import ContainerProcesses
from fallow_yarn.tasks.process_check import ProcessCheck
from fallow_yarn.tasks.process_tree import INIT_PID, Processes

MAX_ROUNDS: Final = 20
MAX_HELD: Final = 256  # descriptors; the other processes are handled in the next round
QUIET_SCANS: Final = 2
NO_SIGNAL: Final = 0


@dataclass(slots=True)
class _Termination:
    """The state of one container's termination.

    Only `first`, the processes found first, and those started before `before_ticks` get a graceful signal. `denied`
    are processes that this user may not signal, `missed` those that could not be signalled, both with the reason.
    `quiet_scans`: so many searches in a row have found nothing to signal. `is_killed`: all in its cgroups are killed.
    """

    check: ProcessCheck
    signalled: set[Process] = field(default_factory=set)
    denied: dict[Process, str] = field(default_factory=dict)
    missed: dict[Process, str] = field(default_factory=dict)
    first: frozenset[Process] = frozenset()
    before_ticks: int = 0
    launchers: set[int] = field(default_factory=set)
    quiet_scans: int = 0
    is_killed: bool = False

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to signal: a process may have been replaced by another one during one scan."""
        return self.is_killed or self.quiet_scans >= QUIET_SCANS

    def answer(self) -> KillAnswer:
        """The answer of the contract."""
        if self.denied:
            return KillAnswer(result=KillResult.NO_ACCESS, reason=next(iter(self.denied.values())))
        if not self.is_done:
            reason = "not all of its processes were signalled in time: it may start new ones faster than that"
            return KillAnswer(result=KillResult.FAILED, reason=reason)
        if self.missed and not self.signalled:
            return KillAnswer(result=KillResult.FAILED, reason=next(iter(self.missed.values())))
        return KillAnswer(result=KillResult.TERMINATING)


class Terminator:
    """Signals the processes of containers. Use it from one thread."""

    def __init__(
        self,
        containers: ContainerProcesses,
        proc_root: Path = PROC_ROOT,
        clock: Callable[[], int] = now_ticks,
        send: Send = signal.pidfd_send_signal,
    ) -> None:
        self._containers = containers
        self._proc_root = proc_root
        self._clock = clock
        self._send = send
        self._cgroups = ContainerCgroups(proc_root, send)
        self._asked: dict[str, _Termination] = {}

    def terminate(
        self,
        container_ids: Iterable[str],
        daemons: Iterable[Process],
        deadline: Deadline,
        *,
        force: bool,
        cgroups: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> dict[str, KillAnswer]:
        """Signal all processes of these containers. Containers without a process are missing in the answer.

        :param cgroups: the containers' own cgroups, as far as they are known.

        With `force` the processes that they start in the meantime are signalled too. Without it they are not, and no
        process is signalled twice: a task may start processes in order to end properly.
        """
        daemons = tuple(daemons)
        found = self._containers.find(daemons)
        self._asked = {container_id: asked for container_id, asked in self._asked.items() if container_id in found}
        wanted = [container_id for container_id in dict.fromkeys(container_ids) if container_id in found]
        terminations = {container_id: self._termination(container_id, force) for container_id in wanted}
        for container_id, termination in terminations.items():
            termination.quiet_scans = 0
            termination.launchers |= {stat.parent_pid for stat in found[container_id].roots}
        for _ in range(MAX_ROUNDS):
            for container_id, termination in terminations.items():
                is_quiet = termination.is_done or not self._signal(found.get(container_id), termination, force)
                termination.quiet_scans = termination.quiet_scans + 1 if is_quiet else 0
            if all(termination.is_done for termination in terminations.values()) or deadline.left_seconds() <= 0:
                break
            found = self._containers.find(daemons)
        for container_id, own in cgroups.items() if force else ():
            # A search through all processes may miss one that is replaced meanwhile, also each one of a container.
            termination = terminations.get(container_id) or self._termination(container_id, force)
            if (killed := self._cgroups.kill(container_id, own, termination.launchers)) is not None:
                termination.quiet_scans, termination.is_killed = 0, killed
                terminations[container_id] = termination
        return {container_id: termination.answer() for container_id, termination in terminations.items()}

    def _termination(self, container_id: str, force: bool) -> _Termination:
        fresh = _Termination(check=ProcessCheck(self._proc_root, container_id))
        return fresh if force else self._asked.setdefault(container_id, fresh)

    def _signal(self, found: Processes | None, termination: _Termination, force: bool) -> bool:
        """Signal the processes that have had no signal yet; whether there were any, also if they ended before it."""
        termination.missed.clear()
        if not termination.before_ticks and found is not None:
            termination.first = frozenset(stat.process for stat in found.members)
        verified: list[tuple[int, Stat]] = []
        new = list(islice(self._new(found, termination, force), MAX_HELD))
        with ExitStack() as held:
            for stat in new:
                descriptor = self._hold(stat, held, termination)
                if descriptor is None:
                    continue
                if termination.check.belongs(stat, is_root=found is not None and stat in found.roots):
                    verified.append((descriptor, stat))
                elif termination.check.is_still_there(stat):
                    termination.missed[stat.process] = f"process {stat.pid} could not be verified to belong to it"
            if (
                not termination.before_ticks
            ):  # now: a process that the signal makes start may do so within the same tick
                termination.before_ticks = self._clock()
            for descriptor, stat in verified:
                with suppress(ProcessLookupError):
                    self._send(descriptor, signal.SIGKILL if force else signal.SIGTERM)
                termination.signalled.add(stat.process)
        return any(stat.process not in termination.denied and stat.process not in termination.missed for stat in new)

    def _new(self, found: Processes | None, termination: _Termination, force: bool) -> Iterator[Stat]:
        """The processes to signal now, the oldest first."""
        for stat in () if found is None else found.members:
            is_handled = stat.process in termination.signalled or stat.process in termination.denied
            is_meant = force or stat.process in termination.first or stat.start_ticks < termination.before_ticks
            if is_meant and not is_handled and stat.pid not in (INIT_PID, os.getpid()):
                yield stat

    def _hold(self, stat: Stat, held: ExitStack, termination: _Termination) -> int | None:
        """A pidfd of a process that may be signalled."""
        try:
            descriptor = os.pidfd_open(stat.pid)
            held.callback(os.close, descriptor)
            self._send(descriptor, NO_SIGNAL)
        except ProcessLookupError:
            return None
        except PermissionError:
            termination.denied[stat.process] = (
                f"process {stat.pid} belongs to another user, and may not be signalled from here"
            )
            return None
        except OSError as error:
            if error.errno == errno.ENOSYS:
                termination.denied[stat.process] = (
                    "this kernel has no pidfds (they need 5.3 or newer), so no signal is safe"
                )
            else:
                termination.missed[stat.process] = f"process {stat.pid} cannot be held: {error.strerror}"
            return None
        return descriptor
