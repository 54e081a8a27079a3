"""The hooks of one cluster: here, one queue on this host. Its only node is called `local`."""

import time
from typing import Any

from fallow_hookspecs import (
    Application,
    Capabilities,
    CapacityReport,
    ClusterConfig,
    Finding,
    KillAnswer,
    KillOrder,
    KillOutcome,
    KillResult,
    Node,
    NodeState,
    Offer,
    OfferAnswer,
    Pending,
    Placement,
    PluginError,
    Refusal,
    ReportRow,
    ResourceCapability,
    Resources,
    Task,
    TaskList,
    TaskPlacement,
    TaskState,
    hookimpl,
    read_stat,
)
from fallow_local_queue.client import ask
from fallow_local_queue.processes import of_session

FRAMEWORK_NODE = "local"
LOOPBACK = "127.0.0.1"
CAPABILITIES = Capabilities(
    cpu=ResourceCapability(honoured=True),
    memory=ResourceCapability(honoured=True),
    ends_single_tasks=True,
    ends_gracefully=True,
)


class LocalQueue:
    """One queue. It keeps nothing between calls, so both lanes may call it at the same time."""

    def __init__(self, cluster: ClusterConfig) -> None:
        self._socket: str = cluster.spec.socket

    @hookimpl
    def report_capacity(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
    ) -> CapacityReport:
        """Carry out the offers, and report."""
        deadline = time.monotonic() + timeout_seconds
        answers = tuple(self._answer(offer, deadline) for offer in offers)
        asked_at = time.monotonic()
        state = self._ask({"do": "state"}, deadline)
        age_seconds = time.monotonic() - asked_at
        running = [job for job in state["jobs"] if job["pid"] is not None]
        waiting = [_request(job) for job in state["jobs"] if job["pid"] is None]
        return CapacityReport(
            capabilities=CAPABILITIES,
            rows=tuple(_row(node, state, running, age_seconds) for node in nodes if _is_here(node)),
            answers=answers,
            pending=Pending(total=_sum(waiting)),
            applications=tuple(
                Application(id=job["id"], name=job["id"], user="local", queue="local", kind="local_queue")
                for job in running
            ),
            detail=f"queue at {self._socket}",
        )

    @hookimpl
    def list_tasks(self, node: Node, timeout_seconds: float) -> TaskList:
        """The jobs that run. Each is one task and one application."""
        asked_at = time.monotonic()
        state = self._ask({"do": "state"}, asked_at + timeout_seconds)
        jobs = [job for job in state["jobs"] if job["pid"] is not None] if _is_here(node) else []
        return TaskList(tasks=tuple(_task(job) for job in jobs), age_seconds=time.monotonic() - asked_at, complete=True)

    @hookimpl
    def kill_tasks(self, node: Node, order: KillOrder, timeout_seconds: float) -> KillOutcome:
        """Have the queue signal the jobs: it is their parent, so no other process can be meant."""
        request = {"do": "end", "jobs": list(order.task_ids), "force": order.force, "reason": order.reason}
        terminating = self._ask(request, time.monotonic() + timeout_seconds)["terminating"]
        results = {i: KillResult.TERMINATING if i in terminating else KillResult.ALREADY_GONE for i in order.task_ids}
        return KillOutcome(answers={i: KillAnswer(result=result) for i, result in results.items()})

    @hookimpl
    def set_cgroup_parent(self, node: Node, parent: str, timeout_seconds: float) -> Placement:
        """The queue makes no cgroups, so core may move every process."""
        tasks = self.list_tasks(node, timeout_seconds).tasks
        return Placement(
            new_tasks_follow=False,
            tasks=tuple(
                TaskPlacement(task_id=task.id, movable=tuple(of_session(task.processes[0].pid)))
                for task in tasks
                if task.processes
            ),
            reason="the queue makes no cgroups",
        )

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        """Whether the queue answers."""
        try:
            self._ask({"do": "state"}, time.monotonic() + timeout_seconds)
        except PluginError as error:
            return (Finding(subject="queue", ok=False, detail=str(error), advice="start it, and check spec.socket"),)
        return (Finding(subject="queue", ok=True, detail=f"answers at {self._socket}"),)

    def close(self) -> None:
        """Nothing is kept open."""

    def _ask(self, request: dict[str, Any], deadline: float) -> Any:
        return ask(self._socket, request, max(deadline - time.monotonic(), 0.001))

    def _answer(self, offer: Offer, deadline: float) -> OfferAnswer:
        """What becomes of one offer; one that fails spoils no other."""
        total = offer.total
        if offer.framework_node != FRAMEWORK_NODE:
            return _refused(offer, Refusal.UNKNOWN_NODE, f"the queue has one node, {FRAMEWORK_NODE!r}")
        if min(total.cpu_milli, total.memory_bytes) < 0:
            return _refused(offer, Refusal.BAD_VALUE, "a size cannot be negative")
        if offer.take_back:
            return _refused(offer, Refusal.BAD_VALUE, "the queue takes nothing back")
        request = {"do": "resize", "cpu_milli": total.cpu_milli, "memory_bytes": total.memory_bytes}
        try:
            self._ask(request, deadline)
        except PluginError as error:
            return _refused(offer, Refusal.FAILED, str(error))
        return OfferAnswer(node=offer.node, framework_node=offer.framework_node, accepted=total)


def _is_here(node: Node) -> bool:
    """Whether it is this host: core names its addresses, loopback among them in standalone mode."""
    return LOOPBACK in node.addresses


def _row(node: Node, state: Any, running: list[Any], age_seconds: float) -> ReportRow:
    return ReportRow(
        node=node.name,
        framework_node=FRAMEWORK_NODE,
        age_seconds=age_seconds,
        state=NodeState.RUNNING,
        allocated=_sum([_request(job) for job in running]),
        in_force=_request(state),
        unit=Resources(1, 1),
        floor=Resources(0, 0),
    )


def _task(job: Any) -> Task:
    terminating_seconds, stat = job["terminating_seconds"], read_stat(job["pid"])
    return Task(
        id=job["id"],
        application_id=job["id"],
        framework_node=FRAMEWORK_NODE,
        state=TaskState.RUNNING if terminating_seconds is None else TaskState.TERMINATING,
        requested=_request(job),
        terminating_age_seconds=terminating_seconds,
        processes=() if stat is None else (stat.process,),
    )


def _request(job: Any) -> Resources:
    return Resources(cpu_milli=job["cpu_milli"], memory_bytes=job["memory_bytes"])


def _sum(amounts: list[Resources]) -> Resources:
    return Resources(sum(each.cpu_milli for each in amounts), sum(each.memory_bytes for each in amounts))


def _refused(offer: Offer, refusal: Refusal, reason: str) -> OfferAnswer:
    return OfferAnswer(
        node=offer.node, framework_node=offer.framework_node, accepted=None, refusal=refusal, reason=reason
    )
