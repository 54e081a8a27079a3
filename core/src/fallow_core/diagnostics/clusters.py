"""What the plugin of each cluster finds: an instance is built, asked and closed."""

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from fallow_core.config.settings import Config
from fallow_core.diagnostics import needs
from fallow_core.plugins.instance import PluginInstance, start_build
from fallow_core.plugins.lanes import Call, Failure, FailureKind
from fallow_hookspecs import Finding, Node

BUILD_SECONDS = 10.0
DIAGNOSE_SECONDS = 15.0
CLOSE_SECONDS = 2.0
POLL_SECONDS = 0.05

_T = TypeVar("_T")


def findings(config: Config, node: Node, clock: Callable[[], float]) -> Iterator[tuple[str, Finding]]:
    """All findings, each with its cluster. All clusters are asked at the same time, so a dead one delays no other."""
    for cluster in config.clusters:
        yield from ((cluster.name, found) for found in needs.findings(cluster.plugin.plugin.needs, config.host_root))
    builds = {
        cluster.name: start_build(cluster.plugin, cluster.config, timeout_seconds=BUILD_SECONDS, clock=clock)
        for cluster in config.clusters
    }
    instances: dict[str, PluginInstance] = {}
    for name, build in builds.items():
        outcome = _waited(build, clock)
        if isinstance(outcome, Failure):
            advice = "check the spec of this cluster's file, and that the plugin and what it needs are installed"
            yield name, Finding(subject="plugin", ok=False, detail=outcome.reason, advice=advice)
        else:
            instances[name] = outcome
    calls = {name: instance.start_diagnose((node,), DIAGNOSE_SECONDS) for name, instance in instances.items()}
    for name, call in calls.items():
        assert call is not None  # the lane is new
        found = _waited(call, clock)
        if isinstance(found, Failure):
            advice = "ask again; if it fails every time, the framework is too slow to answer, or the plugin has a fault"
            yield name, Finding(subject="plugin", ok=False, detail=found.reason, advice=advice)
        else:
            yield from ((name, finding) for finding in found)
    for instance in instances.values():
        _waited(instance.close(CLOSE_SECONDS), clock)


def _waited(call: Call[_T], clock: Callable[[], float]) -> _T | Failure:
    while not call.done:
        if call.overdue(clock()):
            return Failure(kind=FailureKind.FAILED, reason=f"no answer within {call.deadline - call.started_at:g} s")
        time.sleep(POLL_SECONDS)
    return call.outcome
