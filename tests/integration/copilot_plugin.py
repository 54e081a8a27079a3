"""A plugin in memory whose answers depend on the call alone, in its own process and in Fallow's.

What goes wrong is asked for by the name of the node: `later`, `broken`, `refused`, `fault`, `slow`, `nothing`, `wrong`.
"""

import time
from pathlib import Path
from typing import Any

from fallow_hookspecs import (
    Application,
    Broken,
    Capabilities,
    CapacityReport,
    ClusterConfig,
    Daemon,
    Finding,
    Gang,
    GangReport,
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
    Plugin,
    PluginError,
    Process,
    Refusal,
    ReportRow,
    ResourceCapability,
    Resources,
    Task,
    TaskList,
    TaskPlacement,
    TaskRole,
    TaskState,
    TryLater,
    hookimpl,
)

GIB = 2**30
CAPABILITIES = Capabilities(
    cpu=ResourceCapability(honoured=True, takes_back=True, take_back_charged=False),
    memory=ResourceCapability(honoured=True),
    ends_single_tasks=True,
    ends_gracefully=True,
    has_gangs=True,
    offer_lasts_seconds=3600,
)


class Spec:
    """`spec`: how long a slow call takes, and a file that the instance writes to when it begins a slow call."""

    def __init__(self, slow_seconds: float = 0.0, log: str = "") -> None:
        self.slow_seconds, self.log = slow_seconds, log

    @classmethod
    def model_validate(cls, obj: Any) -> "Spec":
        return cls(**obj)

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {}


def check(node: Node, spec: Spec) -> None:
    match node.name:
        case "later":
            raise TryLater("the manager is starting", 2.5)
        case "broken":
            raise Broken("the manager knows no such cluster")
        case "refused":
            raise PluginError("the manager says no, in its own words: «nein»")
        case "fault":
            raise KeyError("container_7")
        case "slow":
            if spec.log:
                with Path(spec.log).open("a") as log:
                    log.write("begun\n")
            time.sleep(spec.slow_seconds)


def row(node: Node, framework_node: str) -> ReportRow:
    return ReportRow(
        node=node.name,
        framework_node=framework_node,
        age_seconds=0.25,
        state=NodeState.RUNNING,
        allocated=Resources(0, 3 * GIB),
        in_force=None if node.pods else Resources(8000, 16 * GIB),
        unit=Resources(1000, 2**20),
        floor=Resources(0, 0),
        started_age_seconds=0.0,
    )


class Manager:
    """The instance."""

    def __init__(self, cluster: ClusterConfig) -> None:
        self.cluster = cluster
        self.spec: Spec = cluster.spec

    @hookimpl
    def report_capacity(self, nodes: tuple[Node, ...], offers: tuple[Offer, ...]) -> CapacityReport | None:
        for node in nodes:
            check(node, self.spec)
            if node.name == "nothing":
                return None
        good = tuple(row(node, f"{node.name}:{port}") for node in nodes for port in (1, 2))
        wrong = tuple(
            ReportRow(
                node=node.name,
                framework_node="wrong:1",
                age_seconds=1.0,
                state=NodeState.RUNNING,
                allocated=Resources(0.5, "x"),  # type: ignore[arg-type]
                in_force=None,
                unit=Resources(1, 1),
                floor=Resources(1, 1),
            )
            for node in nodes
            if node.name == "wrong"
        )
        return CapacityReport(
            capabilities=CAPABILITIES,
            rows=good + wrong,
            answers=tuple(self._answer(offer) for offer in offers),
            pending=Pending(total=Resources(5000, 5 * GIB), smallest=Resources(1, 0)),
            applications=(
                Application(id="a1", name="wordcount ÷", user="me", queue="root", kind="mr", priority=-1, progress=0.0),
            ),
            gangs=(GangReport(id="g", minimum=2, running=0),),
            detail=f"{self.cluster.name}, {sorted(self.cluster.roles)}",
        )

    @hookimpl
    def list_tasks(self, node: Node) -> TaskList | None:
        check(node, self.spec)
        if node.name == "nothing":
            return None
        return TaskList(
            tasks=(
                Task(
                    id="t1",
                    application_id="a1",
                    framework_node="n:1",
                    state=TaskState.RUNNING,
                    requested=Resources(1000, GIB),
                    role=TaskRole.MASTER,
                    age_seconds=0.0,
                    cgroups=("batch/t1",),
                    gang=Gang(id="", minimum=0, members=0),
                ),
                Task(
                    id="t2",
                    application_id="a1",
                    framework_node="n:1",
                    state=TaskState.TERMINATING,
                    requested=Resources(1000, 0),
                    terminating_age_seconds=3.5,
                    processes=(Process(4711, 99), Process(4712, 100)),
                    pod_uid="",
                    may_be_ended=False,
                ),
            ),
            age_seconds=0.0,
            complete=not node.labels,
            daemons=(Daemon(process=Process(1, 2)), Daemon(process=Process(3, 4), framework_node="n:1")),
            incomplete_reason="; ".join(f"{key} is {value}" for key, value in sorted(node.labels.items())),
        )

    @hookimpl
    def kill_tasks(self, node: Node, order: KillOrder) -> KillOutcome:
        check(node, self.spec)
        results = list(KillResult)
        return KillOutcome(
            answers={
                task_id: KillAnswer(result=results[index % len(results)], reason=order.reason if order.force else "")
                for index, task_id in enumerate(order.task_ids)
            }
        )

    @hookimpl
    def set_cgroup_parent(self, node: Node, parent: str) -> Placement:
        check(node, self.spec)
        return Placement(
            new_tasks_follow=True,
            tasks=(
                TaskPlacement(task_id="t1", cgroups=(f"{parent}/t1",)),
                TaskPlacement(task_id="t2", movable=(Process(4711, 99),)),
                TaskPlacement(task_id="t3", setting="place.tasks=true"),
            ),
            reason=f"asked for {parent}",
        )

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        return (
            Finding(subject="manager", ok=True, detail=f"knows {len(nodes)} nodes"),
            Finding(subject="queue", ok=False, detail="is closed", advice="open it"),
            Finding(subject="rights", ok=None, detail="cannot be told"),
        )

    def close(self) -> None:
        pass

    def _answer(self, offer: Offer) -> OfferAnswer:
        if offer.framework_node == "unknown:1":
            return OfferAnswer(
                node=offer.node,
                framework_node=offer.framework_node,
                accepted=None,
                refusal=Refusal.UNKNOWN_NODE,
                reason=f"no such node; take back {dict(offer.take_back)}",
            )
        return OfferAnswer(node=offer.node, framework_node=offer.framework_node, accepted=offer.total)


PLUGIN = Plugin(name="copilot_fake", api_levels=(0, 0), config_model=lambda: Spec, build=Manager)
