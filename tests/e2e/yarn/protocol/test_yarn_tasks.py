"""Listing, termination and taking back single containers of an embedded and of a real NodeManager."""

import getpass
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from tests.e2e.yarn import rest
from tests.e2e.yarn.protocol.clusters import MASTER_MB, App, Shape, Yarn
from tests.e2e.yarn.protocol.conftest import StartYarn
from tests.e2e.yarn.rest import wait_for

from fallow_hookspecs import (
    ClusterConfig,
    KillAnswer,
    KillOrder,
    KillResult,
    Node,
    Offer,
    OfferAnswer,
    Refusal,
    Resources,
    Role,
    Task,
    TaskList,
    TaskRole,
    TaskState,
)
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.settings.config import YarnSpec

MIB = 1 << 20
NODE = Node(name="here", addresses=("localhost", "127.0.0.1"))
TASK_MB, TASKS = 256, 3
BOTH = frozenset(Role)
SLEEP = "exec sleep 600"
STUBBORN = "trap '' TERM; while :; do sleep 1; done"


@pytest.fixture(scope="module")
def cluster(start_yarn: StartYarn) -> Yarn:
    return start_yarn(Shape(memory_mb=4096, vcores=8))


@pytest.fixture
def yarn(cluster: Yarn) -> Iterator[YarnInstance]:
    """An instance that has reported once; in the end all containers are terminated, so that the next test has the
    node.
    """
    made = instance(cluster.rm)
    made.report_capacity((NODE,), (), 10.0)
    yield made
    kill(made, *(task.id for task in listed(made).tasks), force=True)
    wait_for(lambda: listed(made).complete and not listed(made).tasks, 30, "the end of all containers")
    made.close()


class Addresses(Protocol):
    """Where a ResourceManager listens."""

    @property
    def client(self) -> str: ...
    @property
    def admin(self) -> str: ...
    @property
    def web(self) -> str: ...


def instance(rm: Addresses, roles: frozenset[Role] = BOTH) -> YarnInstance:
    addresses = {"host": "localhost", "client": rm.client, "admin": rm.admin, "web": rm.web}
    spec = YarnSpec.model_validate({"resourceManager": addresses, "user": getpass.getuser()})
    return YarnInstance(ClusterConfig(name="etl", roles=roles, spec=spec))


def submit(cluster: Yarn, command: str = SLEEP, containers: int = TASKS) -> App:
    """An application all of whose containers run."""
    app = cluster.submit(containers, TASK_MB, 1, command)
    wait_for(lambda: len(app.running()) == containers, 60, "the containers")
    return app


def listed(yarn: YarnInstance) -> TaskList:
    return yarn.list_tasks(NODE, 5.0)


def tasks_of(yarn: YarnInstance, app: App) -> dict[str, Task]:
    return {task.id: task for task in listed(yarn).tasks if task.application_id == app.app_id}


def workers_of(yarn: YarnInstance, app: App) -> list[str]:
    return sorted(task.id for task in tasks_of(yarn, app).values() if task.role is TaskRole.WORKER)


def kill(yarn: YarnInstance, *task_ids: str, force: bool = False) -> dict[str, KillAnswer]:
    order = KillOrder(task_ids=task_ids, reason="memory of this host is short", force=force)
    return dict(yarn.kill_tasks(NODE, order, 5.0).answers)


def environment(pid: int) -> set[bytes]:
    return set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))


def test_containers_are_listed_with_their_requests_and_leaders_and_the_master_is_known(
    cluster: Yarn, yarn: YarnInstance
) -> None:
    app = submit(cluster)
    tasks = listed(yarn)
    assert (tasks.complete, tasks.incomplete_reason) == (True, "")
    assert [daemon.process.pid for daemon in tasks.daemons] == [cluster.nodes["nm1"].pid]
    assert {task.framework_node for task in tasks.tasks} == {cluster.nodes["nm1"].node_id}
    assert {task.state for task in tasks.tasks} == {TaskState.RUNNING}
    by_role = {role: [task for task in tasks.tasks if task.role is role] for role in TaskRole}
    assert {task.id for task in by_role[TaskRole.WORKER]} == app.running()
    assert {task.requested for task in by_role[TaskRole.WORKER]} == {Resources(1000, TASK_MB * MIB)}
    (master,) = by_role[TaskRole.MASTER]
    assert master.requested == Resources(1000, MASTER_MB * MIB)
    for task in tasks.tasks:
        (leader,) = task.processes
        assert f"CONTAINER_ID={task.id}".encode() in environment(leader.pid)
        assert task.age_seconds is not None
        assert 0 <= task.age_seconds < 120
        assert task.cgroups == ()

    (application,) = yarn.report_capacity((NODE,), (), 10.0).applications
    assert (application.id, application.master_task_ids) == (app.app_id, (master.id,))
    assert (application.name, application.kind) == ("sleep", "YARN")
    assert application.queue.rpartition(".")[2] == "default"  # from 3.4 on with its path
    assert (application.user, application.priority) == (rest.USER, 0)
    assert application.progress is not None
    assert 0 <= application.progress < 1


def test_one_container_ends_by_term_and_one_by_kill_and_nothing_else_does(cluster: Yarn, yarn: YarnInstance) -> None:
    app = submit(cluster, containers=4)
    first, second, *others = workers_of(yarn, app)
    assert kill(yarn, first) == {first: KillAnswer(result=KillResult.TERMINATING)}
    assert kill(yarn, second, force=True) == {second: KillAnswer(result=KillResult.TERMINATING)}
    wait_for(lambda: len(app.exits()) == 2, 30, "the ends")
    assert app.exits() == {first: 143, second: 137}
    wait_for(lambda: workers_of(yarn, app) == others, 30, "a list without them")
    assert kill(yarn, first, second) == dict.fromkeys([first, second], KillAnswer(result=KillResult.ALREADY_GONE))
    assert app.exits() == {first: 143, second: 137}


def test_a_container_that_ignores_term_lives_on_until_it_is_forced(cluster: Yarn, yarn: YarnInstance) -> None:
    app = submit(cluster, STUBBORN, containers=1)
    (stubborn,) = workers_of(yarn, app)
    for _ in range(2):
        assert kill(yarn, stubborn)[stubborn].result is KillResult.TERMINATING
    assert tasks_of(yarn, app)[stubborn].state is TaskState.RUNNING
    kill(yarn, stubborn, force=True)
    wait_for(lambda: app.exits() == {stubborn: 137}, 30, "its end")


@pytest.mark.parametrize(("force", "code"), [(False, 143), (True, 137)])
def test_the_controller_ends_a_container_through_the_resource_manager(
    cluster: Yarn, yarn: YarnInstance, force: bool, code: int
) -> None:
    app = submit(cluster, containers=2)
    first, second = workers_of(yarn, app)
    controller = instance(cluster.rm, frozenset({Role.CONTROLLER}))
    absent = second[:-6] + "000999"
    answers = kill(controller, first, absent, force=force)
    assert answers[first] == KillAnswer(result=KillResult.TERMINATING)
    assert answers[absent].result is KillResult.NO_ACCESS
    assert "absent container" in answers[absent].reason
    wait_for(lambda: app.exits() == {first: code}, 30, "its end")
    controller.close()


def test_a_node_manager_that_does_not_answer_is_no_empty_list_and_its_containers_can_be_ended(
    cluster: Yarn, yarn: YarnInstance
) -> None:
    app = submit(cluster)
    nm = cluster.nodes["nm1"]
    before = tasks_of(yarn, app)
    victim = workers_of(yarn, app)[0]
    assert nm.process is not None
    nm.process.send_signal(signal.SIGSTOP)
    try:
        tasks = listed(yarn)
        assert not tasks.complete
        assert "time given was over" in tasks.incomplete_reason
        assert {task.id for task in tasks.tasks} == before.keys()
        assert tasks.age_seconds > 1
        assert kill(yarn, victim, force=True)[victim].result is KillResult.TERMINATING
        wait_for(lambda: victim not in tasks_of(yarn, app), 30, "a list without it")
        assert tasks_of(yarn, app).keys() == before.keys() - {victim}
    finally:
        nm.process.send_signal(signal.SIGCONT)
    wait_for(lambda: app.exits() == {victim: 137}, 30, "its end")


def test_containers_outlive_a_killed_node_manager_in_the_list_also_for_an_instance_that_knows_nothing(
    cluster: Yarn, yarn: YarnInstance
) -> None:
    app = submit(cluster)
    before = tasks_of(yarn, app)
    cluster.kill("nm1")
    assert tasks_of(yarn, app).keys() == before.keys()
    fresh = instance(cluster.rm)
    fresh.report_capacity((NODE,), (), 10.0)
    tasks = fresh.list_tasks(NODE, 5.0)
    assert not tasks.complete
    assert {task.id: task.processes for task in tasks.tasks} == {i: task.processes for i, task in before.items()}
    assert {task.requested for task in tasks.tasks} == {Resources(0, 0)}
    fresh.close()
    cluster.start("nm1")
    yarn.report_capacity((NODE,), (), 10.0)
    wait_for(lambda: listed(yarn).complete, 30, "a complete list")
    assert tasks_of(yarn, app).keys() == before.keys()


def test_containers_without_cgroups_may_be_moved(cluster: Yarn, yarn: YarnInstance) -> None:
    app = submit(cluster, "sleep 600 & sleep 601")
    tasks = tasks_of(yarn, app)
    workers = set(workers_of(yarn, app))

    def children_are_movable() -> bool:
        places = yarn.set_cgroup_parent(NODE, "batch/yarn").tasks
        return all(len(place.movable) > 1 for place in places if place.task_id in workers)

    wait_for(children_are_movable, 20, "the children of the containers' first processes")
    placement = yarn.set_cgroup_parent(NODE, "batch/yarn")
    assert not placement.new_tasks_follow
    assert {place.task_id: place.cgroups for place in placement.tasks} == dict.fromkeys(tasks, ())
    for place in placement.tasks:
        assert set(tasks[place.task_id].processes) <= set(place.movable)
        for process in place.movable:
            assert f"CONTAINER_ID={place.task_id}".encode() in environment(process.pid)


def offer(yarn: YarnInstance, cluster: Yarn, memory_mb: int, **take_back: int) -> OfferAnswer:
    """Offer all vcores and so much memory to the NodeManager."""
    total = Resources(8000, memory_mb * MIB)
    node_id = cluster.nodes["nm1"].node_id
    one = Offer(node=NODE.name, framework_node=node_id, total=total, take_back=take_back)  # type: ignore[arg-type]
    (answer,) = yarn.report_capacity((NODE,), (one,), 10.0).answers
    assert answer.accepted in (total, None)
    return answer


def test_a_take_back_at_the_size_in_force_ends_the_newest_and_a_drain_before_it_nothing(
    cluster: Yarn, yarn: YarnInstance
) -> None:
    if not yarn.report_capacity((NODE,), (), 10.0).capabilities.memory.takes_back:
        assert offer(yarn, cluster, 1024, memory=2048 * MIB).refusal is Refusal.BAD_VALUE
        pytest.skip("this release takes nothing back")
    app = submit(cluster)
    small = MASTER_MB + TASK_MB
    offer(yarn, cluster, small)
    wait_for(lambda: rest.nodes(cluster.rm.web)[cluster.nodes["nm1"].node_id].total_mb == small, 20, "the small size")
    assert app.exits() == {}
    offer(yarn, cluster, small, memory=small * MIB)
    wait_for(lambda: len(app.exits()) == 2, 30, "the ends")
    assert set(app.exits().values()) == {-102}
    wait_for(lambda: len(workers_of(yarn, app)) == 1, 30, "a list without them")
    offer(yarn, cluster, 4096)
