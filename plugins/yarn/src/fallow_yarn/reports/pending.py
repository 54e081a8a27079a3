"""The report's applications and pending requests. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

from fallow_hookspecs import Application, Pending
from fallow_yarn.model.size import ZERO, Size, largest_of, resources, smallest_of
from fallow_yarn.rm.applications import Request, RunningApplication
from fallow_yarn.rm.scheduler import Metrics

MOST_SHOWN = 3
"""The number of users and queues for which the report shows the pending containers."""


def applications(running: Iterable[RunningApplication]) -> tuple[Application, ...]:
    """The applications that have containers."""
    return tuple(
        Application(
            id=application.id,
            name=application.name,
            user=application.user,
            queue=application.queue,
            kind=application.kind,
            priority=application.priority,
            progress=application.progress,
            master_task_ids=() if application.master is None else (application.master,),
        )
        for application in running
        if application.has_containers
    )


def pending(metrics: Metrics, waiting: Sequence[RunningApplication], vcore_milli: int) -> Pending | None:
    """The pending requests of the whole cluster. `waiting`: the applications, read with their requests.

    The requests are complete only if they have as many containers as the scheduler counts; otherwise an unknown
    request, newer or invisible to the user, may be smaller than all known ones. A release that does not report the sum
    (3.2) has the sum of the requests.
    """
    requests = [(application, request) for application in waiting for request in application.requests]
    count = sum(request.containers for _, request in requests)
    is_all = metrics.pending_containers is not None and count >= metrics.pending_containers
    sizes = [request.size for _, request in requests] if is_all and metrics.pending_containers else []
    total = metrics.pending
    if total is None and is_all:
        total = Size(
            sum(request.size.memory_mb * request.containers for _, request in requests),
            sum(request.size.vcores * request.containers for _, request in requests),
        )
    if total is None:
        return None
    return Pending(
        total=resources(total, vcore_milli),
        smallest=resources(smallest_of(sizes), vcore_milli) if sizes else None,
        largest=resources(largest_of(sizes), vcore_milli) if sizes else None,
        detail=_shares(requests) if total != ZERO else "",
    )


def _shares(requests: Iterable[tuple[RunningApplication, Request]]) -> str:
    """The users and queues with the most pending containers."""
    counts: Counter[tuple[str, str]] = Counter()
    for application, request in requests:
        counts[application.queue, application.user] += request.containers
    shown = [
        f"{count} container{'' if count == 1 else 's'} of {user} in {queue}"
        for (queue, user), count in counts.most_common(MOST_SHOWN)
    ]
    more = [f"and of {len(counts) - MOST_SHOWN} others"] if len(counts) > MOST_SHOWN else []
    return ", ".join([*shown, *more])
