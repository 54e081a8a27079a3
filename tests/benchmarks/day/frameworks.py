"""A framework of the simulated day: its scheduler, its nodes and tasks, and how its demand steps.

Like YARN: a size change is taken at once, a size below the allocation starts nothing new, a take-back ends the newest
tasks first and masters last when its notice is over, and a stored deadline stays armed until a later update moves it.
"""

import math
from dataclasses import dataclass, field, replace
from random import Random

from fallow_hookspecs import RESOURCE_NAMES, Pending, Resources

GIB = 2**30
UNIT = Resources(1000, 2**20)
NOTHING = Resources(0, 0)
MASTER = Resources(1000, GIB)
MASTER_SECONDS = 7200.0
FAR = math.inf
FLOOD = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What an account is like. `demands`: pairs of (likelihood, tasks wanted at most on each node)."""

    cluster: str
    weight: int
    task: Resources
    task_seconds: float
    says_pending: bool
    floor: Resources
    stage_seconds: float = 5400.0
    demands: tuple[tuple[int, int], ...] = ((2, 0), (3, 8), (5, FLOOD))


@dataclass(slots=True)
class Running:
    """A task on a node."""

    size: Resources
    started_at: float
    ends_at: float
    master: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """A size on its way into the scheduler: when the framework takes the call, and when its scheduler works with it.

    `down_to`: before that, tasks are terminated until no more memory is allocated. `deadline_seconds`: `FAR`, or `None`
    for YARN's −1, which leaves a stored deadline where it is.
    """

    taken_at: float
    at: float
    size: Resources
    deadline_seconds: float | None = FAR
    down_to: int | None = None


@dataclass(slots=True)
class NodeManager:
    """One node of a framework: the size that its scheduler works with, what runs, and updates on their way."""

    size: Resources
    tasks: list[Running] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    deadline: float = FAR
    forgets_until: float = 0.0
    warned: int = 0
    _allocated: Resources = NOTHING

    @property
    def allocated(self) -> Resources:
        """The sum of what runs."""
        return self._allocated

    def shown(self, now: float) -> Resources:
        """What the framework says is allocated: nothing for a while after it started anew."""
        return NOTHING if now < self.forgets_until else self._allocated

    def start(self, task: Running) -> None:
        """A task starts."""
        self.tasks.append(task)
        self._sum()

    def fits(self, task: Resources) -> bool:
        """Whether the scheduler would start it."""
        return all(self._allocated.amount(n) + task.amount(n) <= self.size.amount(n) for n in RESOURCE_NAMES)

    def take(self, update: Update) -> None:
        """Updates are carried out in the order in which they are taken."""
        earlier = [replace(u, at=min(u.at, update.at)) for u in self.updates if u.taken_at <= update.taken_at]
        later = [u for u in self.updates if u.taken_at > update.taken_at]
        soonest = min((u.at for u in later), default=update.at)
        self.updates = [*earlier, replace(update, at=min(update.at, soonest)), *later]

    def register(self, configured: Resources, now: float) -> None:
        """It starts anew with the size it is configured with; tasks live on."""
        self.size, self.deadline, self.forgets_until = configured, FAR, now + 20

    def step(self, now: float) -> int:
        """Carry out updates, terminate tasks whose time has come; the number of those taken back."""
        ended = 0
        while self.updates and self.updates[0].at <= now:
            update = self.updates.pop(0)
            if update.down_to is not None:
                self.size = Resources(self._allocated.cpu_milli, update.down_to)
                ended += self._terminate_above()
            self.size = update.size
            if update.deadline_seconds is not None:
                self.deadline = now + update.deadline_seconds
            self.warned += len(self._above())
        if self.tasks and any(t.ends_at <= now for t in self.tasks):
            self.tasks = [t for t in self.tasks if t.ends_at > now]
            self._sum()
        return ended + (self._terminate_above() if now >= self.deadline else 0)

    def _terminate_above(self) -> int:
        above = self._above()
        for task in above:
            self.tasks.remove(task)
        self._sum()
        return len(above)

    def _above(self) -> list[Running]:
        """The tasks that would have to end until the others fit."""
        cpu, memory = (self._allocated.amount(n) - self.size.amount(n) for n in RESOURCE_NAMES)
        found = []
        if cpu > 0 or memory > 0:
            for task in sorted(self.tasks, key=lambda t: (t.master, -t.started_at)):
                if cpu <= 0 and memory <= 0:
                    break
                found.append(task)
                cpu, memory = cpu - task.size.cpu_milli, memory - task.size.memory_bytes
        return found

    def _sum(self) -> None:
        self._allocated = Resources(
            sum(t.size.cpu_milli for t in self.tasks), sum(t.size.memory_bytes for t in self.tasks)
        )


class Framework:
    """One cluster over all nodes. `wanted`: tasks it wants to run at once, besides masters."""

    def __init__(self, kind: Kind, nodes: int, configured: Resources, rng: Random) -> None:
        self.kind = kind
        self.managers = [NodeManager(configured) for _ in range(nodes)]
        self.wanted = 0
        self.ended_by_deadline = 0
        self._configured = configured
        self._rng = rng
        self._next_stage = 0.0
        self._master_until = 0.0

    @property
    def running(self) -> int:
        """Tasks that run, besides masters."""
        return sum(not t.master for m in self.managers for t in m.tasks)

    def pending(self) -> Pending | None:
        """What it says is pending, if it says so."""
        if not self.kind.says_pending:
            return None
        waiting = min(max(self.wanted - self.running, 0), 10_000)
        total = Resources(self.kind.task.cpu_milli * waiting, self.kind.task.memory_bytes * waiting)
        one = self.kind.task if waiting else None
        return Pending(total=total, smallest=one, largest=one)

    def restart(self, now: float) -> None:
        """The scheduler starts anew: every node registers the size it is configured with."""
        for manager in self.managers:
            manager.register(self._configured, now)

    def register(self, node: int, now: float) -> None:
        """One of its nodes starts anew."""
        self.managers[node].register(self._configured, now)

    def step(self, now: float) -> None:
        """One second: demand steps, tasks end, others start."""
        if now >= self._next_stage:
            weights, levels = zip(*self.kind.demands, strict=True)
            level = self._rng.choices(levels, weights)[0]
            self.wanted = level if level == FLOOD else self._rng.randint(0, level) * len(self.managers)
            self._next_stage = now + self._rng.expovariate(1 / self.kind.stage_seconds)
        for manager in self.managers:
            self.ended_by_deadline += manager.step(now)
        if self.wanted and now >= self._master_until:
            self._start_master(now)
        missing = self.wanted - self.running if self.wanted else 0
        for manager in self._rng.sample(self.managers, len(self.managers)):
            while missing > 0 and manager.fits(self.kind.task):
                seconds = 20 + self._rng.expovariate(1 / self.kind.task_seconds)
                manager.start(Running(self.kind.task, now, now + seconds))
                missing -= 1

    def _start_master(self, now: float) -> None:
        for manager in self._rng.sample(self.managers, len(self.managers)):
            if manager.fits(MASTER):
                manager.start(Running(MASTER, now, now + MASTER_SECONDS, master=True))
                self._master_until = now + MASTER_SECONDS
                return
