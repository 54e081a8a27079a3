"""For each clause a plugin that breaks it, in one place. All else is as in the correct one."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tests.conformance.memory_framework import FLOOR, FULL, NODES, REQUEST, MemoryInstance, Model, Work, plugin_of

from fallow_hookspecs import (
    Application,
    CapacityReport,
    GangReport,
    KillAnswer,
    KillOrder,
    KillOutcome,
    KillResult,
    Node,
    Offer,
    OfferAnswer,
    Pending,
    Placement,
    Plugin,
    Refusal,
    ReportRow,
    Resources,
    Task,
    TaskList,
    TaskPlacement,
    TaskState,
    hookimpl,
)


class Wrong(NamedTuple):
    """The suite that finds it (`Controller` or `Agent`), what it is called, and the plugin."""

    suite: str
    name: str
    plugin: Callable[[], Plugin]


WRONG: dict[str, Wrong] = {}
"""By clause."""


def breaks(clause: str, suite: str = "Controller") -> Callable[[type], type]:
    """Say which clause an instance breaks."""

    def note(instance: type) -> type:
        WRONG[clause] = Wrong(suite, instance.__name__, lambda: plugin_of(instance))
        return instance

    return note


class AnyKey(Model):
    @classmethod
    def model_validate(cls, obj: Any) -> Any:
        return obj["server"]


class NoSchema(Model):
    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {}


WRONG["plugin.level"] = Wrong("Controller", "OtherLevels", lambda: plugin_of(levels=(7, 9)))
WRONG["plugin.unknown-keys"] = Wrong("Controller", "AnyKey", lambda: plugin_of(model=AnyKey))
WRONG["plugin.schema"] = Wrong("Controller", "NoSchema", lambda: plugin_of(model=NoSchema))


@breaks("plugin.hooks")
class Misspelt(MemoryInstance):
    @hookimpl
    def report_capacitys(self) -> None: ...


@breaks("plugin.close")
class LeavesAThread(MemoryInstance):
    @hookimpl
    def report_capacity(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
    ) -> CapacityReport:
        threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
        return super().report_capacity(nodes, offers, timeout_seconds)


@breaks("call.shape")
class HalfAMilliCore(MemoryInstance):
    def row(self, node: str, name: str, age_seconds: float) -> ReportRow:
        right = super().row(node, name, age_seconds)
        return replace(right, allocated=Resources(right.allocated.cpu_milli / 2, 0))  # type: ignore[arg-type]


@breaks("call.deadline")
class WaitsForEver(MemoryInstance):
    @hookimpl
    def report_capacity(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
    ) -> CapacityReport:
        return super().report_capacity(nodes, offers, 60.0)


@breaks("call.failure")
class EmptyInsteadOfFailed(MemoryInstance):
    @hookimpl
    def report_capacity(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
    ) -> CapacityReport:
        try:
            return super().report_capacity(nodes, offers, timeout_seconds)
        except OSError:
            return self.report((), ())


@breaks("call.recovers")
class GivesUp(MemoryInstance):
    failed = False

    @hookimpl
    def report_capacity(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
    ) -> CapacityReport:
        if self.failed:
            raise RuntimeError("it failed before")
        try:
            return super().report_capacity(nodes, offers, timeout_seconds)
        except OSError:
            self.failed = True
            raise


@breaks("call.lanes")
class OneAtATime(MemoryInstance):
    busy = False

    @hookimpl
    def report_capacity(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
    ) -> CapacityReport:
        if self.busy:
            raise RuntimeError("its connection is in use")
        self.busy = True
        time.sleep(0.01)
        self.busy = False
        return super().report_capacity(nodes, offers, timeout_seconds)


@breaks("report.rows")
class OneRowANode(MemoryInstance):
    def rows(self, nodes: tuple[Node, ...], age_seconds: float) -> tuple[ReportRow, ...]:
        return tuple(self.row(node.name, NODES[node.name][0], age_seconds) for node in nodes if node.name in NODES)


@breaks("report.only-asks")
class AskingResets(MemoryInstance):
    @hookimpl
    def report_capacity(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
    ) -> CapacityReport:
        if not offers:
            self.server.resize("n1:1", FLOOR)
        return super().report_capacity(nodes, offers, timeout_seconds)


@breaks("report.allocated")
class CountsFromItsStart(MemoryInstance):
    def row(self, node: str, name: str, age_seconds: float) -> ReportRow:
        return replace(super().row(node, name, age_seconds), allocated=Resources(0, 0))


@breaks("report.in-force")
class SaysWhatItSent(MemoryInstance):
    sent: Mapping[str, Resources] = {}

    def answer(self, offer: Offer) -> OfferAnswer:
        self.sent = {**self.sent, offer.framework_node: offer.total}
        return super().answer(offer)

    def row(self, node: str, name: str, age_seconds: float) -> ReportRow:
        right = super().row(node, name, age_seconds)
        return replace(right, in_force=self.sent.get(name, right.in_force))


@breaks("report.not-negative")
class WhatIsFree(MemoryInstance):
    def row(self, node: str, name: str, age_seconds: float) -> ReportRow:
        right = super().row(node, name, age_seconds)
        return replace(right, allocated=Resources(-right.allocated.cpu_milli, right.allocated.memory_bytes))


@breaks("report.units")
class FloorOfHalfAUnit(MemoryInstance):
    def row(self, node: str, name: str, age_seconds: float) -> ReportRow:
        return replace(super().row(node, name, age_seconds), floor=Resources(50, FLOOR.memory_bytes))


@breaks("report.age")
class CountsFromTheAnswer(MemoryInstance):
    def row(self, node: str, name: str, age_seconds: float) -> ReportRow:
        return super().row(node, name, 0.0)


@breaks("report.no-news")
class SilentIsEmpty(MemoryInstance):
    def rows(self, nodes: tuple[Node, ...], age_seconds: float) -> tuple[ReportRow, ...]:
        known = super().rows(nodes, age_seconds)
        silent = self.server.state.silent
        return known + tuple(replace(self.row("n1", name, 0.0), allocated=Resources(0, 0)) for name in silent)


@breaks("report.pending")
class PendingIsCounted(MemoryInstance):
    def report(self, rows: tuple[ReportRow, ...], answers: tuple[OfferAnswer, ...]) -> CapacityReport:
        waits = self.server.state.waiting
        return replace(super().report(rows, answers), pending=Pending(total=Resources(waits, waits)))


@breaks("report.applications")
class ProgressInPercent(MemoryInstance):
    def application(self, task_id: str) -> Application:
        return replace(super().application(task_id), progress=50.0)


@breaks("report.gangs")
class GangOfNobody(MemoryInstance):
    def report(self, rows: tuple[ReportRow, ...], answers: tuple[OfferAnswer, ...]) -> CapacityReport:
        return replace(super().report(rows, answers), gangs=(GangReport(id="g", minimum=0, running=0),))


@breaks("offer.one-answer")
class SilentOnUnknown(MemoryInstance):
    def answers(self, offers: tuple[Offer, ...]) -> tuple[OfferAnswer, ...]:
        return tuple(answer for answer in super().answers(offers) if answer.accepted is not None)


@breaks("offer.in-force")
class ForgetsToSend(MemoryInstance):
    def answer(self, offer: Offer) -> OfferAnswer:
        return OfferAnswer(node=offer.node, framework_node=offer.framework_node, accepted=offer.total)


@breaks("offer.not-above")
class RoundsUp(MemoryInstance):
    def rounded(self, size: Resources) -> Resources:
        down = super().rounded(size)
        return down if down == size else Resources(down.cpu_milli + 100, down.memory_bytes + (1 << 20))


@breaks("offer.why-other")
class RoundsInSilence(MemoryInstance):
    def answer(self, offer: Offer) -> OfferAnswer:
        answer = super().answer(offer)
        return answer if answer.accepted is None else replace(answer, reason="")


@breaks("offer.why-refused")
class RefusesInSilence(MemoryInstance):
    def refused(self, offer: Offer, refusal: Refusal, reason: str) -> OfferAnswer:
        return super().refused(offer, refusal, "")


@breaks("offer.unknown-node")
class CallsUnknownFailed(MemoryInstance):
    def refused(self, offer: Offer, refusal: Refusal, reason: str) -> OfferAnswer:
        return super().refused(offer, Refusal.FAILED, reason)


@breaks("offer.bad-value")
class NegativeIsNothing(MemoryInstance):
    def answer(self, offer: Offer) -> OfferAnswer:
        total = Resources(max(0, offer.total.cpu_milli), max(0, offer.total.memory_bytes))
        return super().answer(replace(offer, total=total))


@breaks("offer.spoils-no-other")
class AllOrNothing(MemoryInstance):
    def answers(self, offers: tuple[Offer, ...]) -> tuple[OfferAnswer, ...]:
        refusals = [refusal for offer in offers if (refusal := self.refusal(offer))]
        return tuple(self.refused(offer, *refusals[0]) for offer in offers) if refusals else super().answers(offers)


@breaks("offer.repeat")
class RepeatsAreRefused(MemoryInstance):
    def refusal(self, offer: Offer) -> tuple[Refusal, str] | None:
        if self.server.state.sizes.get(offer.framework_node) == offer.total != FULL:
            return Refusal.FAILED, "it has this size already"
        return super().refusal(offer)


@breaks("offer.ends-nothing")
class EndsWhatIsAbove(MemoryInstance):
    def answer(self, offer: Offer) -> OfferAnswer:
        return super().answer(replace(offer, take_back={"memory": offer.total.memory_bytes}))


@breaks("offer.floor")
class RefusesItsFloor(MemoryInstance):
    def refusal(self, offer: Offer) -> tuple[Refusal, str] | None:
        return (Refusal.BAD_VALUE, "too small") if offer.total == FLOOR else super().refusal(offer)


@breaks("offer.take-back")
class OnlySaysItTakesBack(MemoryInstance):
    def answer(self, offer: Offer) -> OfferAnswer:
        return super().answer(offer if "cpu" in offer.take_back else replace(offer, take_back={}))


@breaks("offer.no-further")
class TakesBackToTheOffer(MemoryInstance):
    def answer(self, offer: Offer) -> OfferAnswer:
        return super().answer(replace(offer, take_back={name: offer.total.amount(name) for name in offer.take_back}))


@breaks("offer.no-take-back")
class AcceptsWhatItCannot(MemoryInstance):
    def answer(self, offer: Offer) -> OfferAnswer:
        return super().answer(replace(offer, take_back={k: v for k, v in offer.take_back.items() if k != "cpu"}))


@breaks("tasks.all", "Agent")
class ListsTheFirst(MemoryInstance):
    def works(self, node: Node) -> list[Work]:
        return super().works(node)[:1]


@breaks("tasks.this-node", "Agent")
class ListsTheCluster(MemoryInstance):
    def works(self, node: Node) -> list[Work]:
        return list(self.server.tasks().values())


@breaks("tasks.terminating", "Agent")
class LeavesOutTerminations(MemoryInstance):
    def works(self, node: Node) -> list[Work]:
        return [work for work in super().works(node) if work.termination_at is None]


@breaks("tasks.vanished", "Agent")
class Remembers(MemoryInstance):
    def __init__(self, cluster: Any) -> None:
        super().__init__(cluster)
        self.known: dict[str, Work] = {}

    def works(self, node: Node) -> list[Work]:
        self.known |= {work.id: work for work in super().works(node)}
        return list(self.known.values())


@breaks("tasks.complete", "Agent")
class NoAnswerIsNoTask(MemoryInstance):
    def unlisted(self, why: str, age_seconds: float) -> TaskList:
        return TaskList(tasks=(), age_seconds=age_seconds, complete=True)


@breaks("tasks.requested", "Agent")
class RequestInMiB(MemoryInstance):
    def task(self, work: Work) -> Task:
        return replace(super().task(work), requested=Resources(REQUEST.cpu_milli, REQUEST.memory_bytes >> 20))


@breaks("tasks.values", "Agent")
class EndsAndRuns(MemoryInstance):
    def task(self, work: Work) -> Task:
        return replace(super().task(work), state=TaskState.RUNNING, terminating_age_seconds=0.0)


@breaks("tasks.application", "Agent")
class NamesTheHost(MemoryInstance):
    def task(self, work: Work) -> Task:
        return replace(super().task(work), framework_node="n1")


@breaks("tasks.measurable", "Agent")
class AbsoluteGroups(MemoryInstance):
    def task(self, work: Work) -> Task:
        return replace(super().task(work), cgroups=(f"/sys/fs/cgroup/memory/{work.id}",))


@breaks("tasks.age", "Agent")
class AlwaysFresh(MemoryInstance):
    @hookimpl
    def list_tasks(self, node: Node, timeout_seconds: float) -> TaskList:
        return replace(super().list_tasks(node, timeout_seconds), age_seconds=0.0)


@breaks("kill.one-answer", "Agent")
class SilentOnGone(MemoryInstance):
    @hookimpl
    def kill_tasks(self, node: Node, order: KillOrder, timeout_seconds: float) -> KillOutcome:
        answers = super().kill_tasks(node, order, timeout_seconds).answers
        return KillOutcome(answers={k: v for k, v in answers.items() if v.result is not KillResult.ALREADY_GONE})


@breaks("kill.only-these", "Agent")
class EndsAllOfTheNode(MemoryInstance):
    @hookimpl
    def kill_tasks(self, node: Node, order: KillOrder, timeout_seconds: float) -> KillOutcome:
        outcome = super().kill_tasks(node, order, timeout_seconds)
        for work in self.works(node):
            self.end(work.id, order)
        return outcome


@breaks("kill.ends", "Agent")
class ForceIsIgnored(MemoryInstance):
    def end(self, task_id: str, order: KillOrder) -> KillAnswer:
        return super().end(task_id, replace(order, force=False))


@breaks("kill.gone", "Agent")
class GoneIsFailed(MemoryInstance):
    def end(self, task_id: str, order: KillOrder) -> KillAnswer:
        answer = super().end(task_id, order)
        is_gone = answer.result is KillResult.ALREADY_GONE
        return KillAnswer(result=KillResult.FAILED, reason="no such task") if is_gone else answer


@breaks("kill.twice", "Agent")
class TheSecondTimeFails(MemoryInstance):
    asked: frozenset[str] = frozenset()

    def end(self, task_id: str, order: KillOrder) -> KillAnswer:
        if task_id in self.asked:
            raise RuntimeError(f"{task_id} was terminated already")
        self.asked |= {task_id}
        return super().end(task_id, order)


@breaks("kill.spoils-no-other", "Agent")
class StopsAtTheFirst(MemoryInstance):
    @hookimpl
    def kill_tasks(self, node: Node, order: KillOrder, timeout_seconds: float) -> KillOutcome:
        known = self.server.tasks()
        if any(task_id not in known for task_id in order.task_ids):
            return KillOutcome(answers=dict.fromkeys(order.task_ids, KillAnswer(result=KillResult.ALREADY_GONE)))
        return super().kill_tasks(node, order, timeout_seconds)


@breaks("kill.at-once", "Agent")
class WaitsForTheEnd(MemoryInstance):
    def end(self, task_id: str, order: KillOrder) -> KillAnswer:
        answer = super().end(task_id, order)
        for _ in range(60):
            if task_id in self.server.tasks():
                time.sleep(0.05)
        return answer


@breaks("kill.gracefully", "Agent")
class AlwaysForces(MemoryInstance):
    def end(self, task_id: str, order: KillOrder) -> KillAnswer:
        return super().end(task_id, replace(order, force=True))


@breaks("kill.why", "Agent")
class SparesInSilence(MemoryInstance):
    def end(self, task_id: str, order: KillOrder) -> KillAnswer:
        return KillAnswer(result=super().end(task_id, order).result)


@breaks("kill.reason", "Agent")
class KeepsTheReason(MemoryInstance):
    def end(self, task_id: str, order: KillOrder) -> KillAnswer:
        return super().end(task_id, replace(order, reason="ended"))


@breaks("kill.evict", "Agent")
class EvictsAll(MemoryInstance):
    def end(self, task_id: str, order: KillOrder) -> KillAnswer:
        return KillAnswer(result=KillResult.EVICT)


@breaks("placement.each", "Agent")
class PlacesNobody(MemoryInstance):
    def place(self, work: Work) -> TaskPlacement:
        return TaskPlacement(task_id=work.id)


@breaks("placement.relative", "Agent")
class PlacesAbsolutely(MemoryInstance):
    def place(self, work: Work) -> TaskPlacement:
        return TaskPlacement(task_id=work.id, cgroups=(f"/sys/fs/cgroup/{work.id}",))


@breaks("placement.why", "Agent")
class DoesNotFollow(MemoryInstance):
    @hookimpl
    def set_cgroup_parent(self, node: Node, parent: str) -> Placement:
        return replace(super().set_cgroup_parent(node, parent), reason="")


@breaks("placement.repeat", "Agent")
class PlacesOnce(MemoryInstance):
    placed = False

    @hookimpl
    def set_cgroup_parent(self, node: Node, parent: str) -> Placement:
        if self.placed:
            return Placement(new_tasks_follow=True)
        self.placed = True
        return super().set_cgroup_parent(node, parent)
