"""Restoring: sizes and control groups are put back as they were found.

A running Fallow does it, or else this process with the same journals.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

from fallow_core.api.control_socket import ask
from fallow_core.config.settings import Config
from fallow_core.errors import NotRunningError
from fallow_core.runtime.standalone import Standalone

LONGEST_SECONDS = 60.0
POLL_SECONDS = 0.3

View = dict[str, Any]


def restore(config: Config, who: str, clock: Callable[[], float] = time.monotonic) -> View:
    """Send every row the size found first, wait until all are in force or the time is over, and say what became of it.

    :raises FallowError: a running Fallow refuses, or nothing can be written down.
    """
    try:
        changed = ask(config.control_socket, {"request": "status"}).get("changed_groups", {})
        ask(config.control_socket, {"request": "restore"})
    except NotRunningError:
        with closing(Standalone(config, clock)) as fallow:
            changed = fallow.throttling.changed_groups()
            fallow.controller.restore(who)  # before anything is built: nothing else is to be sent

            def by_this_process() -> View:
                fallow.step()
                return fallow.requests.status()

            return outcome(_at_rest(by_this_process, clock), changed)

    def by_running_process() -> View:
        time.sleep(POLL_SECONDS)
        return ask(config.control_socket, {"request": "status"})

    return outcome(_at_rest(by_running_process, clock), changed)


def _at_rest(next_status: Callable[[], View], clock: Callable[[], float]) -> View:
    """The first status in which nothing is under way any more, or the last one."""
    deadline = clock() + LONGEST_SECONDS
    status = next_status()
    while _under_way(status) and clock() < deadline:
        status = next_status()
    return status


def _under_way(status: View) -> bool:
    rows = (row for cluster in status["clusters"] for row in cluster["rows"] if row["state"] != "gone")
    restoring = status["restoring"] or status.get("changed_groups")
    return bool(restoring) or any(row["newest"] != row["in_force"] for row in rows)


def outcome(status: View, changed: Iterable[str] = ()) -> View:
    """What became of each row and of the control groups that were changed, and what else kept something from being put
    back; `done` if nothing did.
    """
    rows = [_row(cluster["cluster"], row) for cluster in status["clusters"] for row in cluster["rows"]]
    problems = [text for file in status.get("refused_files", ()) for text in file["problems"]]
    problems += [f"{name}: {why}" for name, why in status["failed"].items()]
    problems += [f"{name}: still being built" for name in status["building"]]
    problems += [
        f"{cluster['cluster']}: no report yet; {cluster['failing'].get('report', 'its framework does not answer')}"
        for cluster in status["clusters"]
        if cluster["report_age_seconds"] is None
    ]
    problems += [
        f"{row['cluster']} {row['framework_node']}: changed by Fallow once, and not reported now"
        for node in status["nodes"]
        for row in node["awaited"]
    ]
    problems += [
        f"/{group}: this control group is not as it was found: {why or 'not put back yet'}"
        for group, why in status.get("changed_groups", {}).items()
    ]
    groups = [f"/{group}" for group in changed if group not in status.get("changed_groups", {})]
    done = not problems and all(row["done"] for row in rows)
    return {"done": done, "rows": rows, "groups": groups, "problems": problems}


def _row(cluster: str, row: View) -> View:
    missing = _missing(row)
    if missing:
        detail = f"NOT restored: {missing}"
    elif row["original"] is None:
        detail = "never changed by Fallow"
    elif row["state"] == "gone":
        detail = "gone, nothing to put back"
    else:
        above = [name for name, amount in row["allocated"].items() if amount > row["in_force"][name]]
        detail = f"restored; still allocated above it: {', '.join(above)}" if above else "restored"
    sizes = {name: row[name] for name in ("original", "in_force", "allocated")}
    return {
        "cluster": cluster,
        "framework_node": row["framework_node"],
        "done": not missing,
        "detail": detail,
        **sizes,
    }


def _missing(row: View) -> str:
    """Why a row does not have the size found first; empty if it has, was never changed, or is gone."""
    original, in_force = row["original"], row["in_force"]
    if original is None or row["state"] == "gone":
        return ""
    if row["newest"] != in_force:
        return "sent, but not seen in force yet"
    if in_force is not None and all(in_force[name] >= original[name] for name in original):
        return ""
    return f"refused: {row['refusal']}" if row["refusal"] else f"the node is {row['state']}"
