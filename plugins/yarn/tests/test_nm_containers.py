import json
import socket
from collections.abc import Callable

import pytest
from plugins.yarn.tests.proc_fakes import NODE_ID, container

from fallow_hookspecs import TaskState
from fallow_yarn.errors import DeadlineError, ProtocolError, RemoteError, UnreachableError, YarnError
from fallow_yarn.http.web import SMALL_ANSWER_BYTES, Web
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.nm import containers
from fallow_yarn.nm.containers import Listing, Listings, ask, web_of
from fallow_yarn.security.access import Access

YARN = Access.simple("yarn")
Serve = Callable[..., Endpoint]
ONE, TWO = container(1), container(2)


def entry(container_id: str = ONE, state: str = "RUNNING", **more: object) -> dict[str, object]:
    """A container as a NodeManager writes it."""
    size = {"totalMemoryNeededMB": 512, "totalVCoresNeeded": 2}
    return {"id": container_id, "state": state, "user": "al", "nodeId": NODE_ID} | size | more


def answering(body: object, status: str = "200 OK") -> Callable[[socket.socket], None]:
    """A server that answers every request with this."""

    def script(connected: socket.socket) -> None:
        data = b""
        while not data.endswith(b"\r\n\r\n"):
            data += connected.recv(4096)
        assert data.startswith(b"GET /ws/v1/node/containers?user.name=yarn HTTP/1.1\r\n")
        text = json.dumps(body).encode()
        connected.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)

    return script


def read(serve: Serve, body: object) -> Listing:
    return Listings().read(web_of(serve(answering(body)).authority, YARN), NODE_ID, Deadline.after(10))


def listing(serve: Serve, *entries: object) -> Listing:
    return read(serve, {"containers": {"container": list(entries)}})


def test_a_container_has_its_state_its_request_and_its_application(serve: Serve) -> None:
    found = listing(serve, entry(), entry(TWO, executionType="OPPORTUNISTIC", totalMemoryNeededMB="256"))
    first, second = found.containers[ONE], found.containers[TWO]
    assert (first.id.text, first.id.application_id, first.user) == (ONE, "application_1700000000000_0001", "al")
    assert (first.state, first.requested, first.opportunistic) == (TaskState.RUNNING, Size(512, 2), False)
    assert (second.requested, second.opportunistic) == (Size(256, 2), True)
    assert found.unreadable == 0


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (("NEW", "LOCALIZING", "LOCALIZED", "SCHEDULED"), TaskState.STARTING),
        (("RUNNING", "RELAUNCHING", "REINITIALIZING", "REINITIALIZING_AWAITING_KILL"), TaskState.RUNNING),
        (("PAUSING", "PAUSED", "RESUMING", "A_STATE_OF_LATER"), TaskState.RUNNING),
        (("LOCALIZATION_FAILED", "EXITED_WITH_SUCCESS", "EXITED_WITH_FAILURE", "KILLING"), TaskState.TERMINATING),
        (("CONTAINER_CLEANEDUP_AFTER_KILL", "CONTAINER_RESOURCES_CLEANINGUP"), TaskState.TERMINATING),
    ],
)
def test_the_node_managers_states_are_three(serve: Serve, states: tuple[str, ...], expected: TaskState) -> None:
    found = listing(serve, *(entry(container(number), state) for number, state in enumerate(states)))
    assert [each.state for each in found.containers.values()] == [expected] * len(states)
    assert not any(each.is_done for each in found.containers.values())


def test_a_container_that_has_ended_is_told_apart(serve: Serve) -> None:
    assert listing(serve, entry(state="DONE")).containers[ONE].is_done


def test_a_container_that_waits_in_the_node_managers_own_queue_holds_nothing(serve: Serve) -> None:
    waiting = entry(state="SCHEDULED", executionType="OPPORTUNISTIC")
    guaranteed = entry(TWO, state="SCHEDULED", executionType="GUARANTEED")
    assert listing(serve, waiting, guaranteed).containers.keys() == {TWO}


@pytest.mark.parametrize("body", [{}, {"containers": None}, {"containers": {}}, {"containers": ""}])
def test_no_container_is_written_in_several_ways(serve: Serve, body: object) -> None:
    assert read(serve, body) == Listing(containers={})


def test_one_container_may_be_written_without_a_list(serve: Serve) -> None:
    assert read(serve, {"containers": {"container": entry()}}).containers.keys() == {ONE}


@pytest.mark.parametrize("body", [[], None, "x", {"nodes": {}}, {"containers": {"x": 1}}, {"containers": [1]}])
def test_what_is_no_list_of_containers_is_not_an_empty_one(serve: Serve, body: object) -> None:
    with pytest.raises(ProtocolError, match="is it a NodeManager"):
        read(serve, body)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "x",
        {},
        entry("container_x"),
        entry(state=""),
        entry() | {"totalMemoryNeededMB": None},
        entry() | {"totalVCoresNeeded": "many"},
    ],
)
def test_an_entry_that_cannot_be_read_is_counted_and_spoils_no_other(serve: Serve, bad: object) -> None:
    found = listing(serve, bad, entry(TWO))
    assert (set(found.containers), found.unreadable) == ({TWO}, 1)


def test_another_node_manager_at_the_address_is_not_believed(serve: Serve) -> None:
    with pytest.raises(ProtocolError, match="NodeManager worker-1:1 answers there, expected worker-1:45454"):
        listing(serve, entry(nodeId="worker-1:1"))
    old = entry()
    del old["nodeId"]
    assert listing(serve, old).containers.keys() == {ONE}


def test_each_node_manager_answers_for_itself(serve: Serve) -> None:
    good = serve(answering({"containers": {"container": [entry()]}}))
    bad = serve(answering({}, "500 Internal Server Error"))
    addresses = {NODE_ID: good.authority, "b:1": bad.authority, "c:1": "", "d:1": "127.0.0.1:1"}
    answers = ask(addresses, YARN, Deadline.after(10))
    found = answers[NODE_ID]
    assert isinstance(found, Listing)
    assert found.containers.keys() == {ONE}
    assert isinstance(answers["b:1"], RemoteError)
    assert str(answers["c:1"]) == "the web address of NodeManager c:1 is not known"
    assert isinstance(answers["d:1"], UnreachableError)


def test_one_that_is_silent_takes_nobody_elses_time(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(connected: socket.socket) -> None:
        connected.recv(4096)
        connected.recv(4096)

    answers = ask(
        {"a:1": serve(silent).authority, NODE_ID: serve(answering({})).authority},
        YARN,
        Deadline.after(0.4),
    )
    assert isinstance(answers["a:1"], DeadlineError)
    assert answers[NODE_ID] == Listing(containers={})
    monkeypatch.setattr(containers, "ANSWER_SECONDS", 0.1)
    assert isinstance(ask({"a:1": serve(silent).authority}, YARN, Deadline.after(60))["a:1"], YarnError)


def test_the_same_page_is_not_decoded_again(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = ({"containers": {"container": [entry(container_id)]}} for container_id in (ONE, TWO))
    address = serve(answering(one), answering(one), answering(other)).authority
    decoded: list[str] = []
    decode = Web.decode

    def decoding(web: Web, path: str, body: bytes, kind: type[object]) -> object:
        decoded.append(path)
        return decode(web, path, body, kind)

    monkeypatch.setattr(Web, "decode", decoding)
    listings = Listings()
    found = [ask({NODE_ID: address}, YARN, Deadline.after(10), listings)[NODE_ID] for _ in range(3)]
    assert [list(each.containers) for each in found if isinstance(each, Listing)] == [[ONE], [ONE], [TWO]]
    assert len(decoded) == 2


def test_a_page_longer_than_that_of_one_host_can_be_is_an_error_and_is_not_read_to_its_end(serve: Serve) -> None:
    body = [entry(TWO, filler="x" * SMALL_ANSWER_BYTES)]
    with pytest.raises(ProtocolError, match=f"the answer is longer than {SMALL_ANSWER_BYTES} bytes"):
        read(serve, {"containers": {"container": body}})
