import grp
import json
import os
import select
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fallow_core.api import control_socket
from fallow_core.api.control_socket import MAX_REQUEST_BYTES, ControlServer, Guests, Peer, ask
from fallow_core.errors import ControlError, NotRunningError, StateError

Serve = Callable[..., ControlServer]


@pytest.fixture
def path() -> Iterator[Path]:
    """A short one: the kernel takes no long path for a socket."""
    with tempfile.TemporaryDirectory(prefix="fallow-", dir="/tmp") as folder:
        yield Path(folder) / "run" / "control"


@pytest.fixture
def serve(path: Path) -> Iterator[Serve]:
    servers: list[ControlServer] = []

    def start(handler: control_socket.Handler | None = None, group: str | None = None) -> ControlServer:
        server = ControlServer(path, group, handler or echo)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.close()


def echo(peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
    return {"got": request, "uid": peer.uid, "name": peer.name}


def raw(path: Path, data: bytes, *, end: bool = True) -> bytes:
    """The bytes that come back for these bytes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect(str(path))
        try:
            connection.sendall(data)
            if end:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it was told to go away before it had said everything
        answer = b""
        try:
            while chunk := connection.recv(65536):
                answer += chunk
        except ConnectionResetError:
            pass
        return answer


def test_an_answer_comes_to_a_request_with_who_the_kernel_says_asks(serve: Serve, path: Path) -> None:
    serve()
    assert ask(path, {"request": "status", "name": "not me"}) == {
        "got": {"request": "status", "name": "not me"},
        "uid": os.getuid(),
        "name": control_socket.user_name(os.getuid()),
    }


def test_only_its_owner_can_open_the_socket(serve: Serve, path: Path) -> None:
    serve()
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert stat.S_ISSOCK(path.lstat().st_mode)


def test_opening_the_socket_leaves_the_umask_as_it_was(serve: Serve) -> None:
    before = os.umask(0o027)
    try:
        serve()
    finally:
        assert os.umask(before) == 0o027


def test_members_of_the_control_group_can_open_the_socket(serve: Serve, path: Path) -> None:
    serve(group=grp.getgrgid(os.getgid()).gr_name)
    assert stat.S_IMODE(path.lstat().st_mode) == 0o660
    assert path.lstat().st_gid == os.getgid()


def test_a_control_group_that_does_not_exist_is_a_clear_error_and_leaves_no_socket(serve: Serve, path: Path) -> None:
    with pytest.raises(ControlError, match="controlGroup: there is no group 'no-such-group' on this host"):
        serve(group="no-such-group")
    assert not path.exists()


def test_a_group_that_the_socket_cannot_be_given_to_is_a_clear_error(
    serve: Serve, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    name = grp.getgrgid(os.getgid()).gr_name
    with pytest.raises(ControlError, match=f"controlGroup: cannot give .* to group {name!r}: Operation not permitted"):
        serve(group=name)
    assert not path.exists()


@pytest.mark.parametrize(("uid", "own", "may"), [(0, 1000, True), (1000, 1000, True), (1001, 1000, False)])
def test_root_and_the_owner_of_the_process_may_change_something(
    monkeypatch: pytest.MonkeyPatch, uid: int, own: int, may: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: own)
    assert Peer(uid=uid, name="x").may_change is may


def test_a_user_without_a_name_is_called_by_number() -> None:
    assert control_socket.user_name(4_000_000_000) == "uid 4000000000"


# A socket that is there already


def test_a_socket_that_nobody_serves_is_replaced(serve: Serve, path: Path) -> None:
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(path))
    assert path.exists()
    serve()
    assert ask(path, {})["got"] == {}


def test_a_socket_that_is_served_is_left_alone(serve: Serve, path: Path) -> None:
    serve()
    with pytest.raises(ControlError, match=f"a Fallow is running already: it serves {path}"):
        ControlServer(path, None, lambda peer, request: {"second": True})
    assert ask(path, {})["got"] == {}


def test_a_socket_whose_server_is_too_busy_to_answer_is_left_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_socket, "PROBE_SECONDS", 0.05)
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as waiting:
        busy.bind(str(path))
        busy.listen(0)
        waiting.connect(str(path))
        with pytest.raises(ControlError, match="a Fallow is running already"):
            ControlServer(path, None, echo)
    assert path.exists()


def test_a_file_that_is_no_socket_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("precious")
    with pytest.raises(ControlError, match=f"{path} exists and is no socket; remove it, or set controlSocket"):
        ControlServer(path, None, echo)
    assert path.read_text() == "precious"


def test_a_socket_of_somebody_else_is_a_clear_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(path))
    monkeypatch.setattr(socket.socket, "connect_ex", lambda *_: 13)
    with pytest.raises(ControlError, match=f"cannot open the control socket {path}: Permission denied"):
        ControlServer(path, None, echo)
    assert path.exists()


def test_a_folder_that_cannot_be_made_is_a_clear_error(path: Path) -> None:
    path.parent.write_text("in the way")
    with pytest.raises(ControlError, match=r"cannot open the control socket .*; set controlSocket"):
        ControlServer(path, None, echo)


def test_the_socket_is_gone_when_it_is_closed(serve: Serve, path: Path) -> None:
    ControlServer(path, None, echo).close()
    assert not path.exists()
    with pytest.raises(NotRunningError, match=f"no Fallow is running: nobody serves {path}"):
        ask(path, {})


# Requests that make no sense


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\n",
        b"\xff\x00\xfe\n",
        b"[1]\n",
        b'"status"\n',
        b"{\n",
        b"[" * (MAX_REQUEST_BYTES - 1),
        b'{"a": "' + b"x" * MAX_REQUEST_BYTES + b'"}\n',
        b"x" * (1 << 20),
    ],
)
def test_garbage_is_an_error_and_hurts_nobody(serve: Serve, path: Path, data: bytes) -> None:
    asked: list[object] = []

    def note(peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request)
        return {}

    serve(note)
    text = f"the request is not one line of at most {MAX_REQUEST_BYTES} bytes with a JSON object"
    assert json.loads(raw(path, data)) == {"error": text}
    assert asked == []
    assert ask(path, {"request": 1}) == {}


def test_nothing_is_answered_with_nothing(serve: Serve, path: Path) -> None:
    serve()
    assert raw(path, b"") == b""


def test_a_client_that_says_nothing_keeps_no_other_waiting(serve: Serve, path: Path) -> None:
    serve()
    with socket.socket(socket.AF_UNIX) as silent, socket.socket(socket.AF_UNIX) as slow:
        silent.connect(str(path))
        slow.connect(str(path))
        slow.sendall(b'{"request":')
        assert ask(path, {})["got"] == {}


def test_a_user_who_may_only_read_has_few_connections_at_a_time(
    serve: Serve, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(control_socket, "_peer", lambda _: Peer(uid=4_000_000_000, name="guest"))
    serve()
    silent = [socket.socket(socket.AF_UNIX) for _ in range(control_socket.MOST_OF_A_USER)]
    for each in silent:
        each.connect(str(path))
    with pytest.raises(ControlError, match="too many connections"):
        ask(path, {})
    assert [record.getMessage() for record in caplog.records] == [
        'connection_refused who=guest reason="it has too many open"'
    ]
    for each in silent:
        each.close()
    while b"too many" in raw(path, b"{}"):
        time.sleep(0.01)


def test_owner_and_root_are_served_while_another_user_has_all_places() -> None:
    guests = Guests()
    assert [guests.enter(1000) for _ in range(control_socket.MOST_OF_A_USER + 1)] == [True] * 4 + [False]
    others = [guests.enter(uid) for uid in range(1001, 1100)]
    assert others.count(True) == control_socket.MOST_GUESTS - control_socket.MOST_OF_A_USER
    guests.leave(1000)
    assert guests.enter(2000)
    assert not guests.enter(2001)


def test_a_client_that_says_nothing_is_given_up(serve: Serve, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_socket._Connection, "timeout", 0.05)
    serve()
    assert raw(path, b'{"request":', end=False) == b""


def test_a_client_that_does_not_wait_for_its_answer_hurts_nobody(serve: Serve, path: Path) -> None:
    asked, gone = threading.Event(), threading.Event()

    def slow(peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
        asked.set()
        assert gone.wait(5)
        return {"big": "x" * 1_000_000}

    serve(slow)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"{}\n")
        assert asked.wait(5)
    gone.set()
    assert len(ask(path, {})["big"]) == 1_000_000


def test_an_error_of_ours_is_its_text(serve: Serve, path: Path) -> None:
    def refuse(peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
        raise StateError("cannot write the journal")

    serve(refuse)
    with pytest.raises(ControlError, match=r"^cannot write the journal$"):
        ask(path, {})


def test_a_mistake_of_ours_is_an_error_and_one_line_in_the_log(
    serve: Serve, path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    def wrong(peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
        raise KeyError("clusters")

    serve(wrong)
    with pytest.raises(ControlError, match=r"^a mistake in Fallow: KeyError\('clusters'\)$"):
        ask(path, {"request": "status"})
    assert [r.getMessage() for r in caplog.records] == ["request_failed request=status reason=KeyError('clusters')"]
    assert capfd.readouterr() == ("", "")


# The client


def test_a_socket_that_nobody_serves_means_that_no_fallow_runs(path: Path) -> None:
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(path))
    with pytest.raises(NotRunningError, match="no Fallow is running"):
        ask(path, {})


def test_a_socket_that_is_not_for_this_user_is_a_clear_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    with pytest.raises(ControlError, match=f"no access to {path}: ask as root or as the user that runs Fallow"):
        ask(path, {})


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "Fallow is stopping: it closed {path} without an answer"),
        (b'{"cut', "Fallow is stopping: it closed {path} without an answer"),
        (b"garbage\n", "no answer from the Fallow that serves {path}"),
    ],
)
def test_an_answer_that_is_missing_cut_or_makes_no_sense_is_a_clear_error(path: Path, answer: bytes, why: str) -> None:
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def once() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(answer)

        thread = threading.Thread(target=once)
        thread.start()
        with pytest.raises(ControlError, match=why.format(path=path)):
            ask(path, {})
        thread.join(5)


def test_a_fallow_that_closes_its_socket_before_it_takes_the_connection_is_stopping(path: Path) -> None:
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def close_at_a_connection() -> None:
            select.select([server], [], [], 5)
            server.close()

        closes = threading.Thread(target=close_at_a_connection)
        closes.start()
        with pytest.raises(ControlError, match="Fallow is stopping"):
            ask(path, {"request": "status"})
        closes.join(5)


def test_a_fallow_that_does_not_answer_is_a_clear_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_socket, "CLIENT_SECONDS", 0.05)
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        with pytest.raises(ControlError, match=f"no answer from the Fallow that serves {path}: timed out"):
            ask(path, {})
