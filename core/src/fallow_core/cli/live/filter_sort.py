"""Which rows of a snapshot are shown, and in which order: the filter and the sort order that the user chose."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fallow_core.api.tasks import TaskStatus
from fallow_core.cli.live.events import Event
from fallow_core.cli.live.snapshot import Account, Node, Snapshot
from fallow_core.cli.live.view_state import Kind, Ref, ViewState
from fallow_hookspecs import RESOURCE_NAMES, ResourceName

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows of the tables, in their order."""

    nodes: Sequence[Node]
    accounts: Sequence[Account]
    tasks: Sequence[TaskStatus]
    events: Sequence[Event]

    @property
    def refs(self) -> list[Ref]:
        """Everything that can be selected, in the order of the screen."""
        return [
            *(Ref(Kind.NODE, node.name) for node in self.nodes),
            *(Ref(Kind.ACCOUNT, account.name) for account in self.accounts),
            *(Ref(Kind.TASK, f"{task.cluster} {task.task}") for task in self.tasks),
            *(Ref(Kind.EVENT, event.key) for event in self.events),
        ]


def filter_and_sort(snapshot: Snapshot, state: ViewState) -> Rows:
    """Sorted by a resource, the largest use or allocation comes first; decisions keep the order of time."""
    return Rows(
        nodes=_sorted(_having(snapshot.nodes, state, lambda node: (node.name,)), state, lambda n: n.name, _node_amount),
        accounts=_sorted(
            _having(snapshot.accounts, state, lambda account: (account.name, account.switch, account.state)),
            state,
            lambda account: account.name,
            lambda account, name: account.amounts[name].allocated,
        ),
        tasks=_sorted(
            _having(snapshot.tasks, state, _texts),
            state,
            lambda task: task.task,
            lambda task, name: None if task.used is None else task.used.amount(name),
            lambda task: task.age_seconds,
        ),
        events=_having(snapshot.events, state, lambda event: (event.text,)),
    )


def _node_amount(node: Node, name: ResourceName) -> int | None:
    return node.amounts[name].online


def _texts(task: TaskStatus) -> tuple[str, ...]:
    where = (task.cluster, task.task, task.framework_node)
    return (*where, task.label, task.user, task.queue, task.role, task.phase)


def _having(items: Iterable[T], state: ViewState, texts: Callable[[T], Iterable[str]]) -> list[T]:
    wanted = state.wanted.casefold()
    return [item for item in items if not wanted or any(wanted in text.casefold() for text in texts(item))]


def _sorted(
    items: list[T],
    state: ViewState,
    name: Callable[[T], str],
    value: Callable[[T, ResourceName], int | None],
    age: Callable[[T], float | None] = lambda _: None,
) -> list[T]:
    """The largest first; unknown values last."""

    def descending(item: T) -> tuple[bool, float, str]:
        found = age(item) if state.sort == "age" else next(value(item, n) for n in RESOURCE_NAMES if n == state.sort)
        return (found is None, -(found or 0), name(item))

    if state.sort == "name":
        items = sorted(items, key=name)
    elif state.sort != "cost":
        items = sorted(items, key=descending)
    return items[::-1] if state.reverse else items
