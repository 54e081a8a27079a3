"""The embedded ResourceManager's state, in invented time: what the real one was seen to do with sizes."""

from dataclasses import replace

import pytest

from fallow_yarn.embedded.application import Application, ApplicationState, Container, Order
from fallow_yarn.embedded.node_state import NodeState, Orders, Registration, Status
from fallow_yarn.embedded.scheduler import ABSENT_SECONDS, Scheduler, UnknownNode, Update
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.model.size import Size

NODE = "localhost:1"
TASK = Size(1024, 1)
MINUS, NOW, FAR = -1, 0, 2147483647
SETTINGS = Settings(memory_mb=8192, vcores=8, minimum=Size(1024, 1), change_seconds=0.01)


class World:
    """A scheduler, NodeManagers that obey at once, and a clock that only goes on when it is told."""

    def __init__(self, settings: Settings = SETTINGS, nodes: int = 1) -> None:
        self.settings = settings
        self.now = 0.0
        self.applications: list[Application] = []
        self.scheduler = Scheduler(settings, (), 0)
        self.sizes = {f"localhost:{i + 1}": Size(settings.memory_mb, settings.vcores) for i in range(nodes)}
        self.running: dict[str, dict[str, Container]] = {name: {} for name in self.sizes}
        self.ended: dict[str, dict[str, int]] = {name: {} for name in self.sizes}
        for name in self.sizes:
            assert self.register(name) == ""
        self.now += 1

    def register(self, name: str = NODE) -> str:
        containers = tuple(Status(container=c) for c in self.running[name])
        registration = Registration(node_id=name, web="w:1", size=self.sizes[name], health_ms=0, containers=containers)
        return self.scheduler.register(registration, self.now)

    def beat(self, name: str = NODE, seconds: float = 1.0) -> Orders:
        """One heartbeat: the NodeManager reports, and does what it is told."""
        self.now += seconds
        statuses = [Status(container=c) for c in self.running[name]]
        statuses += [Status(container=c, exit_code=code) for c, code in self.ended[name].items()]
        orders = self.scheduler.heartbeat(name, statuses, self.now)
        assert orders is not None
        for container in orders.start:
            self.running[name][container.id] = container
        for gone in orders.forget:
            self.ended[name].pop(gone, None)
        for ending in orders.end:
            if self.running[name].pop(ending, None) is not None:
                self.ended[name][ending] = 143
        self.sizes[name] = orders.size or self.sizes[name]
        return orders

    def beats(self, count: int) -> None:
        for _ in range(count):
            for name in self.sizes:
                self.beat(name)

    def submit(self, containers: int, size: Size = TASK, attempts: int = 1, master_attempts: int = 2) -> Application:
        number = len(self.applications) + 1
        order = Order(
            containers=containers,
            size=size,
            command="",
            attempts=attempts,
            master_size=Size(1024, 1),
            master_attempts=master_attempts,
        )
        application = Application(id=f"application_7_{number:04d}", order=order, started_ms=0)
        self.applications.append(application)
        self.scheduler.submit(application, self.now)
        return application

    def running_application(self, containers: int, attempts: int = 1, master_attempts: int = 2) -> Application:
        application = self.submit(containers, TASK, attempts, master_attempts)
        self.beats(4)
        assert len(application.running) == containers
        return application

    def resize(self, memory_mb: int, vcores: int, timeout_ms: int, name: str = NODE) -> None:
        update = Update(node_id=name, size=Size(memory_mb, vcores), over_commit_timeout_ms=timeout_ms, custom={})
        self.scheduler.update([update], self.now)

    @property
    def node(self) -> NodeState:
        return self.scheduler.nodes[NODE]


def codes(application: Application) -> list[int]:
    return [ended.exit_code for ended in application.ended]


def numbers(application: Application) -> list[int]:
    return [int(ended.container[-6:]) for ended in application.ended]


def test_a_size_is_in_the_record_at_once_and_in_the_scheduler_later_and_in_between_the_node_is_absent() -> None:
    world = World()
    world.resize(4096, 4, FAR)
    assert (world.node.capability, world.node.total) == (Size(4096, 4), Size(8192, 8))
    world.scheduler.tick(world.now + 0.01)
    assert world.node.total == Size(4096, 4)
    assert world.scheduler.in_table(world.now + 0.01) == []
    assert world.scheduler.in_table(world.now + 0.01 + ABSENT_SECONDS) == [world.node]


def test_changes_come_into_force_one_after_the_other() -> None:
    world = World(nodes=3)
    updates = [Update(node_id=n, size=Size(2048, 2), over_commit_timeout_ms=FAR, custom={}) for n in world.sizes]
    world.scheduler.update(updates, world.now)
    totals = []
    for step in range(4):
        world.scheduler.tick(world.now + 0.01 * step + 0.001)
        totals.append(sum(node.total == Size(2048, 2) for node in world.scheduler.nodes.values()))
    assert totals == [0, 1, 2, 3]


def test_one_unknown_node_spoils_the_batch() -> None:
    world = World()
    updates = [Update(node_id=n, size=Size(2048, 2), over_commit_timeout_ms=0, custom={}) for n in (NODE, "nowhere:1")]
    with pytest.raises(UnknownNode, match="nowhere:1"):
        world.scheduler.update(updates, world.now)
    world.scheduler.tick(world.now + 1)
    assert world.node.capability == world.node.total == Size(8192, 8)


@pytest.mark.parametrize("timeout_ms", [MINUS, FAR])
def test_without_a_timeout_that_ends_nothing_ends_and_no_more_starts(timeout_ms: int) -> None:
    world = World()
    application = world.running_application(4)
    world.resize(2048, 8, timeout_ms)
    world.beats(1)
    other = world.submit(1)
    world.beats(4)
    assert (codes(application), len(application.running), other.master) == ([], 4, None)
    assert world.node.available == Size(2048 - 5 * 1024, 3)
    assert bool(application.warned) is (timeout_ms == FAR)


def test_timeout_zero_ends_the_newest_at_once_and_spares_the_master() -> None:
    world = World()
    application = world.running_application(4)
    world.resize(2048, 8, NOW)
    world.scheduler.tick(world.now + 0.01)
    assert (codes(application), numbers(application)) == ([-102] * 3, [5, 4, 3])
    assert world.node.used == Size(5 * 1024, 5)
    world.beats(1)
    assert world.node.used == Size(5 * 1024, 5)
    world.beats(1)
    assert world.node.used == Size(2048, 2)
    assert codes(application) == [-102] * 3


def test_a_timeout_is_a_warning_first_and_ends_with_the_first_heartbeat_after_it() -> None:
    world = World()
    application = world.running_application(4)
    world.resize(2048, 8, 5000)
    world.beats(5)
    assert (codes(application), len(application.warned)) == ([], 3)
    world.beats(1)
    assert codes(application) == [-102] * 3


def test_a_master_goes_last_and_a_new_attempt_follows_without_being_counted() -> None:
    world = World()
    application = world.running_application(2, attempts=5, master_attempts=1)
    world.resize(1024, 8, NOW)
    world.scheduler.tick(world.now + 1)
    assert application.master is not None
    world.resize(1023, 8, NOW)
    world.scheduler.tick(world.now + 2)
    world.beats(4)
    assert (application.state, application.attempt) == (ApplicationState.RUNNING, 2)
    # What it is given then is no larger than the largest node.
    assert application.master is not None
    assert application.master.size == Size(1023, 1)


def test_the_deadline_trap_a_stored_deadline_makes_a_later_minus_one_end_containers() -> None:
    world = World()
    application = world.running_application(4)
    world.resize(8191, 8, 1000)
    world.beats(3)
    world.resize(8192, 8, MINUS)
    world.beats(3)
    assert codes(application) == []
    world.resize(2048, 8, MINUS)
    world.scheduler.tick(world.now + 0.5)
    assert (codes(application), len(application.warned)) == ([], 3)
    world.beats(1)
    assert codes(application) == [-102] * 3


def test_a_far_timeout_disarms_a_stored_deadline() -> None:
    world = World()
    application = world.running_application(4)
    world.resize(8191, 8, 1000)
    world.beats(3)
    world.resize(2048, 8, FAR)
    world.beats(5)
    assert codes(application) == []
    world.resize(2049, 8, 1000)
    world.beats(3)
    assert codes(application) == [-102] * 3


def test_the_same_size_with_another_timeout_is_ignored() -> None:
    world = World()
    application = world.running_application(4)
    world.resize(2048, 8, FAR)
    world.beats(1)
    world.resize(2048, 8, NOW)
    world.beats(3)
    assert codes(application) == []


def test_vcores_are_taken_back_too() -> None:
    world = World()
    application = world.running_application(4)
    world.resize(8192, 3, NOW)
    world.beats(3)
    assert codes(application) == [-102] * 2


def test_an_old_release_never_ends_and_tells_its_nodes_nothing() -> None:
    world = World(replace(SETTINGS, version="3.2.4"))
    application = world.running_application(4)
    world.resize(2048, 8, NOW)
    world.beats(5)
    assert (codes(application), application.warned) == ([], ())
    assert world.node.total == Size(2048, 8)
    assert world.sizes[NODE] == Size(8192, 8)


def restarted(world: World) -> None:
    """The ResourceManager is killed and comes back: it knows the applications, and nothing of the nodes."""
    world.scheduler = Scheduler(world.settings, world.applications, 1)
    world.now += 5


@pytest.mark.parametrize(
    ("version", "size"), [("3.5.0", Size(2048, 8)), ("3.3.6", Size(2048, 8)), ("3.2.4", Size(8192, 8))]
)
def test_over_a_restart_containers_live_and_new_releases_keep_the_size(version: str, size: Size) -> None:
    world = World(replace(SETTINGS, version=version))
    application = world.running_application(4)
    world.resize(2048, 8, FAR)
    world.beats(2)
    restarted(world)
    assert world.scheduler.heartbeat(NODE, (), world.now) is None
    assert world.register() == ""
    world.beats(3)
    assert (world.node.capability, world.node.total) == (size, size)
    assert (len(application.running), codes(application), world.node.used) == (4, [], Size(5 * 1024, 5))


def test_after_a_restart_new_containers_have_the_next_epoch() -> None:
    world = World()
    application = world.running_application(1)
    restarted(world)
    world.register()
    later = world.running_application(1)
    assert [c.id[:14] for c in application.containers] == ["container_7_00"] * 2
    assert [c.id[:14] for c in later.containers] == ["container_e01_"] * 2


def test_a_node_below_the_minimum_has_to_end_when_it_registers_and_not_before() -> None:
    world = World()
    world.resize(512, 1, FAR)
    world.beats(3)
    assert world.node.total == Size(512, 1)
    restarted(world)
    assert "doesn't satisfy minimum allocations" in world.register()


def test_a_node_manager_that_comes_back_has_its_configured_size_and_its_deadline_stays() -> None:
    world = World()
    application = world.running_application(4)
    world.resize(8191, 8, 1000)
    world.beats(3)
    world.sizes[NODE] = Size(8192, 8)
    assert world.register() == ""
    world.beats(2)
    assert (world.node.total, len(application.running)) == (Size(8192, 8), 4)
    world.resize(2048, 8, MINUS)
    world.beats(2)
    assert codes(application) == [-102] * 3


def test_a_node_without_work_that_comes_back_is_a_new_one() -> None:
    world = World()
    world.resize(8191, 8, 1000)
    world.beats(3)
    world.sizes[NODE] = Size(8192, 8)
    world.register()
    application = world.running_application(4)
    world.resize(2048, 8, MINUS)
    world.beats(3)
    assert codes(application) == []


def test_a_silent_node_is_lost_with_its_containers_and_cannot_be_resized() -> None:
    world = World(replace(SETTINGS, expiry_seconds=10))
    application = world.running_application(2, attempts=2)
    world.now += 11
    world.scheduler.tick(world.now)
    assert (world.node.state, world.node.web, application.running) == ("LOST", "", frozenset())
    with pytest.raises(UnknownNode):
        world.resize(2048, 2, FAR)
    assert world.scheduler.heartbeat(NODE, (), world.now) is None
    world.running[NODE].clear()
    assert world.register() == ""
    world.beats(4)
    assert len(application.running) == 2


def test_a_task_that_was_taken_back_runs_again_while_it_has_attempts() -> None:
    world = World()
    application = world.running_application(4, attempts=2)
    world.resize(2048, 8, NOW)
    world.beats(3)
    assert (codes(application), application.pending) == ([-102] * 3, 3)
    world.resize(8192, 8, FAR)
    world.beats(3)
    assert (len(application.running), application.pending) == (4, 0)


def test_the_first_in_the_queue_waits_for_room_before_the_others() -> None:
    world = World()
    world.running_application(6)
    large = world.submit(1, Size(2048, 1))
    small = world.submit(1)
    world.beats(3)
    assert (large.pending, large.master is not None, small.master) == (1, True, None)
