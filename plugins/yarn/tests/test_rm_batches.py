from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_yarn.errors import (
    ConnectionLostError,
    DeadlineError,
    StandbyError,
    UnknownNodeError,
    UnreachableError,
    YarnError,
)
from fallow_yarn.ipc.connection import Finish
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import NodeUpdate, UpdateAnswer
from fallow_yarn.rm.batches import update_in_batches
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.security.access import Access

LATER = Deadline(0.0, clock=lambda: 0.0)
LOST = ConnectionLostError("gone", maybe_sent=True)
REFUSED = UnreachableError("refused")


class Manager(ResourceManager):
    """Notes what is asked of it. A portion fails when it is begun or finished if its first node is named for that.

    `again` is the error of `update`, and `refused` has those of single updates of it.
    """

    def __init__(self) -> None:
        super().__init__(
            ResourceManager.at(client="h:1", admin="h:2", web="h:3", user="me").addresses, Access.simple("me")
        )
        self.asked: list[str] = []
        self.failing_begin: dict[str, YarnError] = {}
        self.failing_finish: dict[str, YarnError] = {}
        self.again: YarnError | None = None
        self.refused: dict[str, YarnError] = {}

    def begin(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> Finish:
        first, *_ = names = [update.node_id for update in updates]
        self.asked.append(f"begin {' '.join(names)}")
        if first in self.failing_begin:
            raise self.failing_begin[first]

        def finish() -> bytes:
            self.asked.append(f"finish {first}")
            if first in self.failing_finish:
                raise self.failing_finish[first]
            return b""

        return finish

    def update(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> tuple[UpdateAnswer, ...]:
        self.asked.append(f"update {' '.join(update.node_id for update in updates)}")
        if self.again is not None:
            raise self.again
        return tuple(UpdateAnswer(node_id=u.node_id, error=self.refused.get(u.node_id)) for u in updates)


def portions(*names: str) -> list[list[NodeUpdate]]:
    return [[NodeUpdate(node_id=f"{name}:1", size=Size(1024, 1)) for name in portion] for portion in names]


def errors(manager: Manager, *names: str) -> dict[str, YarnError | None]:
    """What became of each update; each is told once."""
    answers = list(update_in_batches(manager, portions(*names), LATER))
    assert sorted(answer.node_id for answer in answers) == sorted(f"{name}:1" for name in "".join(names))
    return {answer.node_id[0]: answer.error for answer in answers}


def test_a_portion_is_asked_for_when_the_one_before_was_sent_and_nothing_is_waited_for_until_all_were() -> None:
    manager = Manager()

    def made() -> Iterator[list[NodeUpdate]]:
        for number, portion in enumerate(portions("ab", "c", "d")):
            manager.asked.append(f"make {number}")
            yield portion

    answers = update_in_batches(manager, made(), LATER)
    assert next(answers) == UpdateAnswer(node_id="a:1", error=None)
    sent = ["make 0", "begin a:1 b:1", "make 1", "begin c:1", "make 2", "begin d:1"]
    assert manager.asked == [*sent, "finish a:1"]
    assert [answer.node_id for answer in answers] == ["b:1", "c:1", "d:1"]
    assert manager.asked == [*sent, "finish a:1", "finish c:1", "finish d:1"]


def test_without_an_update_nothing_is_asked() -> None:
    manager = Manager()
    assert errors(manager, "", "") == {}
    assert manager.asked == []


@pytest.mark.parametrize("failure", [UnknownNodeError("unknown", node="c:1"), LOST, StandbyError("standby")])
def test_portions_that_are_not_taken_are_sent_again_in_one_call_after_the_others_were_answered(
    failure: YarnError,
) -> None:
    manager = Manager()
    manager.failing_finish = {"b:1": failure, "d:1": failure}
    unknown = UnknownNodeError("unknown", node="c:1")
    manager.refused = {"c:1": unknown}
    assert errors(manager, "a", "bc", "d", "e") == {"a": None, "b": None, "c": unknown, "d": None, "e": None}
    assert manager.asked[-1] == "update b:1 c:1 d:1"
    assert not unknown.maybe_sent


def test_after_one_that_could_not_be_sent_no_other_is_tried() -> None:
    manager = Manager()
    manager.failing_begin = {"b:1": REFUSED}
    assert errors(manager, "a", "b", "c") == {"a": None, "b": None, "c": None}
    assert manager.asked == ["begin a:1", "begin b:1", "finish a:1", "update b:1 c:1"]


@pytest.mark.parametrize(("first", "maybe_sent"), [(LOST, True), (StandbyError("standby"), False)])
def test_if_nothing_was_taken_the_last_error_is_raised_and_says_whether_anything_may_have_arrived(
    first: YarnError, maybe_sent: bool
) -> None:
    manager = Manager()
    manager.failing_finish = {"a:1": first}
    manager.again = UnreachableError("refused")
    with pytest.raises(UnreachableError) as caught:
        errors(manager, "ab")
    assert caught.value.maybe_sent is maybe_sent


def test_if_something_was_taken_the_error_is_the_answer_for_the_others() -> None:
    manager = Manager()
    manager.failing_finish = {"b:1": LOST}
    manager.again = DeadlineError("late")
    assert errors(manager, "a", "b") == {"a": None, "b": manager.again}
    assert manager.again.maybe_sent


def test_one_that_is_answered_as_not_sent_may_have_been_sent_before() -> None:
    manager = Manager()
    manager.failing_finish = {"a:1": LOST}
    manager.refused = {"b:1": YarnError("not sent")}
    assert errors(manager, "ab")["b"] is manager.refused["b:1"]
    assert manager.refused["b:1"].maybe_sent


@given(st.sets(st.sampled_from("abcd")), st.sets(st.sampled_from("abcd")))
def test_whatever_fails_on_the_way_every_update_is_accepted_in_the_end(begin: set[str], finish: set[str]) -> None:
    manager = Manager()
    manager.failing_begin = {f"{name}:1": UnreachableError("refused") for name in begin}
    manager.failing_finish = {f"{name}:1": ConnectionLostError("gone", maybe_sent=True) for name in finish}
    assert errors(manager, "a", "b", "c", "d") == dict.fromkeys("abcd")
