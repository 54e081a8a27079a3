"""What an author provides: a framework, or an emulation of it, that the suites can bring into the states they need.

The suites compare the plugin's answers with what it says, so it must not ask the plugin.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

from fallow_hookspecs.capacity import Node, Resources
from fallow_hookspecs.plugin import Plugin, Role


class UnableError(Exception):
    """This framework cannot be brought into the state. Tests that need it are skipped, and the report says so."""


class Framework(ABC):
    """A running framework, with at least one node of its own on the first of `nodes`.

    `spec` is that of a cluster file. Each task of `start_tasks` requests `request`. `timeout_seconds` is the timeout of
    a call. The effects of a call are visible after `patience_seconds` at the latest; forbidden effects would be visible
    after `settle_seconds`. `is_on_this_host`: the processes of tasks can be found on this host.

    Not every framework or emulation supports the states of the methods that are not abstract. Without such a method,
    the tests that need it are skipped.
    """

    plugin: Plugin
    spec: Mapping[str, Any]
    nodes: tuple[Node, ...]
    request: Resources
    roles: frozenset[Role] = frozenset(Role)
    timeout_seconds: float = 5.0
    patience_seconds: float = 15.0
    settle_seconds: float = 0.3
    is_on_this_host: bool = True

    @abstractmethod
    def mend(self) -> None:
        """Undo `cut_off`, `hang`, `slow`, `slow_node`, `delay_changes`, `lose_news` and `protect`."""

    @abstractmethod
    def reset(self) -> None:
        """Terminate all tasks, empty the queues, give every node its full size, and wait until that is done."""

    @abstractmethod
    def start_tasks(self, count: int, *, stubborn: bool = False) -> tuple[str, ...]:
        """Start `count` tasks on the first node, wait until all of them run, and return their ids without masters.

        A `stubborn` task does not stop when it is asked to.
        """

    def have_tasks(self, count: int) -> None:
        """Make `count` tasks run, no matter which."""
        self.start_tasks(count)

    @abstractmethod
    def finish(self, task_ids: Collection[str]) -> None:
        """Let these tasks finish by themselves, and wait until they hold no resources."""

    @abstractmethod
    def tasks(self) -> frozenset[str]:
        """The ids of all tasks that hold resources now, including masters."""

    @abstractmethod
    def sizes(self) -> Mapping[str, Resources]:
        """The size that the scheduler works with now, by node of the framework."""

    @abstractmethod
    def allocated(self) -> Mapping[str, Resources]:
        """The amount that is allocated to tasks now, by node of the framework."""

    def queue_tasks(self, count: int) -> Resources:
        """Queue `count` tasks that have no room, and return the sum of their requests."""
        raise UnableError("it cannot queue tasks")

    def cut_off(self) -> None:
        """Refuse every request of the plugin immediately, until `mend`."""
        raise UnableError("it cannot be cut off")

    def hang(self) -> None:
        """Answer no request of the plugin, until `mend`."""
        raise UnableError("it cannot be made to hang")

    def slow(self, seconds: float) -> None:
        """Answer each request of the plugin only after a time, until `mend`."""
        raise UnableError("it cannot be made slow")

    def slow_node(self, seconds: float) -> None:
        """Answer each request of the plugin to the first node only after a time, until `mend`."""
        raise UnableError("its nodes cannot be made slow")

    def delay_changes(self) -> None:
        """Accept new sizes, but let the scheduler work with the old ones, until `mend`."""
        raise UnableError("its scheduler cannot be held back")

    def lose_news(self, framework_node: str) -> None:
        """Let the framework answer without news of one of its nodes, until `mend`."""
        raise UnableError("it always has news of its nodes")

    def protect(self, task_id: str) -> None:
        """Make a task that cannot be terminated, for any reason that the plugin must name, until `mend`."""
        raise UnableError("each of its tasks can be terminated")

    def told(self, task_id: str) -> str:
        """The text that the framework's user sees about the termination of a task."""
        raise UnableError("the texts that its user sees cannot be read")
