"""The report's applications and pending requests. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from fallow_hookspecs import Application, Pending, Resources
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


def pending_by_partition(
    metrics: Metrics, waiting: Sequence[RunningApplication] | None, labels: Iterable[str], vcore_milli: int
) -> dict[str, Pending]:
    """The pending requests of each partition, as far as they are known. `labels`: of the partitions besides the
    default one. `waiting`: the applications, read with their requests; `None` if they could not be read.
    """
    found = {}
    default = pending(metrics, waiting or (), vcore_milli)
    if default is not None:
        found[""] = default
    for label in labels if waiting is not None else ():
        requests = [(each, request) for each in waiting or () for request in each.requests if request.label == label]
        total = _total(request for _, request in requests)
        found[label] = Pending(total=resources(total, vcore_milli), detail=_shares(requests))
    return found


def sum_of(parts: Mapping[str, Pending]) -> Pending | None:
    """The pending requests of all partitions; `None` if those of the default one are unknown."""
    default = parts.get("")
    if default is None or len(parts) == 1:
        return default
    totals = [part.total for part in parts.values()]
    details = [f"{part.detail}{f' for {label}' if label else ''}" for label, part in parts.items() if part.detail]
    return Pending(
        total=Resources(sum(t.cpu_milli for t in totals), sum(t.memory_bytes for t in totals)),
        detail=", ".join(details),
    )


def pending(metrics: Metrics, waiting: Sequence[RunningApplication], vcore_milli: int) -> Pending | None:
    """The pending requests of the default partition, which is the whole cluster where nodes have no labels: the
    scheduler's sums are of that partition. `waiting`: the applications, read with their requests.

    The requests are complete only if they have as many containers as the scheduler counts; otherwise an unknown
    request, newer or invisible to the user, may be smaller than all known ones. A release that does not report the sum
    (3.2) has the sum of the requests.
    """
    requests = [(each, request) for each in waiting for request in each.requests if not request.label]
    count = sum(request.containers for _, request in requests)
    is_all = metrics.pending_containers is not None and count >= metrics.pending_containers
    sizes = [request.size for _, request in requests] if is_all and metrics.pending_containers else []
    total = metrics.pending
    if total is None and is_all:
        total = _total(request for _, request in requests)
    if total is None:
        return None
    return Pending(
        total=resources(total, vcore_milli),
        smallest=resources(smallest_of(sizes), vcore_milli) if sizes else None,
        largest=resources(largest_of(sizes), vcore_milli) if sizes else None,
        detail=_shares(requests) if total != ZERO else "",
    )


def _total(requests: Iterable[Request]) -> Size:
    found = list(requests)
    return Size(sum(r.size.memory_mb * r.containers for r in found), sum(r.size.vcores * r.containers for r in found))


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
