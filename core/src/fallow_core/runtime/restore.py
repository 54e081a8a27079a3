"""Restoring: sizes and control groups are put back as they were found.

A running Fallow does it, or else this process with the same journals.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

from fallow_core.api.cluster_status import RowStatus
from fallow_core.api.control_socket import ask
from fallow_core.api.encoding import from_json
from fallow_core.api.operations import Restored, RestoredRow
from fallow_core.api.status import Status
from fallow_core.config.settings import Config
from fallow_core.errors import NotRunningError
from fallow_core.runtime.standalone import Standalone
from fallow_core.state.directory import user_of
from fallow_hookspecs import RESOURCE_NAMES, NodeState, ResourceName

LONGEST_SECONDS = 60.0
POLL_SECONDS = 0.3
WORDS: Mapping[ResourceName, str] = {"cpu": "CPU", "memory": "memory"}


def restore(config: Config, who: str, clock: Callable[[], float] = time.monotonic) -> Restored:
    """Send every row the size found first, wait until all are in force or the time is over, and say what became of it.

    :raises FallowError: a running Fallow refuses, or nothing can be written down.
    """

    def asked() -> Status:
        return from_json(Status, ask(config.control_socket, {"request": "status"}))

    try:
        changed = asked().changed_groups
        ask(config.control_socket, {"request": "restore"})
    except NotRunningError:
        with closing(Standalone(config, clock, state_user=user_of(config.state_dir))) as fallow:
            changed = fallow.throttling.changed_groups()
            fallow.controller.restore(who)  # before anything is built: nothing else is to be sent

            def by_this_process() -> Status:
                fallow.step()
                return fallow.requests.status()

            return outcome(_at_rest(by_this_process, clock), changed)

    def by_running_process() -> Status:
        time.sleep(POLL_SECONDS)
        return asked()

    return outcome(_at_rest(by_running_process, clock), changed)


def _at_rest(next_status: Callable[[], Status], clock: Callable[[], float]) -> Status:
    """The first status in which nothing is under way any more, or the last one."""
    deadline = clock() + LONGEST_SECONDS
    status = next_status()
    while _under_way(status) and clock() < deadline:
        status = next_status()
    return status


def _under_way(status: Status) -> bool:
    rows = (row for cluster in status.clusters for row in cluster.rows if row.state is not NodeState.GONE)
    restoring = status.restoring or bool(status.changed_groups)
    return restoring or any(row.newest != row.in_force for row in rows)


def outcome(status: Status, changed: Iterable[str] = ()) -> Restored:
    """What became of each row and of the control groups that were changed, and what else kept something from being put
    back; `done` if nothing did.
    """
    rows = tuple(
        _row(cluster.cluster, row, unknown=status.sizes_unknown) for cluster in status.clusters for row in cluster.rows
    )
    problems = [f"{lost.file} {lost.why}: {lost.effect}; {lost.advice}" for lost in status.lost_state]
    problems += [text for file in status.refused_files for text in file.problems]
    problems += [f"{name}: {why}" for name, why in status.failed.items()]
    problems += [f"{name}: still being built" for name in status.building]
    problems += [
        f"{cluster.cluster}: no report yet; {cluster.failing.get('report', 'its framework does not answer')}"
        for cluster in status.clusters
        if cluster.report_age_seconds is None
    ]
    problems += [
        f"{row.cluster} {row.framework_node}: changed by Fallow once, and not reported now"
        for node in status.nodes
        for row in node.awaited
    ]
    problems += [
        f"/{group}: this control group is not as it was found: {why or 'not put back yet'}"
        for group, why in status.changed_groups.items()
    ]
    groups = tuple(f"/{group}" for group in changed if group not in status.changed_groups)
    done = not problems and all(row.done for row in rows)
    return Restored(done=done, rows=rows, groups=groups, problems=tuple(problems))


def _row(cluster: str, row: RowStatus, *, unknown: bool) -> RestoredRow:
    missing = _missing(row, unknown=unknown)
    if missing:
        detail = f"NOT restored: {missing}"
    elif row.original is None:
        detail = "never changed by Fallow"
    elif row.state is NodeState.GONE:
        detail = "gone, nothing to put back"
    else:
        assert row.in_force is not None  # else it would be missing
        over = [WORDS[name] for name in RESOURCE_NAMES if row.allocated.amount(name) > row.in_force.amount(name)]
        detail = f"restored; more {' and '.join(over)} than that is still allocated" if over else "restored"
    return RestoredRow(
        cluster=cluster,
        framework_node=row.framework_node,
        done=not missing,
        detail=detail,
        original=row.original,
        in_force=row.in_force,
        allocated=row.allocated,
    )


def _missing(row: RowStatus, *, unknown: bool) -> str:
    """Why a row does not have the size found first; empty if it has, was never changed, or is gone."""
    original, in_force = row.original, row.in_force
    if unknown and row.state is not NodeState.GONE:
        return "the size found first is unknown"
    if original is None or row.state is NodeState.GONE:
        return ""
    if row.newest != in_force:
        return "sent, but not seen in force yet"
    if in_force is not None and all(in_force.amount(name) >= original.amount(name) for name in RESOURCE_NAMES):
        return ""
    return f"refused: {row.refusal}" if row.refusal else f"the node is {row.state}"
