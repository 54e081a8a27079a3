"""Wrappers: third-party code around the calls of an instance. It may watch and veto, but its errors lose no call.

Each wrapper is a hook wrapper of pluggy behind a guard. After an error before the call, core makes the call anyway;
after an error behind it, core uses the answer of the plugin. Only an error raised on purpose stops a call.
"""

import inspect
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from fallow_core.errors import PluginLoadError
from fallow_core.plugins.discovery import load_wrapper
from fallow_hookspecs import (
    PROJECT,
    KillAnswer,
    KillOrder,
    KillOutcome,
    KillResult,
    Node,
    Offer,
    PluginError,
    Veto,
    hookimpl,
    hooks,
)

WRAPPED = ("kill_tasks", "report_capacity")

_log = logging.getLogger(__name__)

_Around = Generator[None, Any, Any]


def build(names: Sequence[str], cluster: str) -> dict[str, object]:
    """The wrappers of a cluster by name, imported and built.

    :raises PluginLoadError: one is not installed, does not fit, or cannot be built.
    """
    built = {}
    for name in names:
        wrapper, source = load_wrapper(name)
        try:
            built[name] = wrapper.build(cluster)
        except (Exception, SystemExit) as error:
            raise PluginLoadError(f"cluster {cluster}: {source} failed: {type(error).__name__}: {error}") from error
    return built


class Wrappers:
    """The wrappers of one instance. `guards` are for pluggy, the innermost first. `failures`: the last error by name.

    :raises PluginLoadError: an object wraps something else than a call, or is no hook wrapper.
    """

    def __init__(self, objects: Mapping[str, object]) -> None:
        self.failures: dict[str, str] = {}
        self.guards = [self._guard(name, wrapper) for name, wrapper in reversed(list(objects.items()))]

    def kill(self, caller: Callable[..., Any], node: Node, order: KillOrder, timeout_seconds: float) -> Any:
        """Call `kill_tasks`. After a veto, call it again for the other tasks."""
        spared: dict[str, KillAnswer] = {}
        while True:
            try:
                outcome = caller(node=node, order=order, timeout_seconds=timeout_seconds)
            except Veto as veto:
                spared |= {i: KillAnswer(result=KillResult.SPARED, reason=why) for i, why in veto.spared.items()}
                order = replace(order, task_ids=tuple(i for i in order.task_ids if i not in spared))
                if not order.task_ids:
                    return KillOutcome(answers=spared)
                continue
            if spared and isinstance(outcome, KillOutcome):
                return replace(outcome, answers={**outcome.answers, **spared})
            return outcome

    def _guard(self, name: str, wrapper: object) -> object:
        """The object that is registered in its place: a hook wrapper for each call that it wraps."""
        guard = SimpleNamespace()
        marked = [attribute for attribute in dir(wrapper) if hasattr(getattr(wrapper, attribute), f"{PROJECT}_impl")]
        for hook in marked:
            _check(name, hook, getattr(wrapper, hook))
        if "kill_tasks" in marked:
            inner = _picking(wrapper.kill_tasks)  # type: ignore[attr-defined] # it is in `marked`

            @hookimpl(wrapper=True)
            def kill_tasks(node: Node, order: KillOrder, timeout_seconds: float) -> _Around:
                arguments = {"node": node, "order": order, "timeout_seconds": timeout_seconds}
                return (yield from self._around(name, inner, arguments))

            guard.kill_tasks = kill_tasks
        if "report_capacity" in marked:
            outer = _picking(wrapper.report_capacity)  # type: ignore[attr-defined] # it is in `marked`

            @hookimpl(wrapper=True)
            def report_capacity(nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float) -> _Around:
                arguments = {"nodes": nodes, "offers": offers, "timeout_seconds": timeout_seconds}
                return (yield from self._around(name, outer, arguments))

            guard.report_capacity = report_capacity
        return guard

    def _around(
        self, name: str, function: Callable[[Mapping[str, Any]], _Around], arguments: Mapping[str, Any]
    ) -> _Around:
        inside = None
        try:
            inside = function(arguments)
            next(inside)
        except Exception as error:  # StopIteration is one, if it does not yield
            if stop := self._stop(name, error, arguments.get("order")):
                raise stop from error
            inside = None
        if inside is None:
            return (yield)
        try:
            answer = yield
        except BaseException as error:
            self._tell(name, inside, error)
            raise
        return self._finished(name, inside, answer)

    def _stop(self, name: str, error: Exception, order: KillOrder | None) -> PluginError | None:
        """The error that stops the call because a wrapper asked for it; `None` if the error is only noted."""
        if order is None and isinstance(error, PluginError):
            return PluginError(f"{error} (wrapper {name})")
        if order is not None and isinstance(error, Veto):
            spared = {i: f"{why} (wrapper {name})" for i, why in error.spared.items() if i in order.task_ids}
            if spared:
                return Veto(spared)
        self._failed(name, "did not yield" if isinstance(error, StopIteration) else f"{type(error).__name__}: {error}")
        return None

    def _finished(self, name: str, inside: _Around, answer: Any) -> Any:
        """The answer of the wrapper; that of the plugin if the wrapper returns no answer of the same type."""
        try:
            inside.send(answer)
        except StopIteration as stop:
            if type(stop.value) is type(answer):
                self.failures.pop(name, None)
                return stop.value
            self._failed(name, f"returned a {type(stop.value).__name__}, not a {type(answer).__name__}")
        except Exception as error:
            self._failed(name, f"{type(error).__name__}: {error}")
        else:
            inside.close()
            self._failed(name, "yielded twice")
        return answer

    def _tell(self, name: str, inside: _Around, error: BaseException) -> None:
        """Tell the wrapper that the call failed. It stays failed."""
        try:
            inside.throw(error)
        except StopIteration:
            pass
        except BaseException as raised:
            if raised is not error:
                self._failed(name, f"{type(raised).__name__}: {raised}")

    def _failed(self, name: str, why: str) -> None:
        self.failures[name] = why
        _log.warning("wrapper %s: %s", name, why)


def _check(name: str, hook: str, function: Any) -> None:
    if hook not in WRAPPED:
        raise PluginLoadError(f"wrapper {name!r} wraps {hook}; what can be wrapped is {' and '.join(WRAPPED)}")
    if not getattr(function, f"{PROJECT}_impl").get("wrapper") or not inspect.isgeneratorfunction(function):
        raise PluginLoadError(f"wrapper {name!r}: {hook} is no generator marked with @hookimpl(wrapper=True)")
    unknown = inspect.signature(function).parameters.keys() - inspect.signature(getattr(hooks, hook)).parameters.keys()
    if unknown:
        raise PluginLoadError(f"wrapper {name!r}: {hook} has no arguments {', '.join(sorted(unknown))}")


def _picking(function: Callable[..., _Around]) -> Callable[[Mapping[str, Any]], _Around]:
    """The same function, called with only the arguments that it names."""
    names = tuple(inspect.signature(function).parameters)
    return lambda arguments: function(**{name: arguments[name] for name in names})
