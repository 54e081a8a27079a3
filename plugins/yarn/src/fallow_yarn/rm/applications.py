"""The running applications, by REST: one page for all, without the parts of it that are large and of no use here."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fallow_yarn.container_id import ContainerId
from fallow_yarn.errors import ProtocolError, RemoteError
from fallow_yarn.ipc.deadline import Deadline
from fallow_yarn.rest import Web
from fallow_yarn.shapes import Object, integer, is_object, member, text

PAGE: Final = "/ws/v1/cluster/apps?states=ACCEPTED,RUNNING"
WITHOUT: Final = "&deSelects=resourceRequests,timeouts,appNodeLabelExpression,amNodeLabelExpression,resourceInfo"
_MASTER: Final = re.compile(r"/containerlogs/(container_\w+)/")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningApplication:
    """An application that has containers. A bigger `priority` is more important; `progress` is 0 to 1.

    `master` is the container of the current attempt's application master; `None` where it has none yet, or where the
    user may not see it.
    """

    id: str
    name: str
    user: str
    queue: str
    kind: str
    priority: int
    progress: float | None
    master: str | None


def read_applications(web: Web, deadline: Deadline) -> tuple[RunningApplication, ...]:
    """All applications that have containers or are about to; an entry that makes no sense is left out."""
    applications = (_application(entry) for entry in _entries(web, deadline) if is_object(entry))
    return tuple(application for application in applications if application is not None)


def _entries(web: Web, deadline: Deadline) -> Iterable[object]:
    try:
        answer = web.json(PAGE + WITHOUT, deadline)
    except RemoteError as error:
        if error.kind != "HTTP 400":  # a release that does not know one of the names
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
    if not application_id or (running is not None and running <= 0 and master is None):
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
    )


def _share(percent: object) -> float | None:
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not math.isfinite(percent):
        return None
    return min(max(percent / 100, 0.0), 1.0)
