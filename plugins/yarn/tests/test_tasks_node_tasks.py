from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from plugins.yarn.tests.proc_fakes import NM, NODE_ID, NOW_TICKS, YOUNG_TICKS, FakeProc, container, environment_of
from plugins.yarn.tests.yarn_fakes import Clock

from fallow_hookspecs import KillAnswer, KillOrder, KillResult, Resources, Task, TaskRole, TaskState
from fallow_yarn.errors import YarnError
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.nm.containers import Answer, Container, Listing, Listings
from fallow_yarn.nm.procfs import TICKS_PER_SECOND
from fallow_yarn.security.access import Access
from fallow_yarn.tasks import node_tasks
from fallow_yarn.tasks.node_tasks import NodeTasks, TaskListing

MASTER, ONE = container(1), container(2)
ADDRESSES = {NODE_ID: "worker-1:8042"}
MIB = 1 << 20


def entry(container_id: str, state: TaskState = TaskState.RUNNING, **more: bool) -> Container:
    parsed = ContainerId.parse(container_id)
    assert parsed is not None
    return Container(id=parsed, user="al", state=state, requested=Size(256, 3), **more)


@dataclass
class Host:
    """A node whose NodeManager answers `answer`, after `takes_seconds`."""

    proc: FakeProc
    clock: Clock = field(default_factory=Clock)
    answer: Answer = field(default_factory=lambda: Listing(containers={}))
    takes_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.tasks = NodeTasks(Access.simple("yarn"), 500, self.clock, lambda: NOW_TICKS, self.proc.root)

    def list(self, addresses: Mapping[str, str] = ADDRESSES, *masters: str) -> TaskListing:
        return self.tasks.list(addresses, [NODE_ID], Deadline.after(5, self.clock), masters)

    def roles(self, *masters: str) -> dict[str, TaskRole]:
        """What each container is, where these are known to be masters."""
        return {task.id: task.role for task in self.list(ADDRESSES, *masters).tasks}

    def task(self) -> Task:
        (task,) = self.list().tasks
        return task

    def end(self, *task_ids: str) -> Mapping[str, KillAnswer]:
        order = KillOrder(task_ids=task_ids, reason="memory is short")
        return self.tasks.terminate(order, ADDRESSES, Deadline.after(5, self.clock))

    def lists(self, container_id: str, state: TaskState = TaskState.RUNNING, **more: bool) -> None:
        self.answer = Listing(containers={container_id: entry(container_id, state, **more)})

    def lists_all(self, *container_ids: str) -> None:
        self.answer = Listing(containers={container_id: entry(container_id) for container_id in container_ids})


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(FakeProc(tmp_path))

    def ask(
        addresses: Mapping[str, str], access: Access, deadline: Deadline, _: Listings | None = None
    ) -> Mapping[str, Answer]:
        assert (access.user, deadline.at) == ("yarn", host.clock.now + 5)
        host.clock.now += host.takes_seconds
        return dict.fromkeys(addresses, host.answer)

    monkeypatch.setattr(node_tasks, "ask", ask)
    return host


def test_a_container_is_a_task_with_its_request_in_the_units_of_the_contract(host: Host) -> None:
    host.lists(ONE, opportunistic=True)
    root = host.proc.launch(601, ONE)
    host.proc.add(601, parent=600, cgroups=[f"1:cpu:/yarn/{ONE}", "0::/"])
    listed = host.list()
    assert listed.tasks == (
        Task(
            id=ONE,
            application_id="application_1700000000000_0001",
            framework_node=NODE_ID,
            state=TaskState.RUNNING,
            requested=Resources(1500, 256 * MIB),
            age_seconds=(NOW_TICKS - YOUNG_TICKS) / TICKS_PER_SECOND,
            opportunistic=True,
            cgroups=(f"yarn/{ONE}",),
            processes=(root,),
        ),
    )
    assert (listed.problems, listed.age_seconds, listed.node_managers) == ((), 0.0, (NM,))


def test_the_first_container_of_an_attempt_passes_for_the_master(host: Host) -> None:
    host.lists(MASTER)
    assert host.task().role is TaskRole.MASTER


def test_a_master_is_known_by_its_id_where_its_application_is(host: Host) -> None:
    """A first container may be a worker's (the master runs elsewhere), and a master the second (of a reservation)."""
    other = container(1, application=2)
    host.lists_all(MASTER, ONE, other)
    assert host.roles(ONE, container(5, application=2)) == {
        MASTER: TaskRole.WORKER,
        ONE: TaskRole.MASTER,
        other: TaskRole.WORKER,
    }


def test_containers_that_are_kept_from_an_earlier_attempt_are_workers(host: Host) -> None:
    kept, kept_first, now = container(2), container(1), container(1, attempt=2)
    host.lists_all(kept, kept_first, now)
    assert host.roles(now) == {kept: TaskRole.WORKER, kept_first: TaskRole.WORKER, now: TaskRole.MASTER}


def test_the_first_container_of_an_attempt_that_is_newer_than_what_is_known_passes_for_the_master(host: Host) -> None:
    old, new = container(1), container(1, attempt=2)
    host.lists_all(old, new)
    assert host.roles(old) == {old: TaskRole.MASTER, new: TaskRole.MASTER}


def test_a_master_whose_id_makes_no_sense_tells_nothing(host: Host) -> None:
    host.lists_all(MASTER)
    assert host.roles("container_x") == {MASTER: TaskRole.MASTER}


def test_a_container_over_its_request_still_counts_with_that_and_with_its_processes(host: Host) -> None:
    """What it uses is measured by core, from its cgroup or its processes, and is no matter of the list."""
    host.lists(ONE)
    root = host.proc.launch(601, ONE)
    host.proc.add(602, parent=601)
    task = host.task()
    assert (task.requested, task.processes) == (Resources(1500, 256 * MIB), (root,))


def test_a_localizer_is_no_process_of_the_container_that_it_fetches_for(host: Host) -> None:
    host.lists(ONE, TaskState.STARTING)
    command = ["java", "org.apache.hadoop.yarn.server.nodemanager.containermanager.localizer.ContainerLocalizer", ONE]
    host.proc.add(600, parent=NM.pid, session=NM.pid, user=1001, command=command)
    host.proc.add(601, parent=600, session=NM.pid, user=1001, command=["tar", "-xf", f"/cache/{ONE}/a.tar"])
    assert host.task().processes == ()
    assert host.end(ONE)[ONE].reason == "it is starting, and has no process yet that could be signalled"


def test_a_container_of_another_user_is_found_by_what_started_it(host: Host) -> None:
    host.lists(ONE)
    command = ["/opt/container-executor", "al", "yarn", "1", "application_1700000000000_0001", ONE, "cgroups=none"]
    host.proc.add(600, parent=NM.pid, session=NM.pid, command=command)
    root = host.proc.add(601, parent=600, user=1001)  # its environment may not be read
    assert host.task().processes == (root,)


def test_a_container_that_starts_has_no_process_and_no_age(host: Host) -> None:
    host.lists(ONE, TaskState.STARTING)
    task = host.task()
    assert (task.state, task.age_seconds, task.processes, task.cgroups) == (TaskState.STARTING, None, (), ())


def test_a_container_ends_for_as_long_as_it_was_seen_to(host: Host) -> None:
    host.lists(ONE, TaskState.TERMINATING)
    assert host.task().terminating_age_seconds == 0.0
    host.clock.now += 3
    assert host.task().terminating_age_seconds == 3.0


def test_the_age_of_a_list_counts_from_the_question_and_grows_while_there_is_no_answer(host: Host) -> None:
    host.lists(ONE)
    host.takes_seconds = 1.5
    assert host.list().age_seconds == 1.5
    host.answer = YarnError("it did not answer")
    host.clock.now += 10
    listed = host.list()
    assert ([task.id for task in listed.tasks], listed.age_seconds) == ([ONE], 1.5 + 10 + 1.5)
    assert listed.problems == ("it did not answer",)


def test_without_a_node_manager_there_is_nothing_to_list(host: Host) -> None:
    listed = host.list({})
    assert (listed.tasks, listed.problems, listed.age_seconds) == ((), (), 0.0)


def test_a_container_that_was_never_listed_is_found_by_its_environment(host: Host) -> None:
    root = host.proc.add(700, parent=1, environment=environment_of(ONE))
    other = container(9)
    host.proc.add(710, parent=1, environment=environment_of(other, "worker-1:9"))
    task = host.task()
    assert (task.id, task.framework_node, task.processes) == (ONE, NODE_ID, (root,))
    assert task.requested == Resources(0, 0)
    assert ONE in host.list().problems[0]


@pytest.mark.parametrize(
    ("state", "is_done", "result", "words"),
    [
        (TaskState.STARTING, False, KillResult.FAILED, "has no process yet"),
        (TaskState.RUNNING, False, KillResult.NO_ACCESS, "none of its processes is visible"),
        (TaskState.TERMINATING, False, KillResult.TERMINATING, ""),
        (TaskState.TERMINATING, True, KillResult.ALREADY_GONE, ""),
    ],
)
def test_what_has_no_process_here_is_what_its_node_manager_says(
    host: Host, state: TaskState, is_done: bool, result: KillResult, words: str
) -> None:
    host.lists(ONE, state, is_done=is_done)
    answer = host.end(ONE)[ONE]
    assert answer.result is result
    assert words in answer.reason


def test_a_container_is_gone_only_if_a_complete_list_says_so(host: Host) -> None:
    assert host.end(ONE)[ONE] == KillAnswer(result=KillResult.ALREADY_GONE)
    host.answer = Listing(containers={}, unreadable=1)
    assert host.end(ONE)[ONE].result is KillResult.FAILED
    host.answer = YarnError("it did not answer")
    answer = host.end(ONE)[ONE]
    assert (answer.result, answer.reason) == (
        KillResult.FAILED,
        "it has no process here, and it is unknown whether it exists: it did not answer",
    )


def test_without_a_node_manager_to_ask_nothing_is_gone(host: Host) -> None:
    order = KillOrder(task_ids=(ONE,), reason="memory is short")
    answer = host.tasks.terminate(order, {}, Deadline.after(5, host.clock))[ONE]
    assert answer.result is KillResult.FAILED
    assert "no NodeManager of this node is known" in answer.reason


def test_each_container_of_an_order_has_an_answer(host: Host) -> None:
    ids = [container(number) for number in range(2, 6)]
    assert host.end(*ids, *ids).keys() == set(ids)


def test_places_are_those_of_the_newest_list(host: Host) -> None:
    assert host.tasks.placement("batch").tasks == ()
    host.lists(ONE)
    root = host.proc.launch(601, ONE)
    host.list()
    (place,) = host.tasks.placement("batch").tasks
    assert (place.task_id, place.movable) == (ONE, (root,))
