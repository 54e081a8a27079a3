"""An application and the knowledge of its master: its tasks, their containers, and their results. Pure.

It outlives the ResourceManager, as a real application master and the state store do.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fallow_yarn.model.size import Size

SUCCEEDED: Final = 0
LOST: Final = -100
PREEMPTED: Final = -102
KILLED_BY_MASTER: Final = -105
MASTER_SIZE: Final = Size(256, 1)
MASTER_COMMAND: Final = "exec sleep 2147483647"


class ApplicationState(StrEnum):
    """States of an application in the words of the ResourceManager."""

    ACCEPTED = "ACCEPTED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What an application is to do: run `containers` tasks of one size, each with the shell command `command`.

    `attempts`: how often a task is run until it ends with 0. `master_attempts`: how often the master may end before the
    application has failed; that it is taken back does not count.
    """

    containers: int
    size: Size
    command: str
    attempts: int = 1
    name: str = "embedded"
    user: str = "tester"
    queue: str = "default"
    priority: int = 0
    master_size: Size = MASTER_SIZE
    master_attempts: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A container that has ended, as its master was told: -100 lost with its node, -102 taken back by the scheduler."""

    container: str
    task: int
    exit_code: int
    diagnostics: str


@dataclass(slots=True, kw_only=True)
class Task:
    """One piece of work, numbered from 0."""

    number: int
    attempts_left: int


@dataclass(slots=True, kw_only=True, eq=False)
class Container:
    """A container that its master has. `task` is None for the master's own. `begun`: its process was seen."""

    id: str
    application: "Application"
    node_id: str
    size: Size
    command: str
    task: Task | None
    begun: bool = False

    @property
    def is_master(self) -> bool:
        """Whether it is the application master's own."""
        return self.task is None


@dataclass(slots=True, kw_only=True, eq=False)
class Application:
    """An application. What is public may be read from any thread; what changes it belongs to the scheduler."""

    id: str
    order: Order
    started_ms: int
    attempt: int = 1
    failed_attempts: int = 0
    state: ApplicationState = ApplicationState.ACCEPTED
    master: Container | None = None
    ended: tuple[Ended, ...] = ()
    warned: tuple[str, ...] = ()
    _containers: dict[str, Container] = field(default_factory=dict)
    _waiting: deque[Task] = field(default_factory=deque)
    _finished: int = 0
    _number: int = 0

    def __post_init__(self) -> None:
        attempts = self.order.attempts
        self._waiting = deque(Task(number=i, attempts_left=attempts) for i in range(self.order.containers))

    @property
    def is_over(self) -> bool:
        """Whether nothing of it will run any more."""
        return self.state in (ApplicationState.FINISHED, ApplicationState.FAILED)

    @property
    def containers(self) -> tuple[Container, ...]:
        """Those it has, the master's among them, in the order in which it got them."""
        return tuple(self._containers.values())

    @property
    def running(self) -> frozenset[str]:
        """The containers whose process has begun, without the master's."""
        return frozenset(c.id for c in self.containers if c.begun and not c.is_master)

    @property
    def pending(self) -> int:
        """The tasks that wait for a container."""
        return 0 if self.is_over else len(self._waiting)

    @property
    def finished(self) -> int:
        """The tasks that ended with 0."""
        return self._finished

    @property
    def progress(self) -> float:
        """The share of the tasks that has ended with 0, from 0 to 1."""
        return self._finished / self.order.containers if self.order.containers else 1.0

    def find(self, container_id: str) -> Container | None:
        """One that it has."""
        return self._containers.get(container_id)

    def wanted(self) -> tuple[Size, int]:
        """The size of a container that it asks for now, and how many of them. A master must run to ask for more."""
        if self.is_over:
            return self.order.size, 0
        if self.master is None:
            return self.order.master_size, 1
        return self.order.size, len(self._waiting) if self.master.begun else 0

    def take(self, node_id: str, size: Size, epoch: int) -> Container:
        """It gets a container for what it wants next."""
        self._number += 1
        prefix = "container_" if epoch == 0 else f"container_e{epoch:02d}_"
        text = f"{prefix}{self.id.removeprefix('application_')}_{self.attempt:02d}_{self._number:06d}"
        task = None if self.master is None else self._waiting.popleft()
        command = MASTER_COMMAND if task is None else self.order.command
        container = Container(id=text, application=self, node_id=node_id, size=size, command=command, task=task)
        if task is None:
            self.master = container
        self._containers[text] = container
        return container

    def begin(self, container: Container) -> None:
        """A container's process was seen."""
        container.begun = True
        if container.is_master:
            self.state = ApplicationState.RUNNING

    def give_back(self, container: Container) -> None:
        """A container never began, and its task waits again."""
        self._containers.pop(container.id, None)
        if container.task is None:
            self.master = None
        else:
            self._waiting.appendleft(container.task)

    def warn(self, container: Container) -> None:
        """The master is told that a container will be taken back."""
        self.warned += (container.id,)

    def end(self, container: Container, exit_code: int, diagnostics: str) -> tuple[Container, ...]:
        """A container has ended. The answer: those that have to end with it."""
        if self._containers.pop(container.id, None) is None:
            return ()
        if container.task is None:
            return self._end_attempt(exit_code)
        self._note(container, container.task, exit_code, diagnostics)
        if self._waiting or any(not other.is_master for other in self.containers):
            return ()
        self.state = ApplicationState.FINISHED
        return self._let_go()

    def _end_attempt(self, exit_code: int) -> tuple[Container, ...]:
        self.failed_attempts += exit_code not in (PREEMPTED, LOST)
        self.attempt += 1
        self._number = 0
        others = self._let_go()
        if self.failed_attempts >= self.order.master_attempts:
            self.state = ApplicationState.FAILED
        elif not self.is_over:
            self.state = ApplicationState.ACCEPTED
        for other in others:
            if other.task is not None:
                other.task.attempts_left += 1  # the next master runs it again
                self._note(other, other.task, KILLED_BY_MASTER, "Container killed: its application master ended")
        return others

    def _let_go(self) -> tuple[Container, ...]:
        left = self.containers
        self._containers.clear()
        self.master = None
        return left

    def _note(self, container: Container, task: Task, exit_code: int, diagnostics: str) -> None:
        ended = Ended(container=container.id, task=task.number, exit_code=exit_code, diagnostics=diagnostics)
        self.ended += (ended,)
        task.attempts_left -= 1
        if exit_code == SUCCEEDED:
            self._finished += 1
        elif task.attempts_left > 0:
            self._waiting.append(task)
