from collections.abc import Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_yarn.errors import (
    AccessDeniedError,
    ConnectionLostError,
    UnknownNodeError,
    UnreachableError,
    YarnError,
)
from fallow_yarn.ipc.protos import yarn_pb2
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import FAR_TIMEOUT_MS, NodeUpdate, UpdateAnswer, send, update_node_resources
from fallow_yarn.rm.nodes import CustomResource

LATER = Deadline(0.0, clock=lambda: 0.0)


class ResourceManager:
    """Takes a batch whole or, if it knows one of its nodes not, not at all; the error names one, or none."""

    def __init__(self, known: Collection[str], *, names_one: bool = True, has_list: bool = True) -> None:
        self.known = set(known)
        self.names_one = names_one
        self.has_list = has_list
        self.calls: list[list[str]] = []
        self.sizes: dict[str, Size] = {}
        self.failures: dict[int, YarnError] = {}  # by number of call

    def call(self, method: str, argument: bytes, _deadline: Deadline) -> bytes:
        assert method == "updateNodeResource"
        request = yarn_pb2.UpdateNodeResourceRequest()
        request.ParseFromString(argument)
        ids = [f"{entry.node_id.host.decode()}:{entry.node_id.port}" for entry in request.nodes]
        self.calls.append(ids)
        if len(self.calls) in self.failures:
            raise self.failures[len(self.calls)]
        if unknown := sorted(set(ids) - self.known):
            raise UnknownNodeError("unrecognized node", node=unknown[0] if self.names_one else None)
        for node_id, entry in zip(ids, request.nodes, strict=True):
            assert entry.option.over_commit_timeout > 0
            resource = entry.option.resource
            self.sizes[node_id] = Size(resource.memory_mb, resource.virtual_cores)
        return b""

    def known_ids(self, _deadline: Deadline) -> Collection[str]:
        if not self.has_list:
            raise UnreachableError("no list")
        return self.known

    def update(self, updates: Sequence[NodeUpdate]) -> tuple[UpdateAnswer, ...]:
        return update_node_resources(self.call, updates, self.known_ids, LATER)


def update(node_id: str, memory_mb: int = 2048, vcores: int = 2) -> NodeUpdate:
    return NodeUpdate(node_id=node_id, size=Size(memory_mb, vcores))


def names(count: int) -> list[str]:
    return [f"h{number}:45454" for number in range(count)]


def test_all_nodes_go_in_one_call_in_the_order_given() -> None:
    rm = ResourceManager(names(5000))
    answers = rm.update([update(name) for name in reversed(names(5000))])
    assert rm.calls == [list(reversed(names(5000)))]
    assert all(answer.accepted for answer in answers)


def test_an_update_holds_size_timeout_and_further_resources() -> None:
    requests = []

    def call(_method: str, argument: bytes, _deadline: Deadline) -> bytes:
        requests.append(argument)
        return b""

    gpu = CustomResource(name="gpu", value=2, message=b"\x0a\x03gpu\x10\x02\x1a\x01G\x2a\x03tag")
    send(call, [NodeUpdate(node_id="h:1", size=Size(3, 2), custom=(gpu,), over_commit_timeout_ms=5)], LATER)
    (request,) = requests
    assert request == (
        b"\x0a\x22"  # one entry
        b"\x0a\x05\x0a\x01h\x10\x01"  # host, port
        b"\x12\x19\x0a\x15\x08\x03\x10\x02"  # memory, vcores
        b"\x1a\x0f\x0a\x03gpu\x10\x02\x1a\x01G\x2a\x03tag"
        b"\x10\x05"  # timeout
    )


def test_without_a_take_back_the_timeout_is_sent_and_far_away() -> None:
    assert FAR_TIMEOUT_MS == 2147483647
    assert update("h:1").over_commit_timeout_ms == FAR_TIMEOUT_MS


@pytest.mark.parametrize("timeout_ms", [-1, 2147483648])
def test_a_timeout_that_keeps_an_old_deadline_is_never_sent(timeout_ms: int) -> None:
    with pytest.raises(ValueError, match="h:1: over-commit timeout"):
        NodeUpdate(node_id="h:1", size=Size(1, 1), over_commit_timeout_ms=timeout_ms)


@pytest.mark.parametrize("size", [Size(-1, 1), Size(1, -1), Size(1 << 63, 1), Size(1, 1 << 31)])
def test_a_size_that_no_node_can_have_is_never_sent(size: Size) -> None:
    with pytest.raises(ValueError, match=r"h:1: .* cannot be a node's size"):
        NodeUpdate(node_id="h:1", size=size)


@pytest.mark.parametrize("node_id", ["", "h", "h:", ":1", "h:x", "h:-1", "h:99999999999"])
def test_an_id_that_is_none_is_never_sent(node_id: str) -> None:
    with pytest.raises(ValueError, match="expected host:port"):
        update(node_id)


def test_two_updates_for_one_node_are_refused() -> None:
    with pytest.raises(ValueError, match="two updates for one node"):
        ResourceManager(names(1)).update([update("h0:45454"), update("h0:45454", 1)])


def test_no_updates_make_no_call() -> None:
    rm = ResourceManager([])
    assert (rm.update([]), rm.calls) == ((), [])


def test_unknown_nodes_are_refused_and_the_rest_is_sent_again_in_one_call() -> None:
    rm = ResourceManager(names(3))
    wanted = ["x1:1", *names(3), "x2:1", "x3:1"]
    answers = rm.update([update(name) for name in wanted])
    assert [answer.node_id for answer in answers] == wanted
    assert [answer.accepted for answer in answers] == [False, True, True, True, False, False]
    assert rm.calls[1:] == [names(3)]
    refused = answers[0].error
    assert isinstance(refused, UnknownNodeError)
    assert (refused.node, refused.maybe_sent) == ("x1:1", False)


def test_if_all_are_unknown_nothing_is_sent_again() -> None:
    rm = ResourceManager([])
    assert not any(answer.accepted for answer in rm.update([update(name) for name in names(3)]))
    assert len(rm.calls) == 1


@given(st.sets(st.integers(0, 12)), st.booleans(), st.booleans())
def test_whatever_helps_to_find_them_unknown_nodes_spoil_nothing(
    known: set[int], names_one: bool, has_list: bool
) -> None:
    rm = ResourceManager([f"h{number}:1" for number in known], names_one=names_one, has_list=has_list)
    answers = rm.update([update(f"h{number}:1", 1000 + number) for number in range(13)])
    assert {answer.node_id for answer in answers if answer.accepted} == rm.known
    assert rm.sizes == {f"h{number}:1": Size(1000 + number, 2) for number in known}


def test_a_node_that_goes_while_the_list_still_has_it_is_taken_out_by_name() -> None:
    rm = ResourceManager(names(3))
    answers = update_node_resources(rm.call, [update(name) for name in names(4)], lambda _deadline: names(4), LATER)
    assert [answer.accepted for answer in answers] == [True, True, True, False]


def test_an_error_that_ends_the_first_call_is_raised() -> None:
    rm = ResourceManager(names(2))
    rm.failures[1] = AccessDeniedError("no rights")
    with pytest.raises(AccessDeniedError):
        rm.update([update(name) for name in names(2)])


def test_an_error_after_a_refusal_is_the_answer_for_those_that_were_sent() -> None:
    rm = ResourceManager(names(2))
    rm.failures[2] = ConnectionLostError("gone", maybe_sent=True)
    refused, first, second = rm.update([update("x:1"), *(update(name) for name in names(2))])
    assert isinstance(refused.error, UnknownNodeError)
    assert first.error is second.error is rm.failures[2]


def test_an_error_between_two_calls_tells_the_sent_from_those_that_were_not() -> None:
    rm = ResourceManager(names(7), names_one=False, has_list=False)
    rm.failures[4] = ConnectionLostError("gone", maybe_sent=True)
    answers = rm.update([update(name) for name in [*names(7), "x:1"]])
    assert [len(ids) for ids in rm.calls] == [8, 4, 4, 2]
    assert [answer.accepted for answer in answers] == [True] * 4 + [False] * 4
    assert [answer.error and answer.error.maybe_sent for answer in answers[4:]] == [True, True, False, False]
