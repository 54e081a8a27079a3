"""Reads the identity of a ResourceManager and the settings of its scheduler."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fallow_yarn.errors import AccessDeniedError, ProtocolError, RemoteError
from fallow_yarn.http.loose_json import Object, integer, is_object, member, objects, text
from fallow_yarn.http.web import Web
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline

CAPACITY_SCHEDULER: Final = "capacityScheduler"


class Calculator(StrEnum):
    """Which resources the CapacityScheduler considers: memory only, or all."""

    DEFAULT = "DefaultResourceCalculator"
    DOMINANT = "DominantResourceCalculator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The ResourceManager that answers.

    `started_on` (milliseconds, its own clock) identifies its start; None until it is active, as it changes until then.
    """

    version: str
    active: bool
    ha_state: str
    started_on: int | None

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor of the version; (0, 0) if it cannot be parsed."""
        major, _, rest = self.version.partition(".")
        minor = rest.partition(".")[0]
        return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)

    @property
    def takes_back(self) -> bool:
        """Whether its schedulers terminate containers when an over-commit timeout expires (3.3 and newer)."""
        return self.release >= (3, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Settings of the scheduler; None is a setting that could not be read.

    `minimum`: the smallest size at which a NodeManager may register. `maximum`: the configured largest container; the
    one in effect is no larger than the largest node. `scheduler`: `capacityScheduler`, `fairScheduler` or
    `fifoScheduler`. For the first only: `calculator`, which is inferred, and `asynchronous`, whether it allocates in
    threads of its own instead of on the nodes' heartbeats.
    """

    scheduler: str
    minimum: Size | None
    maximum: Size | None
    calculator: Calculator | None
    asynchronous: bool | None

    @property
    def is_complete(self) -> bool:
        """Whether the calculator is known, or the scheduler has none."""
        return self.scheduler != CAPACITY_SCHEDULER or self.calculator is not None


def read_identity(web: Web, deadline: Deadline) -> Identity:
    """The identity, of a standby too: this page is never redirected."""
    info = member(web.json("/ws/v1/cluster/info", deadline), "clusterInfo")
    if not is_object(info):
        raise ProtocolError(f"{web.endpoint}: the answer lacks clusterInfo; is it a ResourceManager?")
    ha_state = text(info.get("haState"))
    active = ha_state == "ACTIVE" and info.get("state") == "STARTED"
    return Identity(
        version=text(info.get("resourceManagerVersion")),
        active=active,
        ha_state=ha_state,
        started_on=integer(info.get("startedOn")) if active else None,
    )


def read_setup(web: Web, total: Size | None, deadline: Deadline) -> Setup:
    """The scheduler's settings: six pages, worth keeping until the ResourceManager restarts.

    `total` is the cluster's size. The calculator shows only in a cluster that is large enough.
    """
    scheduler = member(web.json("/ws/v1/cluster/scheduler", deadline), "scheduler", "schedulerInfo")
    kind = text(member(scheduler, "type"))
    return Setup(
        scheduler=kind,
        minimum=_allocation(web, "minimum", deadline),
        maximum=_allocation(web, "maximum", deadline),
        calculator=_calculator(scheduler, total) if kind == CAPACITY_SCHEDULER else None,
        asynchronous=_allocates_in_threads(web, deadline) if kind == CAPACITY_SCHEDULER else None,
    )


def _allocation(web: Web, bound: str, deadline: Deadline) -> Size | None:
    values = [read_setting(web, f"yarn.scheduler.{bound}-allocation-{unit}", deadline) for unit in ("mb", "vcores")]
    memory_mb, vcores = (integer(value) for value in values)
    return None if memory_mb is None or vcores is None else Size(memory_mb, vcores)


def read_setting(web: Web, key: str, deadline: Deadline) -> str | None:
    """A setting of the ResourceManager; None if it is not set or not shown."""
    try:
        found = member(web.decoded_if_found(f"/conf?name={key}", deadline, object), "property", "value")
    except AccessDeniedError:
        return None  # hadoop.security.instrumentation.requires.admin closes the page
    return None if found is None else str(found)


def _allocates_in_threads(web: Web, deadline: Deadline) -> bool | None:
    """No page has the setting; the list of threads has its thread."""
    try:
        return b"AsyncScheduleThread" in web.page("/stacks", deadline)
    except RemoteError:
        return None


def _calculator(scheduler: object, total: Size | None) -> Calculator | None:
    """Inferred from the limits for application masters: with the default calculator each is 1 vcore.

    With the other one it is the same share of the vcores as of the memory, which is conclusive only if that share is
    more than one vcore.
    """
    limits = [member(queue, "AMResourceLimit") for queue in _leaves(scheduler)]
    shares = [(integer(member(limit, "memory")) or 0, integer(member(limit, "vCores")) or 0) for limit in limits]
    if any(vcores > 1 for _, vcores in shares):
        return Calculator.DOMINANT
    if total is None or total.memory_mb <= 0:
        return None
    is_conclusive = any(memory_mb * total.vcores >= 2 * total.memory_mb for memory_mb, _ in shares)
    return Calculator.DEFAULT if is_conclusive else None


def _leaves(queue: object) -> Iterator[Object]:
    below = objects(member(queue, "queues", "queue"))
    if not below and is_object(queue):
        yield queue
    for child in below:
        yield from _leaves(child)
