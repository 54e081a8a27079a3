"""The tasks of one node, as the contract has them: lists them, terminates them, and tells their cgroups."""

import time
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from fallow_hookspecs import KillAnswer, KillOrder, KillResult, Placement, Process, Task, TaskRole, TaskState
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.model.size import resources
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.nm.containers import Answer, Listing, Listings, ask
from fallow_yarn.nm.daemons import RunningNodeManagers
from fallow_yarn.nm.procfs import (
    PROC_ROOT,
    TICKS_PER_SECOND,
    ProcessReader,
    now_ticks,
    read_all,
    read_environment,
)
from fallow_yarn.security.web_access import WebAccess
from fallow_yarn.tasks.container_engines import unseen
from fallow_yarn.tasks.container_processes import ContainerProcesses
from fallow_yarn.tasks.container_tracking import Entry, Observation, TrackedContainers, tracked
from fallow_yarn.tasks.own_cgroups import OwnCgroups
from fallow_yarn.tasks.placement import placement
from fallow_yarn.tasks.process_tree import Processes
from fallow_yarn.tasks.termination import Terminator


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskListing:
    """The tasks, their age, why the list is incomplete, and the processes of all NodeManagers on this host."""

    tasks: tuple[Task, ...]
    age_seconds: float
    problems: tuple[str, ...]
    node_managers: tuple[Process, ...]


class NodeTasks:
    """The containers of a node's NodeManagers. One thread calls `list`, one the others; both may at the same time.

    `addresses` are the web addresses of the NodeManagers that should answer, by node id. `clock` gives monotonic
    seconds, `ticks` the present on the clock of start times. `node_manager_uid`: the configured user of NodeManagers.
    """

    def __init__(
        self,
        access: WebAccess,
        vcore_milli: int,
        clock: Callable[[], float] = time.monotonic,
        ticks: Callable[[], int] = now_ticks,
        proc_root: Path = PROC_ROOT,
        node_manager_uid: int | None = None,
    ) -> None:
        self._access = access
        self._vcore_milli = vcore_milli
        self._clock = clock
        self._ticks = ticks
        self._proc_root = proc_root
        self._containers = ContainerProcesses(proc_root, ticks)
        self._terminator = Terminator(self._containers, proc_root, ticks)
        self._managers = RunningNodeManagers(proc_root, ticks, node_manager_uid)
        self._listings = Listings()
        self._processes = ProcessReader(proc_root, ticks)
        self._cgroups = OwnCgroups(proc_root)
        self._own_cgroups: dict[str, tuple[str, ...]] = {}
        self._running: tuple[Process, ...] | None = None
        self._tracked = TrackedContainers()

    def list(
        self,
        addresses: Mapping[str, str],
        own_ids: Container[str],
        deadline: Deadline,
        masters: Collection[str] = (),
    ) -> TaskListing:
        """All containers that hold resources. `own_ids`: all NodeManagers of the node, those that have ended too.

        `masters`: the containers known to be the current masters of their applications.
        """
        at, ticks = self._clock(), self._ticks()
        answers = ask(addresses, self._access, deadline, self._listings)
        stats = self._processes.read_all()
        self._running = running = self._managers.find(stats, self._containers)
        found = self._containers.find(running, stats)
        observed = Observation(answers=answers, found=found, at=at, ticks=ticks, node_of=self._node_of)
        self._tracked = known = tracked(self._tracked, observed, own_ids)
        now, now_ticks = self._clock(), self._ticks()
        self._cgroups.start(now_ticks)
        by_application = {m.application_id: m for m in map(ContainerId.parse, masters) if m is not None}
        tasks = tuple(
            self._task(entry, found.get(container_id), by_application, now, now_ticks)
            for container_id, entry in known.entries.items()
        )
        before = self._own_cgroups
        self._own_cgroups = {task.id: task.cgroups or before.get(task.id, ()) for task in tasks}
        return TaskListing(
            tasks=tasks,
            age_seconds=now - min(known.asked_at.values(), default=at),
            problems=(*known.problems, *unseen(found, stats), *filter(None, (self._managers.unsure,))),
            node_managers=running,
        )

    def terminate(self, order: KillOrder, addresses: Mapping[str, str], deadline: Deadline) -> dict[str, KillAnswer]:
        """Signal the containers of an order; their NodeManagers are asked about those without a process here."""
        cgroups = {container_id: self._own_cgroups.get(container_id, ()) for container_id in order.task_ids}
        managers = self.node_managers()
        answers = self._terminator.terminate(order.task_ids, managers, deadline, force=order.force, cgroups=cgroups)
        self._processes.read_all_again()
        missing = [container_id for container_id in order.task_ids if container_id not in answers]
        if missing:
            listings = ask(addresses, self._access, deadline)
            answers |= {container_id: _without_process(container_id, listings) for container_id in missing}
        return answers

    def placement(self, parent: str) -> Placement:
        """The cgroups of the containers in the newest list, and which processes may be moved below `parent`."""
        found, known = self._containers.found, self._cgroups.known
        return placement(tuple(self._tracked.entries), found, known, parent, self._proc_root)

    def node_managers(self) -> tuple[Process, ...]:
        """The NodeManager processes of the newest list: a termination reads little, as the host may lack memory."""
        running = self._running
        if running is None:
            running = self._managers.find(read_all(self._proc_root), self._containers)
        return running

    def _task(
        self,
        entry: Entry,
        found: Processes | None,
        masters: Mapping[str, ContainerId],
        now: float,
        now_ticks: int,
    ) -> Task:
        container = entry.container
        roots = () if found is None else found.roots
        return Task(
            id=container.id.text,
            application_id=container.id.application_id,
            framework_node=entry.node_id,
            state=container.state,
            requested=resources(container.requested, self._vcore_milli),
            role=role_of(container.id, masters.get(container.id.application_id)),
            age_seconds=max(now_ticks - roots[0].start_ticks, 0) / TICKS_PER_SECOND if roots else None,
            terminating_age_seconds=None if entry.ending_since is None else now - entry.ending_since,
            opportunistic=container.opportunistic,
            cgroups=self._cgroups.of(container.id.text, roots[0].process) if roots else (),
            processes=tuple(stat.process for stat in roots),
        )

    def _node_of(self, found: Processes) -> str:
        environments = (read_environment(self._proc_root, stat.pid) for stat in found.roots)
        return next((environment.node_id for environment in environments if environment is not None), "")


def role_of(container_id: ContainerId, master: ContainerId | None) -> TaskRole:
    """Whether a container is a master. `master`: the one that its application is known to have.

    Without a known master, and for a newer attempt, the first container of an attempt counts as the master. It need not
    be the master: it may be elsewhere, or the application keeps the containers of its earlier attempts.
    """
    is_guessed = master is None or container_id.attempt > master.attempt
    is_master = container_id.is_first if is_guessed else container_id == master
    return TaskRole.MASTER if is_master else TaskRole.WORKER


def _without_process(container_id: str, listings: Mapping[str, Answer]) -> KillAnswer:
    """The answer for a container that has no process here, from what the NodeManagers list."""
    for node_id, answer in listings.items():
        container = answer.containers.get(container_id) if isinstance(answer, Listing) else None
        if container is None:
            continue
        if container.is_done:
            return KillAnswer(result=KillResult.ALREADY_GONE)
        if container.state is TaskState.STARTING:
            return KillAnswer(
                result=KillResult.FAILED, reason="it is starting, and has no process yet that could be signalled"
            )
        if container.state is TaskState.TERMINATING:
            return KillAnswer(result=KillResult.TERMINATING)
        reason = f"{node_id} lists it as running, but none of its processes is visible from here"
        return KillAnswer(result=KillResult.NO_ACCESS, reason=reason)
    unknown = [
        str(answer) if not isinstance(answer, Listing) else "some entries of its list cannot be read"
        for answer in listings.values()
        if not isinstance(answer, Listing) or answer.unreadable
    ]
    if unknown or not listings:
        why = "; ".join(unknown) or "no NodeManager of this node is known"
        return KillAnswer(
            result=KillResult.FAILED, reason=f"it has no process here, and it is unknown whether it exists: {why}"
        )
    return KillAnswer(result=KillResult.ALREADY_GONE)
