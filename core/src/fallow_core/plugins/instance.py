"""One plugin instance for one cluster file: its own plugin manager, its two lanes, and typed calls.

A call is started and polled::

    call = instance.start_report(nodes, timeout_seconds=10.0)   # None: the lane is busy, or backs off
    ...
    if call is not None and call.done:
        outcome = call.outcome                                  # the report, or a Failure with its reason
        if isinstance(outcome, Failure): ...

The caller checks each row of a report and each task of a list, so that a wrong one affects no other. The lane reports
the result to its breaker, so the caller may drop a call.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from fallow_core.errors import PluginLoadError
from fallow_core.model.plugin import LoadedPlugin
from fallow_core.plugins.answers import mismatch_but_parts
from fallow_core.plugins.lanes import Call, Failure, FailureKind, Lane, LaneHealth, reason_of
from fallow_core.plugins.wrappers import Wrappers, build
from fallow_hookspecs import (
    CapacityReport,
    ClusterConfig,
    Finding,
    KillOrder,
    KillOutcome,
    Node,
    Offer,
    Placement,
    PluginError,
    TaskList,
)
from fallow_hookspecs.fitting import HOOKS, UnfitError, hooks_of

_T = TypeVar("_T")


class WrongAnswerError(PluginError):
    """The answer of a hook does not match the contract."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceHealth:
    """What an operator should know about an instance.

    `missing_hooks` are not implemented, so they are never called. `wrappers` has the error of each wrapper whose last
    call failed.
    """

    reads: LaneHealth
    acts: LaneHealth
    missing_hooks: tuple[str, ...]
    wrappers: Mapping[str, str] = field(default_factory=dict)


def start_build(
    loaded: LoadedPlugin,
    config: ClusterConfig,
    *,
    timeout_seconds: float,
    clock: Callable[[], float],
    wake: Callable[[], None] | None = None,
) -> "Call[PluginInstance]":
    """Build an instance in a thread of its own, so that a plugin that hangs delays nothing else."""
    lane = Lane(f"{loaded.source.name}/{config.name} build", clock, wake)
    call = lane.submit(lambda: PluginInstance(loaded, config, clock=clock, wake=wake), timeout_seconds)
    lane.close()
    assert call is not None  # the lane is new
    return call


class PluginInstance:
    """A plugin that works for one cluster. Only the thread of the core loop may call its methods."""

    def __init__(
        self,
        loaded: LoadedPlugin,
        config: ClusterConfig,
        *,
        clock: Callable[[], float],
        wake: Callable[[], None] | None = None,
        wrappers: Mapping[str, object] | None = None,
    ) -> None:
        """Build the instance and register its hooks. This may take as long as the plugin's `build`; see `start_build`.

        :param wake: called from a lane's thread after each call, so that the loop need not poll.
        :param wrappers: by name, the outermost first; by default those that `loaded` names are built.
        :raises PluginLoadError: `build` fails, a hook is misspelt or has unknown arguments, or a wrapper is unusable.
        """
        self.name = f"{loaded.source.name}/{config.name}"
        self.source = loaded.source
        self.roles = config.roles
        self._clock = clock
        self._wrappers = Wrappers(build(loaded.wrappers, self.name) if wrappers is None else wrappers)
        try:
            self._object = loaded.plugin.build(config)
        except (Exception, SystemExit) as error:
            raise PluginLoadError(f"cluster {self.name}: {loaded.source} failed: {reason_of(error)}") from error
        try:
            hooks = hooks_of(self._object, self._wrappers.guards)
        except UnfitError as error:
            with contextlib.suppress(Exception):
                self._object.close()
            raise PluginLoadError(f"cluster {self.name}: {loaded.source} does not fit: {error}") from error
        self._caller = hooks.caller
        self._missing = tuple(name for name in HOOKS if name not in hooks.implemented)
        self._reads = Lane(f"{self.name} reads", clock, wake)
        self._acts = Lane(f"{self.name} acts", clock, wake)
        self._closing: Call[None] | None = None
        try:
            for lane in (self._reads, self._acts):
                lane.start()
        except RuntimeError as error:
            for lane in (self._reads, self._acts):
                lane.close()
            with contextlib.suppress(Exception):
                self._object.close()
            raise PluginLoadError(f"cluster {self.name}: no thread can be started for its calls: {error}") from error

    def start_report(self, nodes: tuple[Node, ...], timeout_seconds: float) -> Call[CapacityReport] | None:
        """Ask what the framework has (reads lane)."""
        arguments = {"nodes": nodes, "offers": (), "timeout_seconds": timeout_seconds}
        return self._start(self._reads, "report_capacity", CapacityReport, arguments, timeout_seconds)

    def start_publish(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
    ) -> Call[CapacityReport] | None:
        """Tell the framework what it may use (acts lane)."""
        arguments = {"nodes": nodes, "offers": offers, "timeout_seconds": timeout_seconds}
        return self._start(self._acts, "report_capacity", CapacityReport, arguments, timeout_seconds)

    def start_list_tasks(self, node: Node, timeout_seconds: float) -> Call[TaskList] | None:
        """Ask which tasks hold resources on the node (reads lane)."""
        arguments = {"node": node, "timeout_seconds": timeout_seconds}
        return self._start(self._reads, "list_tasks", TaskList, arguments, timeout_seconds)

    def start_kill_tasks(self, node: Node, order: KillOrder, timeout_seconds: float) -> Call[KillOutcome] | None:
        """Terminate tasks (acts lane), also while the breaker is open: pressure cannot wait for the end of a pause."""
        arguments = {"node": node, "order": order, "timeout_seconds": timeout_seconds}
        return self._start(self._acts, "kill_tasks", KillOutcome, arguments, timeout_seconds, use_breaker=False)

    def start_set_cgroup_parent(self, node: Node, parent: str, timeout_seconds: float) -> Call[Placement] | None:
        """Ask where the tasks are in the cgroup tree (acts lane). A failure does not pause other calls."""
        arguments = {"node": node, "parent": parent, "timeout_seconds": timeout_seconds}
        return self._start(self._acts, "set_cgroup_parent", Placement, arguments, timeout_seconds, use_breaker=False)

    def start_diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> Call[tuple[Finding, ...]] | None:
        """Ask for findings (reads lane), also while the breaker is open: that is when an operator asks."""

        def diagnose() -> tuple[Finding, ...]:
            answer = self._object.diagnose(nodes, timeout_seconds)
            return _checked(answer, tuple[Finding, ...], "diagnose")

        return self._reads.submit(diagnose, timeout_seconds, use_breaker=False)

    def health(self) -> InstanceHealth:
        """How the instance is now."""
        return InstanceHealth(
            reads=self._reads.health(),
            acts=self._acts.health(),
            missing_hooks=self._missing,
            wrappers=dict(self._wrappers.failures),
        )

    def close(self, timeout_seconds: float) -> Call[None]:
        """Close the instance without waiting. No further call starts.

        A thread of its own calls the plugin's `close` once both lanes are idle, or past the deadlines of their calls.
        The caller may poll the returned call. A second `close` returns the same call.
        """
        if self._closing is None:
            lanes = (self._reads, self._acts)
            for lane in lanes:
                lane.close()
            closer = Lane(f"{self.name} close", self._clock)

            def end() -> None:
                for lane in lanes:
                    lane.join()
                self._object.close()

            self._closing = closer.submit(end, timeout_seconds)
            closer.close()
        assert self._closing is not None  # the closer is new
        return self._closing

    def _start(
        self,
        lane: Lane,
        hook: str,
        expected: type[_T],
        arguments: dict[str, Any],
        timeout_seconds: float,
        *,
        use_breaker: bool = True,
    ) -> Call[_T] | None:
        if hook in self._missing:
            now = self._clock()
            reason = f"{self.source} does not implement {hook}"
            return Call(now, now, Failure(kind=FailureKind.NOT_IMPLEMENTED, reason=reason))
        caller: Callable[..., Any] = getattr(self._caller, hook)
        if hook == "kill_tasks":
            caller = partial(self._wrappers.kill, caller)
        return lane.submit(
            lambda: _checked(caller(**arguments), expected, hook), timeout_seconds, use_breaker=use_breaker
        )


def _checked(answer: object, expected: type[_T], hook: str) -> _T:
    if text := mismatch_but_parts(answer, expected):
        raise WrongAnswerError(f"{hook} gave a wrong answer: the answer{text}")
    return answer  # type: ignore[return-value] # just checked
