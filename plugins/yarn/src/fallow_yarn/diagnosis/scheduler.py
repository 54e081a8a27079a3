"""Judges the scheduler: the resources that it considers, and how it handles size changes. Pure."""

from collections.abc import Iterator
from typing import Final

from fallow_hookspecs import Finding
from fallow_yarn.diagnosis.common import MANY_NODES
from fallow_yarn.diagnosis.probes import Page
from fallow_yarn.model.size import ZERO, Size, size_words
from fallow_yarn.rm.facts import CAPACITY_SCHEDULER, Calculator, Setup
from fallow_yarn.rm.readings import Facts, floor_of

ASYNCHRONOUS: Final = "yarn.scheduler.capacity.schedule-asynchronously.enable"
CALCULATOR: Final = "yarn.scheduler.capacity.resource-calculator"
LAZY: Final = "yarn.scheduler.capacity.lazy-preemption-enabled"
SCHEDULER_CLASS: Final = "yarn.resourcemanager.scheduler.class"
FAIR_TRIED: Final = (3, 5)
"""The release whose FairScheduler was tested to terminate only what is taken back."""


def scheduler(facts: Facts, page: Page, node_count: int) -> Iterator[Finding]:
    """All findings about it; a single one while the ResourceManager is not active."""
    setup = facts.setup
    if setup is None:
        yield Finding(subject="scheduler", ok=None, detail="not known before the ResourceManager is active")
        return
    yield _kind(setup, page, facts.identity.release)
    yield _smallest(floor_of(facts), is_shown=setup.minimum is not None)
    if setup.scheduler != CAPACITY_SCHEDULER:
        return
    yield _calculator(setup.calculator or _set_calculator(page))
    if node_count >= MANY_NODES:
        yield _threads(setup.asynchronous, node_count)
    if facts.identity.takes_back:
        yield _lazy(page.settings.flag(LAZY))


def _kind(setup: Setup, page: Page, release: tuple[int, int]) -> Finding:
    subject, use = "scheduler", f"set {SCHEDULER_CLASS} to the CapacityScheduler"
    if setup.scheduler == CAPACITY_SCHEDULER:
        return Finding(subject=subject, ok=True, detail="CapacityScheduler")
    if setup.scheduler == "fairScheduler":
        if release == FAIR_TRIED:
            return Finding(subject=subject, ok=True, detail="FairScheduler")
        detail = "FairScheduler: not tested with this release whether it spares containers when a node shrinks"
        return Finding(subject=subject, ok=None, detail=detail, advice=f"stay in the mode observe, or {use}")
    if setup.scheduler == "fifoScheduler":
        detail = "FifoScheduler: it never terminates what exceeds a node's size, so takeBack has no effect"
        return Finding(subject=subject, ok=False, detail=detail, advice=use)
    name = setup.scheduler or page.settings.class_name(SCHEDULER_CLASS) or "not told"
    return Finding(subject=subject, ok=None, detail=f"{name}: unknown", advice=use)


def _smallest(floor: Size, *, is_shown: bool) -> Finding:
    subject = "minimum allocation"
    if floor == ZERO:
        return Finding(subject=subject, ok=True, detail="irrelevant before Hadoop 3.3: nodes may have any size")
    if is_shown:
        return Finding(subject=subject, ok=True, detail=f"{size_words(floor)}: no node is made smaller")
    return Finding(
        subject=subject,
        ok=None,
        detail=f"not shown by the ResourceManager; assumed to be {size_words(floor)}, Hadoop's default",
        advice="let spec.user read /conf of the ResourceManager if yarn.scheduler.minimum-allocation-* is set there",
    )


def _set_calculator(page: Page) -> Calculator | None:
    name = page.settings.class_name(CALCULATOR)
    return next((calculator for calculator in Calculator if calculator.value == name), None)


def _calculator(calculator: Calculator | None) -> Finding:
    subject = "resource calculator"
    if calculator is Calculator.DOMINANT:
        return Finding(subject=subject, ok=True, detail="DominantResourceCalculator: memory and vcores are considered")
    if calculator is Calculator.DEFAULT:
        return Finding(
            subject=subject,
            ok=None,
            detail="DefaultResourceCalculator: the scheduler ignores vcores, so the CPU of an offer holds nothing back;"
            " Fallow offers no more memory than the tasks could use with the CPU that can be lent",
            advice=f"if CPU should count, set {CALCULATOR} to"
            " org.apache.hadoop.yarn.util.resource.DominantResourceCalculator in"
            " capacity-scheduler.xml, and restart the ResourceManager",
        )
    return Finding(
        subject=subject,
        ok=None,
        detail="unknown; with the DefaultResourceCalculator vcores would be ignored",
        advice=f"if CPU should count, {CALCULATOR} in capacity-scheduler.xml has to be the DominantResourceCalculator",
    )


def _threads(asynchronous: bool | None, node_count: int) -> Finding:
    subject = "asynchronous scheduling"
    advice = f"set {ASYNCHRONOUS} to false in capacity-scheduler.xml; from 3.5 on it is true by default"
    if asynchronous is None:
        detail = f"unknown: /stacks is not shown; with {node_count} nodes it should be off"
        return Finding(subject=subject, ok=None, detail=detail, advice=advice)
    if asynchronous:
        detail = f"on, with {node_count} nodes: it uses half a core, and delays size changes"
        return Finding(subject=subject, ok=False, detail=detail, advice=advice)
    return Finding(subject=subject, ok=True, detail="off")


def _lazy(is_lazy: bool | None) -> Finding:
    subject = "lazy preemption"
    advice = f"check that {LAZY} is not true in capacity-scheduler.xml"
    if is_lazy is None:
        detail = "no page shows it; if it were on, takeBack would have no effect"
        return Finding(subject=subject, ok=None, detail=detail, advice=advice)
    if is_lazy:
        detail = (
            "on: what exceeds a node's size is only marked, and terminated when another application needs the space"
        )
        return Finding(subject=subject, ok=False, detail=detail, advice=advice)
    return Finding(subject=subject, ok=True, detail="off")
