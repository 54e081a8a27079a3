"""`fallow doctor`: what this user may do on this host, and what each plugin instance finds. Needs no running Fallow."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from fallow_core.api.control_socket import ask
from fallow_core.config.settings import Config
from fallow_core.diagnostics import kernel_events, throttling
from fallow_core.errors import ControlError
from fallow_core.plugins.instance import PluginInstance, start_build
from fallow_core.plugins.lanes import Call, Failure, FailureKind
from fallow_hookspecs import Finding, Node

BUILD_SECONDS = 10.0
DIAGNOSE_SECONDS = 15.0
CLOSE_SECONDS = 2.0
POLL_SECONDS = 0.05
NEEDED_CAPABILITIES = {"CAP_DAC_READ_SEARCH": 2, "CAP_SYS_PTRACE": 19}
"""What looking into processes of other users needs, with its number: `/proc/PID/fd` takes both."""

_T = TypeVar("_T")

About = str
"""What a finding is about: `host`, `config`, or a cluster."""


def findings(
    config: Config, node: Node, clock: Callable[[], float] = time.monotonic
) -> Iterator[tuple[About, Finding]]:
    """All findings; the clusters are asked at the same time, so one that is dead delays no other."""
    yield "host", _processes_of_others(Path("/proc"))
    yield "host", _state_dir(config.state_dir)
    yield from (("host", finding) for finding in throttling.findings(config.host_root))
    yield "host", kernel_events.finding(config.host_root)
    yield "host", _running(config.control_socket)
    for problem in config.problems:
        yield "config", Finding(subject="cluster file", ok=False, detail=str(problem), advice="mend the file")
    if not config.clusters and not config.problems:
        advice = f"write one with: fallow config init yarn > {config.clusters_dir}/NAME.yaml"
        yield "config", Finding(subject="clusters", ok=False, detail=f"no file in {config.clusters_dir}", advice=advice)
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
            advice = "ask again; if it is so every time, the framework is too slow to answer, or the plugin has a fault"
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


def _processes_of_others(proc_root: Path) -> Finding:
    subject = "processes of other users"
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", (proc_root / "self" / "status").read_text(), re.MULTILINE)
    has = 0 if found is None else int(found[1], 16)
    missing = [name for name, number in NEEDED_CAPABILITIES.items() if not has >> number & 1]
    if not missing:
        return Finding(subject=subject, ok=True, detail="can be looked into")
    return Finding(
        subject=subject,
        ok=None,
        detail=f"cannot be looked into without {' and '.join(missing)}: their NodeManagers are found by name only",
        advice=f"run Fallow as root, as the NodeManager's user, or with {' and '.join(NEEDED_CAPABILITIES)}",
    )


def _state_dir(path: Path) -> Finding:
    subject = "state directory"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = path / ".doctor"
        probe.touch()
        probe.unlink()
    except OSError as error:
        advice = "set stateDir to a directory that Fallow's user can write, and that outlives a restart"
        return Finding(subject=subject, ok=False, detail=f"{path}: {error.strerror}", advice=advice)
    return Finding(subject=subject, ok=True, detail=f"{path} can be written")


def _running(socket: Path) -> Finding:
    subject = "running Fallow"
    try:
        mode = ask(socket, {"request": "status"})["mode"]
    except ControlError as error:
        advice = "start it with fallow run, as the same user and on the same configuration"
        return Finding(subject=subject, ok=None, detail=str(error), advice=advice)
    return Finding(subject=subject, ok=True, detail=f"publishing mode {mode}")
