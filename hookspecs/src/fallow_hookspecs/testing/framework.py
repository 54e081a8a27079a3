"""What an author provides: a framework, or its emulation, that the suite can bring into each state it needs.

What it says is the truth that a plugin's answers are compared with. So it must not ask the plugin.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

from fallow_hookspecs.capacity import Node, Resources
from fallow_hookspecs.plugin import Plugin, Role


class UnableError(Exception):
    """This framework cannot be brought into that state. What needs it is skipped, and the report says so."""


class Framework(ABC):
    """A framework that runs, with at least one node of its own on the first of `nodes`.

    `spec` is that of a cluster file. `request` is what each task of `start_tasks` gets. A call is given
    `timeout_seconds`; what a call has started shows after `patience_seconds` at the latest, and what it
    must not have done would show after `settle_seconds`. `is_on_this_host`: the
    processes of tasks can be looked up here.

    The methods that are not abstract bring it into states that not every framework, or emulation, can be brought into.
    One that is left out skips the tests that need it.
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
        """End all tasks, leave nothing queued, give every node its full size, and return when that is so."""

    @abstractmethod
    def start_tasks(self, count: int, *, stubborn: bool = False) -> tuple[str, ...]:
        """Run so many tasks on the first node; their ids, once all of them run.

        Masters that come with them are not among them. A task that is `stubborn` does not end when it is asked to.
        """

    def have_tasks(self, count: int) -> None:
        """See that some tasks run, whichever they are."""
        self.start_tasks(count)

    @abstractmethod
    def finish(self, task_ids: Collection[str]) -> None:
        """Have these tasks end by themselves; return when they hold nothing any more."""

    @abstractmethod
    def tasks(self) -> frozenset[str]:
        """The ids of all tasks that hold resources now, masters included."""

    @abstractmethod
    def sizes(self) -> Mapping[str, Resources]:
        """The size that the scheduler works with now, for each of the framework's nodes."""

    @abstractmethod
    def allocated(self) -> Mapping[str, Resources]:
        """What is promised to tasks now, for each of the framework's nodes."""

    def queue_tasks(self, count: int) -> Resources:
        """Have so many tasks wait that find no room; what they ask for together."""
        raise UnableError("it cannot be given tasks that wait")

    def cut_off(self) -> None:
        """Refuse every request of the plugin at once, until `mend`."""
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
        """Take new sizes, and let the scheduler work with the old ones, until `mend`."""
        raise UnableError("its scheduler cannot be held back")

    def lose_news(self, framework_node: str) -> None:
        """Have the framework know nothing new of one of its nodes, while it answers, until `mend`."""
        raise UnableError("it always has news of its nodes")

    def protect(self, task_id: str) -> None:
        """Have a task that cannot be terminated, for whatever reason the plugin has to give, until `mend`."""
        raise UnableError("each of its tasks can be terminated")

    def told(self, task_id: str) -> str:
        """What the framework's user is told of the end of a task."""
        raise UnableError("what its user is told cannot be read")
