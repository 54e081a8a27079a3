"""All findings of `fallow doctor`. It needs no running Fallow."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from fallow_core.api.control_socket import ask
from fallow_core.config.settings import Config
from fallow_core.diagnostics import clusters, host, lending, state, throttling
from fallow_core.errors import ControlError
from fallow_hookspecs import RESOURCE_NAMES, Finding, Node, ResourceName

About = str
"""What a finding is about: `host`, `config`, or a cluster."""


def findings(
    config: Config, node: Node, clock: Callable[[], float] = time.monotonic
) -> Iterator[tuple[About, Finding]]:
    """All findings, each with what it is about."""
    status, running = _running(config.control_socket)
    lendable = lending.measured(config.policies, node, _batch_used(status, node.name))
    for found in (
        host.findings(config.state_dir, config.host_root),
        state.findings(config.state_dir),
        throttling.findings(config.host_root, config.qos.online_pressure),
        lending.findings(lendable),
        (running,),
        () if status else host.last_run(config.state_dir),
    ):
        yield from (("host", finding) for finding in found)
    yield from _restored(status)
    yield from _limits(status, node.name)
    yield from _config(config)
    yield from _pools(config, node)
    yield from clusters.findings(config, replace(node, lendable=lending.amounts(lendable)), clock)


def _config(config: Config) -> Iterator[tuple[About, Finding]]:
    for problem in config.problems:
        yield "config", Finding(subject="cluster file", ok=False, detail=str(problem), advice="correct the file")
    if not config.correct_clusters and not config.problems:
        advice = f"write one with: fallow config init yarn > {config.clusters_dir}/NAME.yaml"
        yield "config", Finding(subject="clusters", ok=False, detail=f"no file in {config.clusters_dir}", advice=advice)
    for name, why in config.not_selected_reasons.items():
        advice = "to use the cluster here, set node.labels in the core file, or change nodeSelector in its file"
        yield name, Finding(subject="nodeSelector", ok=None, detail=f"not used on this host: {why}", advice=advice)


def _pools(config: Config, node: Node) -> Iterator[tuple[About, Finding]]:
    names = [pool.name for pool in config.policies.pools_of(node.labels)]
    if len(names) > 1:
        detail = f"this node matches {', '.join(names)}; {names[0]} counts, as the first in the core file"
        yield "config", Finding(subject="pools", ok=None, detail=detail, advice="let each node match one pool")


def _running(socket: Path) -> tuple[dict[str, Any], Finding]:
    """The status of a running Fallow, empty if there is none, and the finding."""
    subject = "running Fallow"
    try:
        status = ask(socket, {"request": "status"})
    except ControlError as error:
        advice = "start it with fallow run, as the same user and on the same configuration"
        return {}, Finding(subject=subject, ok=None, detail=str(error), advice=advice)
    return status, Finding(subject=subject, ok=True, detail=f"publishing mode {status['mode']}")


def _restored(status: dict[str, Any]) -> Iterator[tuple[About, Finding]]:
    """One finding for each cluster that a running Fallow leaves alone."""
    for name in (each["cluster"] for each in status.get("clusters", ()) if each["switch"]["state"] == "restored"):
        detail = "restored: no size is sent, and its tasks are neither throttled nor terminated, also under pressure"
        yield name, Finding(subject="switch", ok=None, detail=detail, advice=f"to end this: fallow switch lend {name}")


def _limits(status: dict[str, Any], node: str) -> Iterator[tuple[About, Finding]]:
    """One finding for each daemon that can have less than this host."""
    for limit in (
        limit for each in status.get("nodes", ()) if each["node"] == node for limit in each.get("limits", ())
    ):
        name, amount = ("CPU", limit["amount"] / 1000) if limit["resource"] == "cpu" else ("MiB", limit["amount"] >> 20)
        shared = f", shared by {limit['daemons']} daemons" if limit["daemons"] > 1 else ""
        detail = f"{limit['where']} allows {limit['framework_node']} no more than {amount:g} {name}{shared}"
        advice = f"to lend more, raise it for the daemon of {limit['framework_node']}"
        yield limit["cluster"], Finding(subject="limit of this host", ok=None, detail=detail, advice=advice)


def _batch_used(status: dict[str, Any], node: str) -> dict[ResourceName, int]:
    nodes = [each for each in status.get("nodes", ()) if each["node"] == node]
    return {name: each[name]["batch_used"] or 0 for each in nodes for name in RESOURCE_NAMES}
