"""The hooks of one YARN cluster on a host whose controller runs elsewhere: it asks this host only.

It needs no ResourceManager and no keytab for one, and does not import the modules that talk to one. The controller
contributes what only the ResourceManager knows, such as the masters of applications.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from fallow_hookspecs import (
    ClusterConfig,
    Daemon,
    Finding,
    KillOrder,
    KillOutcome,
    Node,
    Placement,
    Process,
    TaskList,
    hookimpl,
)
from fallow_yarn.model.node_matching import OwnIds
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.nm.discovery import Discovery, Wanted
from fallow_yarn.nm.procfs import PROC_ROOT, now_ticks
from fallow_yarn.nm.proof import uid_of
from fallow_yarn.security.web_access import web_access
from fallow_yarn.settings.agent_settings import AgentSettings
from fallow_yarn.tasks.node_tasks import NodeTasks


class YarnAgent:
    """The NodeManagers of one cluster on this host. It reports nothing, and sends no size."""

    def __init__(
        self,
        cluster: ClusterConfig,
        clock: Callable[[], float] = time.monotonic,
        proc_root: Path = PROC_ROOT,
        ticks: Callable[[], int] = now_ticks,
    ) -> None:
        settings: AgentSettings = cluster.spec
        self._settings, self._rules = settings, settings.rules
        self._clock, self._proc_root, self._ticks = clock, proc_root, ticks
        self._access = web_access(settings)
        self._discovery = Discovery(self._access, proc_root)
        self._node_manager_uid = uid_of(settings.node_manager_user)
        self._tasks: dict[str, NodeTasks] = {}
        self._web: Mapping[str, Mapping[str, str]] = {}

    @hookimpl
    def list_tasks(self, node: Node, timeout_seconds: float) -> TaskList:
        """The containers of this host's own NodeManagers, and the NodeManagers."""
        deadline = Deadline.after(timeout_seconds, self._clock)
        tasks, own = self._tasks_of(node), OwnIds(node, self._rules)
        running = tasks.node_managers()
        problems = self._discover(self._discovery, node, running, deadline)
        web = _addresses(self._discovery, own)
        self._web = {**self._web, node.name: web}
        listed = tasks.list(web, own, deadline)
        if not set(listed.node_managers) <= set(running):
            problems = self._discover(self._discovery, node, listed.node_managers, deadline)
        local = [(process, found.node_id) for process, found in self._discovery.known.items() if found.node_id in own]
        problems += [f"NodeManager {node_id} has just started" for _, node_id in local if node_id not in web]
        problems += listed.problems
        daemons = [Daemon(process=process, framework_node=node_id) for process, node_id in local]
        daemons += [Daemon(process=process) for process in self._discovery.unread]
        return TaskList(
            tasks=listed.tasks,
            age_seconds=listed.age_seconds,
            complete=not problems,
            daemons=tuple(daemon for daemon in daemons if daemon.process in listed.node_managers),
            incomplete_reason="; ".join(problems),
        )

    @hookimpl
    def kill_tasks(self, node: Node, order: KillOrder, timeout_seconds: float) -> KillOutcome:
        """Signal the containers' processes; "no access" where that is not permitted."""
        deadline = Deadline.after(timeout_seconds, self._clock)
        tasks, web = self._tasks_of(node), self._web.get(node.name)
        if web is None:  # nothing was listed yet
            discovery = Discovery(self._access, self._proc_root)
            self._discover(discovery, node, tasks.node_managers(), deadline)
            web = _addresses(discovery, OwnIds(node, self._rules))
        return KillOutcome(answers=tasks.terminate(order, web, deadline))

    @hookimpl
    def set_cgroup_parent(self, node: Node, parent: str) -> Placement:
        """Where the containers of the newest list are. A NodeManager places them by its own settings only."""
        return self._tasks_of(node).placement(parent)

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        """The findings of `fallow doctor` about the NodeManagers here."""
        from fallow_yarn.diagnosis.agent import diagnose  # loaded on demand: an agent rarely needs it

        deadline = Deadline.after(timeout_seconds, self._clock)
        found: list[Finding] = []
        for node in nodes:
            problems = self._discover(self._discovery, node, self._tasks_of(node).node_managers(), deadline)
            own = OwnIds(node, self._rules)
            found += diagnose(node, self._discovery.known, problems, own, self._access, deadline)
        return tuple(found)

    def close(self) -> None:
        """It keeps nothing open."""

    def _discover(
        self, discovery: Discovery, node: Node, running: tuple[Process, ...], deadline: Deadline
    ) -> list[str]:
        """Discover new NodeManagers; the problems with those that remain unknown."""
        wanted = Wanted(host=node.addresses, ids=self._rules.configured(node.name) or ())
        return discovery.discover(running, wanted, deadline)

    def _tasks_of(self, node: Node) -> NodeTasks:
        vcore_milli, uid = self._settings.vcore_milli, self._node_manager_uid
        tasks = NodeTasks(self._access, vcore_milli, self._clock, self._ticks, self._proc_root, uid)
        return self._tasks.setdefault(node.name, tasks)


def _addresses(discovery: Discovery, own: OwnIds) -> dict[str, str]:
    """The web addresses of the node's own NodeManagers, by id."""
    return {found.node_id: found.web for found in discovery.known.values() if found.node_id in own}
