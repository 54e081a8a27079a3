"""Reads the applications by REST: one page for all, without its large and unused parts.

Their pending requests are the largest part of the page, and are read only on demand. No other page has them: that of
the scheduler has sums of queues, and reports 0 for users (seen with 3.5.0).
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fallow_yarn.errors import ProtocolError, RemoteError
from fallow_yarn.http.loose_json import Object, integer, is_object, member, objects, text
from fallow_yarn.http.web import Web
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline

PAGE: Final = "/ws/v1/cluster/apps?states=ACCEPTED,RUNNING"
UNUSED: Final = "timeouts,appNodeLabelExpression,amNodeLabelExpression,resourceInfo"
WITH_REQUESTS: Final = f"&deSelects={UNUSED}"
WITHOUT: Final = f"&deSelects=resourceRequests,{UNUSED}"
ANYWHERE: Final = ("*", "")  # requests with other names are preferred hosts and racks, included in this one
GUARANTEED: Final = "GUARANTEED"
_MASTER: Final = re.compile(r"/containerlogs/(container_\w+)/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A number of containers of one size that an application has requested and not got yet. `label`: the partition, as
    the scheduler resolved it; empty: the default one.
    """

    size: Size
    containers: int
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningApplication:
    """An application. A bigger `priority` is more important; `progress` is 0 to 1.

    `master` is the container of the current attempt's application master; `None` if there is none yet, or if the user
    may not see it. `has_containers` is false for an application that only waits. `requests` are the pending requests;
    empty if they were not read or the user may not see them.
    """

    id: str
    name: str
    user: str
    queue: str
    kind: str
    priority: int
    progress: float | None
    master: str | None
    has_containers: bool = True
    requests: tuple[Request, ...] = ()


def read_applications(web: Web, deadline: Deadline, *, requests: bool = False) -> tuple[RunningApplication, ...]:
    """All applications that have containers or will get some soon; invalid entries are left out.

    With `requests` the pending requests of each are read too.
    """
    entries = _entries(web, WITH_REQUESTS if requests else WITHOUT, deadline)
    applications = (_application(entry) for entry in entries if is_object(entry))
    found = tuple(application for application in applications if application is not None)
    return found if requests else tuple(application for application in found if application.has_containers)


def _entries(web: Web, selection: str, deadline: Deadline) -> Iterable[object]:
    try:
        answer = web.json(PAGE + selection, deadline)
    except RemoteError as error:
        if error.kind != "HTTP 400":  # a release that does not know one of the names to deselect
            raise
        answer = web.json(PAGE, deadline)
    if not is_object(answer):
        raise ProtocolError(f"{web.endpoint}: GET {PAGE} is no object; is it a ResourceManager?")
    entries = member(answer, "apps", "app")
    return entries if isinstance(entries, list) else [entries]


def _application(entry: Object) -> RunningApplication | None:
    application_id = text(entry.get("id"))
    running = integer(entry.get("runningContainers"))
    master = _MASTER.search(text(entry.get("amContainerLogs")))
    if not application_id:
        return None
    return RunningApplication(
        id=application_id,
        name=text(entry.get("name")),
        user=text(entry.get("user")),
        queue=text(entry.get("queue")),
        kind=text(entry.get("applicationType")),
        priority=max(integer(entry.get("priority")) or 0, 0),
        progress=_share(entry.get("progress")),
        master=master[1] if master and ContainerId.parse(master[1]) else None,
        has_containers=running is None or running > 0 or master is not None,
        requests=_requests(entry.get("resourceRequests")),
    )


def _requests(value: object) -> tuple[Request, ...]:
    """Requests of guaranteed containers; opportunistic ones are queued at NodeManagers, whatever the node's size."""
    found = []
    for entry in objects(value):
        memory_mb = integer(member(entry, "capability", "memory"))
        vcores, count = integer(member(entry, "capability", "vCores")), integer(entry.get("numContainers"))
        kind = text(member(entry, "executionTypeRequest", "executionType")) or GUARANTEED
        if memory_mb is None or vcores is None or count is None or count <= 0:
            continue
        if kind == GUARANTEED and text(entry.get("resourceName")) in ANYWHERE:
            label = text(entry.get("nodeLabelExpression")).strip()
            found.append(Request(size=Size(memory_mb, vcores), containers=count, label=label))
    return tuple(found)


def _share(percent: object) -> float | None:
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not math.isfinite(percent):
        return None
    return min(max(percent / 100, 0.0), 1.0)
