"""An instance as core calls it: through pluggy, with a timeout."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from fallow_hookspecs.capacity import CapacityReport, Node, Offer
from fallow_hookspecs.fitting import hooks_of
from fallow_hookspecs.placement import Placement
from fallow_hookspecs.plugin import ClusterConfig, Instance, Plugin
from fallow_hookspecs.shape import mismatch
from fallow_hookspecs.tasks import KillOrder, KillOutcome, TaskList

_T = TypeVar("_T")

Opener = Callable[[Plugin, ClusterConfig], AbstractContextManager[Instance]]
"""Opens and closes the instance that the suite calls. `in_process` is one opener; another may use a socket."""


class NotImplementedHereError(Exception):
    """The instance does not implement the hook, so core would never call it."""


class OverdueError(Exception):
    """A call did not end within its timeout."""


@contextmanager
def in_process(plugin: Plugin, cluster: ClusterConfig) -> Iterator[Instance]:
    """The plugin's own instance, in this process."""
    instance = plugin.build(cluster)
    try:
        yield instance
    finally:
        instance.close()


class Called:
    """The hooks of an instance. `timeout_seconds` is the default timeout of a call.

    :raises NotImplementedHereError: the instance does not have the hook.
    :raises OverdueError: the call takes longer than twice its timeout plus one second.
    """

    def __init__(self, instance: Instance, timeout_seconds: float) -> None:
        self.instance = instance
        self._timeout_seconds = timeout_seconds
        self._hooks = hooks_of(instance)

    def has(self, hook: str) -> bool:
        """Whether the instance implements a hook."""
        return hook in self._hooks.implemented

    def report(self, nodes: tuple[Node, ...], timeout_seconds: float | None = None) -> CapacityReport:
        """`report_capacity` without offers."""
        return self._call("report_capacity", CapacityReport, timeout_seconds, nodes=nodes, offers=())

    def publish(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float | None = None
    ) -> CapacityReport:
        """`report_capacity` with offers."""
        return self._call("report_capacity", CapacityReport, timeout_seconds, nodes=nodes, offers=offers)

    def list_tasks(self, node: Node, timeout_seconds: float | None = None) -> TaskList:
        """`list_tasks`."""
        return self._call("list_tasks", TaskList, timeout_seconds, node=node)

    def kill(self, node: Node, order: KillOrder, timeout_seconds: float | None = None) -> KillOutcome:
        """`kill_tasks`."""
        return self._call("kill_tasks", KillOutcome, timeout_seconds, node=node, order=order)

    def place(self, node: Node, parent: str, timeout_seconds: float | None = None) -> Placement:
        """`set_cgroup_parent`."""
        return self._call("set_cgroup_parent", Placement, timeout_seconds, node=node, parent=parent)

    def _call(self, hook: str, expected: type[_T], timeout_seconds: float | None, **arguments: Any) -> _T:
        if not self.has(hook):
            raise NotImplementedHereError(f"the plugin does not implement {hook}")
        seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        answer = within(lambda: getattr(self._hooks.caller, hook)(timeout_seconds=seconds, **arguments), seconds, hook)
        wrong = mismatch(answer, expected)
        assert not wrong, f"{hook}: the answer{wrong}"
        assert isinstance(answer, expected)
        return answer


def within(function: Callable[[], _T], seconds: float, what: str) -> _T:
    """Call the function in a thread of its own, which is abandoned when it is overdue."""
    answers: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(function())
        except BaseException as error:  # handed to the caller
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True, name=f"fallow suite {what}")
    thread.start()
    thread.join(2 * seconds + 1)
    if errors:
        raise errors[0]
    if not answers:
        raise OverdueError(f"{what} has a timeout of {seconds:g} s, and did not end within {2 * seconds + 1:g} s")
    return answers[0]


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Poll until the condition holds.

    :raises AssertionError: it does not hold in time.
    """
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:g} s, but not: {what}"
        time.sleep(0.02)
