from collections.abc import Mapping

from plugins.yarn.tests.proc_fakes import NODE_ID, container

from fallow_hookspecs import Process, TaskState
from fallow_yarn.errors import YarnError
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.model.size import Size
from fallow_yarn.nm.containers import Answer, Container, Listing
from fallow_yarn.nm.procfs import Stat
from fallow_yarn.tasks.container_tracking import Observation, TrackedContainers, tracked
from fallow_yarn.tasks.process_tree import Processes

ONE, TWO, THREE = container(1), container(2), container(3)
SECOND = "worker-1:45455"
OWN = (NODE_ID, SECOND)
ASKED_TICKS = 5000
SILENT = YarnError("it did not answer")


def listed(container_id: str, state: TaskState = TaskState.RUNNING, *, is_done: bool = False) -> Container:
    parsed = ContainerId.parse(container_id)
    assert parsed is not None
    return Container(id=parsed, user="al", state=state, requested=Size(512, 1), is_done=is_done)


def listing(*containers: Container, unreadable: int = 0) -> Listing:
    return Listing(containers={each.id.text: each for each in containers}, unreadable=unreadable)


def processes(*container_ids: str, start: int = 100) -> dict[str, Processes]:
    stat = Stat(Process(7, start), 1, 7, True)
    return dict.fromkeys(container_ids, Processes(members=(stat,), roots=(stat,)))


def look(
    before: TrackedContainers,
    answers: Mapping[str, Answer],
    found: Mapping[str, Processes],
    at: float = 10.0,
    node_of: str = NODE_ID,
) -> TrackedContainers:
    now = Observation(answers=answers, found=found, at=at, ticks=ASKED_TICKS, node_of=lambda _found: node_of)
    return tracked(before, now, OWN)


def states(seen: TrackedContainers) -> dict[str, TaskState]:
    return {container_id: entry.container.state for container_id, entry in seen.entries.items()}


def test_what_is_listed_is_seen_with_its_node() -> None:
    answers = {NODE_ID: listing(listed(ONE)), SECOND: listing(listed(TWO, TaskState.STARTING))}
    seen = look(TrackedContainers(), answers, processes(ONE))
    assert states(seen) == {ONE: TaskState.RUNNING, TWO: TaskState.STARTING}
    assert {i: (e.node_id, e.had_processes, e.is_sized) for i, e in seen.entries.items()} == {
        ONE: (NODE_ID, True, True),
        TWO: (SECOND, False, True),
    }
    assert (seen.problems, seen.asked_at) == ((), {NODE_ID: 10.0, SECOND: 10.0})


def test_what_has_ended_is_left_out_unless_it_left_processes() -> None:
    done = listing(listed(ONE, TaskState.TERMINATING, is_done=True), listed(TWO, TaskState.TERMINATING, is_done=True))
    assert states(look(TrackedContainers(), {NODE_ID: done}, processes(TWO))) == {TWO: TaskState.TERMINATING}


def test_a_container_ends_since_it_was_first_seen_to() -> None:
    first = look(TrackedContainers(), {NODE_ID: listing(listed(ONE), listed(TWO))}, {}, at=1.0)
    assert first.entries[ONE].ending_since is None
    ending = {NODE_ID: listing(listed(ONE, TaskState.TERMINATING), listed(TWO))}
    second = look(first, ending, {}, at=2.0)
    third = look(second, ending, {}, at=3.0)
    assert [seen.entries[ONE].ending_since for seen in (second, third)] == [2.0, 2.0]
    assert third.entries[TWO].ending_since is None


def test_a_node_manager_that_does_not_answer_keeps_what_it_listed_but_for_what_lost_its_processes() -> None:
    starting = listed(THREE, TaskState.STARTING)
    first = look(
        TrackedContainers(), {NODE_ID: listing(listed(ONE), listed(TWO), starting)}, processes(ONE, TWO), at=1.0
    )
    second = look(first, {NODE_ID: SILENT}, processes(ONE), at=2.0)
    assert states(second) == {ONE: TaskState.RUNNING, THREE: TaskState.STARTING}
    assert (second.problems, second.asked_at) == (("it did not answer",), {NODE_ID: 1.0})
    third = look(second, {NODE_ID: SILENT}, processes(ONE, THREE), at=3.0)
    assert states(third) == {ONE: TaskState.RUNNING, THREE: TaskState.STARTING}
    assert states(look(third, {NODE_ID: SILENT}, {})) == {}


def test_a_node_manager_that_does_not_answer_keeps_nothing_of_another_one() -> None:
    first = look(TrackedContainers(), {NODE_ID: listing(listed(ONE)), SECOND: listing(listed(TWO))}, {})
    assert states(look(first, {NODE_ID: SILENT, SECOND: listing()}, {})) == {ONE: TaskState.RUNNING}


def test_one_that_never_answered_lists_what_has_processes() -> None:
    seen = look(TrackedContainers(), {NODE_ID: SILENT}, processes(ONE))
    entry = seen.entries[ONE]
    assert (entry.node_id, entry.container.requested, entry.is_sized) == (NODE_ID, Size(0, 0), False)
    assert seen.problems[0] == "it did not answer"
    assert f"{ONE} still runs" in seen.problems[1]
    assert seen.asked_at == {NODE_ID: 10.0}


def test_a_container_that_its_node_manager_forgot_runs_on_with_what_it_requested() -> None:
    first = look(TrackedContainers(), {NODE_ID: listing(listed(ONE))}, processes(ONE))
    second = look(first, {NODE_ID: listing()}, processes(ONE))
    assert states(second) == {ONE: TaskState.RUNNING}
    assert second.entries[ONE].container.requested == Size(512, 1)
    assert second.problems == ()
    assert states(look(second, {NODE_ID: listing()}, {})) == {}


def test_what_a_finished_container_left_behind_runs_on_when_its_entry_is_gone() -> None:
    first = look(
        TrackedContainers(), {NODE_ID: listing(listed(ONE, TaskState.TERMINATING, is_done=True))}, processes(ONE)
    )
    second = look(first, {NODE_ID: listing()}, processes(ONE))
    assert states(second) == {ONE: TaskState.RUNNING}
    assert second.entries[ONE].ending_since is None


def test_containers_of_a_node_manager_that_has_ended_stay_while_they_have_processes() -> None:
    first = look(TrackedContainers(), {NODE_ID: listing(), SECOND: listing(listed(ONE))}, processes(ONE))
    second = look(first, {NODE_ID: listing()}, processes(ONE))
    assert second.entries[ONE].node_id == SECOND


def test_a_container_that_nobody_listed_is_ours_only_if_one_of_our_node_managers_started_it() -> None:
    assert look(TrackedContainers(), {NODE_ID: listing()}, processes(ONE), node_of="worker-1:9").entries == {}
    assert look(TrackedContainers(), {NODE_ID: listing()}, processes(ONE), node_of="").entries == {}
    assert (
        look(TrackedContainers(), {NODE_ID: listing()}, processes(ONE), node_of=SECOND).entries[ONE].node_id == SECOND
    )


def test_a_container_that_started_after_the_question_is_no_leftover() -> None:
    assert look(TrackedContainers(), {NODE_ID: listing()}, processes(ONE, start=ASKED_TICKS)).entries == {}


def test_entries_that_could_not_be_read_are_told() -> None:
    seen = look(TrackedContainers(), {NODE_ID: listing(listed(ONE), unreadable=2)}, {})
    assert seen.problems == (f"{NODE_ID}: 2 entries of its list of containers are not readable",)
