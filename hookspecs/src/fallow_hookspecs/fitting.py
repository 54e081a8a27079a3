"""Checks that core, a copilot and the suites make before they call an instance."""

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import pluggy

from fallow_hookspecs import hooks
from fallow_hookspecs.hooks import PROJECT
from fallow_hookspecs.plugin import API_LEVEL, Instance

HOOKS: Final = ("report_capacity", "list_tasks", "kill_tasks", "set_cgroup_parent")


class UnfitError(Exception):
    """The built object is no instance, or its hooks do not match the contract. The text is for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The hooks of an instance, called as `caller.list_tasks(node=..., timeout_seconds=...)`.

    `implemented` has the names of those that it implements, in the order of the contract.
    """

    caller: Any
    implemented: tuple[str, ...]


def level_misfit(levels: object) -> str:
    """Why these API levels do not fit, as the end of a sentence; empty if they fit."""
    match levels:
        case (int(lowest), int(highest)):
            if lowest <= API_LEVEL <= highest:
                return ""
            return f"is written for API levels {lowest} to {highest}, this Fallow has level {API_LEVEL}"
    return f"has the api_levels {levels!r}, not a pair of the lowest and the highest level"


def hooks_of(instance: object, wrappers: Iterable[object] = ()) -> Hooks:
    """The hooks of an instance, with hook wrappers around them, the innermost first.

    :raises UnfitError: it is no instance; or a hook is misspelt, is not marked, has unknown arguments, or is async.
    """
    if not isinstance(instance, Instance):
        raise UnfitError(f"build returned a {type(instance).__name__} without diagnose and close")
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hooks)
    try:
        for each in (instance, *wrappers):
            manager.register(each)
        manager.check_pending()
    except Exception as error:
        raise UnfitError(str(error)) from error
    implemented = tuple(name for name in HOOKS if _implements(instance, name, getattr(manager.hook, name)))
    return Hooks(caller=manager.hook, implemented=implemented)


def _implements(instance: object, name: str, caller: pluggy.HookCaller) -> bool:
    functions = [each.function for each in caller.get_hookimpls() if not (each.wrapper or each.hookwrapper)]
    if any(inspect.iscoroutinefunction(function) for function in functions):
        raise UnfitError(f"{name} is an async function; hooks are plain functions")
    if hasattr(instance, name) and not functions:
        raise UnfitError(f"the method {name} is not marked with @hookimpl")
    return bool(functions)
