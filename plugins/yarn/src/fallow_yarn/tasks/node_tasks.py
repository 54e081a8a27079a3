"""The tasks of one node in the words of the contract: listing them, ending them, and where they are."""

import time
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from fallow_hookspecs import KillAnswer, KillOrder, KillResult, Placement, Process, Task, TaskRole, TaskState
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.model.size import resources
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.nm.containers import Answer, Listing, ask
from fallow_yarn.nm.daemons import RunningNodeManagers
from fallow_yarn.nm.procfs import (
    PROC_ROOT,
    TICKS_PER_SECOND,
    now_ticks,
    own_cgroups,
    read_all,
    read_cgroups,
    read_environment,
)
from fallow_yarn.security.web_access import WebAccess
from fallow_yarn.tasks.container_processes import Containers
from fallow_yarn.tasks.container_tracking import Entry, Look, Seen, after
from fallow_yarn.tasks.placement import placement
from fallow_yarn.tasks.process_tree import Found
from fallow_yarn.tasks.termination import Killer


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The tasks, their age, what could not be told, and the processes of all NodeManagers on this host."""

    tasks: tuple[Task, ...]
    age_seconds: float
    problems: tuple[str, ...]
    node_managers: tuple[Process, ...]


class NodeTasks:
    """The containers of a node's NodeManagers. One thread calls `list`, one the others; both may at the same time.

    `addresses` are the web addresses of the NodeManagers that should answer, by node id. `clock` gives monotonic
    seconds, `ticks` the present on the clock of start times.
    """

    def __init__(
        self,
        access: WebAccess,
        vcore_milli: int,
        clock: Callable[[], float] = time.monotonic,
        ticks: Callable[[], int] = now_ticks,
        proc_root: Path = PROC_ROOT,
    ) -> None:
        self._access = access
        self._vcore_milli = vcore_milli
        self._clock = clock
        self._ticks = ticks
        self._proc_root = proc_root
        self._containers = Containers(proc_root, ticks)
        self._killer = Killer(self._containers, proc_root, ticks)
        self._managers = RunningNodeManagers(proc_root, ticks)
        self._running: tuple[Process, ...] | None = None
        self._seen = Seen()

    def list(
        self,
        addresses: Mapping[str, str],
        own_ids: Container[str],
        deadline: Deadline,
        masters: Collection[str] = (),
    ) -> Listed:
        """All containers that hold resources. `own_ids`: all NodeManagers of the node, those that have ended too.

        `masters`: the containers that are known to be the masters of their applications now.
        """
        at, ticks = self._clock(), self._ticks()
        answers = ask(addresses, self._access, deadline)
        stats = read_all(self._proc_root)
        self._running = running = self._managers.find(stats)
        found = self._containers.find(running, stats)
        look = Look(answers=answers, found=found, at=at, ticks=ticks, node_of=self._node_of)
        self._seen = seen = after(self._seen, look, own_ids)
        now, now_ticks = self._clock(), self._ticks()
        known = {master.application_id: master for master in map(ContainerId.parse, masters) if master is not None}
        return Listed(
            tasks=tuple(self._task(entry, found.get(i), known, now, now_ticks) for i, entry in seen.entries.items()),
            age_seconds=now - min(seen.asked_at.values(), default=at),
            problems=seen.problems,
            node_managers=running,
        )

    def terminate(self, order: KillOrder, addresses: Mapping[str, str], deadline: Deadline) -> dict[str, KillAnswer]:
        """Signal the containers of an order; those without a process here are looked up at their NodeManagers."""
        answers = self._killer.terminate(order.task_ids, self.node_managers(), deadline, force=order.force)
        missing = [container_id for container_id in order.task_ids if container_id not in answers]
        if missing:
            listings = ask(addresses, self._access, deadline)
            answers |= {container_id: _without_process(container_id, listings) for container_id in missing}
        return answers

    def placement(self, parent: str) -> Placement:
        """Where the containers of the newest list are, and who may be moved below `parent`."""
        return placement(
            tuple(self._seen.entries), self._containers.find(self.node_managers()), parent, self._proc_root
        )

    def node_managers(self) -> tuple[Process, ...]:
        """The processes of those of the newest list: an ending reads no more than it must of a host that is short of
        memory.
        """
        running = self._running
        if running is None:
            running = RunningNodeManagers(self._proc_root, self._ticks).find(read_all(self._proc_root))
        return running

    def _task(
        self, entry: Entry, found: Found | None, masters: Mapping[str, ContainerId], now: float, now_ticks: int
    ) -> Task:
        container = entry.container
        roots = () if found is None else found.roots
        cgroups = read_cgroups(self._proc_root, roots[0].pid) if roots else ()
        return Task(
            id=container.id.text,
            application_id=container.id.application_id,
            framework_node=entry.node_id,
            state=container.state,
            requested=resources(container.requested, self._vcore_milli),
            role=role_of(container.id, masters.get(container.id.application_id)),
            age_seconds=max(now_ticks - roots[0].start_ticks, 0) / TICKS_PER_SECOND if roots else None,
            ending_age_seconds=None if entry.ending_since is None else now - entry.ending_since,
            opportunistic=container.opportunistic,
            cgroups=own_cgroups(container.id.text, cgroups),
            processes=tuple(stat.process for stat in roots),
        )

    def _node_of(self, found: Found) -> str:
        environments = (read_environment(self._proc_root, stat.pid) for stat in found.roots)
        return next((environment.node_id for environment in environments if environment is not None), "")


def role_of(container_id: ContainerId, master: ContainerId | None) -> TaskRole:
    """Whether a container is a master. `master`: the one that its application is known to have.

    Where none is known, and for an attempt that is newer than that, the first container of an attempt passes for one.
    It need not be one: an application may have its master elsewhere, or keep the containers of its earlier attempts.
    """
    is_guessed = master is None or container_id.attempt > master.attempt
    is_master = container_id.is_first if is_guessed else container_id == master
    return TaskRole.MASTER if is_master else TaskRole.WORKER


def _without_process(container_id: str, listings: Mapping[str, Answer]) -> KillAnswer:
    """What can be said of a container that has no process here."""
    for node_id, answer in listings.items():
        container = answer.containers.get(container_id) if isinstance(answer, Listing) else None
        if container is None:
            continue
        if container.is_done:
            return KillAnswer(result=KillResult.ALREADY_GONE)
        if container.state is TaskState.STARTING:
            return KillAnswer(result=KillResult.FAILED, reason="it is starting, and has no process yet that could end")
        if container.state is TaskState.ENDING:
            return KillAnswer(result=KillResult.ENDING)
        reason = f"{node_id} says that it runs, but none of its processes can be seen from here"
        return KillAnswer(result=KillResult.NO_ACCESS, reason=reason)
    unknown = [
        str(answer) if not isinstance(answer, Listing) else "entries of its list are not readable"
        for answer in listings.values()
        if not isinstance(answer, Listing) or answer.unreadable
    ]
    if unknown or not listings:
        why = "; ".join(unknown) or "no NodeManager of this node is known"
        return KillAnswer(
            result=KillResult.FAILED, reason=f"it has no process here, and whether it exists is open: {why}"
        )
    return KillAnswer(result=KillResult.ALREADY_GONE)
