"""Restoring: the sizes found first are put back, by a running Fallow, or by this process with the same journal."""

import time
from collections.abc import Callable
from typing import Any

from fallow_core.config.settings import Config
from fallow_core.errors import NotRunningError
from fallow_core.model.policy import ExitMode, SwitchState
from fallow_core.standalone import requests
from fallow_core.standalone.control import ask
from fallow_core.standalone.process import Standalone

FIRST_REPORT_SECONDS = 30.0
CONFIRM_SECONDS = 60.0

Status = dict[str, Any]


def restore(config: Config, who: str, clock: Callable[[], float] = time.monotonic) -> Status:
    """Send every row the size found first, and wait until all are in force or the time is over.

    The result is what `fallow status` shows then.
    """
    try:
        ask(config.control_socket, {"request": "restore"})
    except NotRunningError:
        next_status = _by_this_process(config, who, clock)
    else:
        next_status = _by_running(config)
    deadline = clock() + CONFIRM_SECONDS
    status = next_status()
    while not is_done(status) and clock() < deadline:
        status = next_status()
    return status


def is_done(status: Status) -> bool:
    """Whether every cluster that is configured took the sizes found first, and shows them in force."""
    in_flight = any(row["in_flight"] for cluster in status["clusters"] for row in cluster["rows"])
    return not status["restoring"] and not in_flight and not status["failed"]


def _by_running(config: Config) -> Callable[[], Status]:
    def next_status() -> Status:
        time.sleep(0.3)
        return ask(config.control_socket, {"request": "status"})

    return next_status


def _by_this_process(config: Config, who: str, clock: Callable[[], float]) -> Callable[[], Status]:
    fallow = Standalone(config, clock)
    for cluster in config.clusters:  # before anything is built: nothing but the sizes found first is to be sent
        fallow.controller.set_switch(cluster.name, SwitchState.RESTORED, who, "fallow restore")
    fallow.start_building()
    deadline = clock() + FIRST_REPORT_SECONDS
    while not _all_reported(fallow) and clock() < deadline:
        fallow.step()
    fallow.controller.leave(ExitMode.ORIGINAL)

    def next_status() -> Status:
        fallow.step()
        return requests.status(fallow)

    return next_status


def _all_reported(fallow: Standalone) -> bool:
    clusters = fallow.controller.clusters.values()
    return not fallow.building and all(cluster.reported_at is not None for cluster in clusters)
