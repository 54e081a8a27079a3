import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_framework import FLOOR, Framework, size
from core.tests.fake_standalone import FakeHost, config, running, standalone, until

from fallow_core.api.control_socket import Peer
from fallow_core.errors import ControlError, StateError
from fallow_core.model.policy import SwitchState
from fallow_core.runtime import inbox
from fallow_core.runtime.inbox import Inbox
from fallow_core.runtime.standalone import Standalone

ROOT = Peer(uid=0, name="root")
GUEST = Peer(uid=4_000_000_000, name="guest")


@pytest.fixture
def fallow(tmp_path: Path) -> Iterator[Standalone]:
    """A Fallow with a framework that has reported, and one that cannot be built."""

    def fail(_: object) -> Any:
        raise FileNotFoundError("/etc/ops.token")

    framework = Framework(time.monotonic, a1=size(8))
    framework.delay_seconds = 0.05
    host = FakeHost()
    host.used = size(4)
    fallow = standalone(config(tmp_path, {"etl": framework, "ops": fail}), host)
    until(fallow, lambda: fallow.builds.failed and framework.sizes() == {"a1": size(6)})
    with running(fallow):
        yield fallow
    fallow.close()


def ask(fallow: Standalone, peer: Peer = ROOT, **request: Any) -> dict[str, Any]:
    return fallow.requests.answer(peer, request)


def test_status_shows_everything_that_an_operator_asks_for(fallow: Standalone) -> None:
    found = ask(fallow, GUEST, request="status")
    assert found["mode"] == "enforce"
    assert found["config_file"] == str(fallow.config.file)
    assert found["building"] == []
    assert "FileNotFoundError: /etc/ops.token" in found["failed"]["alpha/ops"]
    (cluster,) = found["clusters"]
    (row,) = cluster["rows"]
    assert (cluster["cluster"], row["framework_node"], row["state"]) == ("alpha/etl", "a1", "running")
    assert row["original"] == {"cpu_milli": 8000, "memory_bytes": 8 * 2**30}
    assert row["offer"] == {"cpu_milli": 6000, "memory_bytes": 6 * 2**30}
    assert found["nodes"][0]["cpu"]["batch"] == 6000


@pytest.mark.parametrize("more", [{}, {"node": None}, {"node": "n1"}])
def test_explain_is_about_this_host_unless_another_is_named(fallow: Standalone, more: dict[str, Any]) -> None:
    found = ask(fallow, GUEST, request="explain", **more)
    assert found["node"] == "n1"
    capacity = found["resources"]["cpu"]["capacity"]
    assert capacity["batch"] == capacity["capacity"] - capacity["margin"] - capacity["system"] == 6000


@pytest.mark.parametrize("node", ["elsewhere", 7, ["n1"], {"n1": 1}])
def test_explain_of_a_node_that_is_not_there_names_those_that_are(fallow: Standalone, node: object) -> None:
    with pytest.raises(ControlError, match=r"there is no node .*; known: n1"):
        ask(fallow, request="explain", node=node)


@pytest.mark.parametrize("kind", [None, "", "stop", 7, ["status"], {"request": "status"}])
def test_an_unknown_request_names_those_that_are_known(fallow: Standalone, kind: object) -> None:
    with pytest.raises(ControlError, match=r"unknown request .*; expected .*status, explain, .*switch"):
        ask(fallow, request=kind)


@pytest.mark.parametrize("name", ["alpha/etl", "etl"])
def test_a_switch_is_the_peers_and_takes_effect(fallow: Standalone, name: str) -> None:
    assert ask(fallow, request="switch", scope=name, state="drain", why="upgrade", who="somebody else") == {
        "scope": "alpha/etl",
        "state": "drain",
    }
    (cluster,) = ask(fallow, request="status")["clusters"]
    assert (cluster["switch"]["state"], cluster["switch"]["who"], cluster["switch"]["why"]) == (
        "drain",
        "root",
        "upgrade",
    )


def test_a_cluster_that_cannot_be_built_can_be_switched(fallow: Standalone) -> None:
    ask(fallow, request="switch", scope="ops", state="hold")
    assert fallow.controller.switch("alpha/ops").state is SwitchState.HOLD


@pytest.mark.parametrize("scope", [None, "", "nope", "beta/etl", ["etl"], 7, "pool:nope", "node:n2", "alpha"])
def test_a_switch_of_an_unknown_scope_names_those_that_are_known(fallow: Standalone, scope: object) -> None:
    known = "alpha/etl, alpha/ops, framework:alpha, node:n1, all"
    with pytest.raises(ControlError, match=f"there is no scope .*; known: {known}"):
        ask(fallow, request="switch", scope=scope, state="drain")


@pytest.mark.parametrize("scope", ["framework:alpha", "node:n1", "all"])
def test_a_switch_of_more_than_a_cluster_is_shown_with_who_and_why(fallow: Standalone, scope: str) -> None:
    assert ask(fallow, request="switch", scope=scope, state="stop", why="audit") == {"scope": scope, "state": "stop"}
    (found,) = ask(fallow, request="status")["switches"]
    assert (found["scope"], found["state"], found["who"], found["why"]) == (scope, "stop", "root", "audit")
    ask(fallow, request="switch", scope=scope, state="lend")
    assert ask(fallow, request="status")["switches"] == []


def test_a_name_that_two_plugins_have_needs_the_plugin(tmp_path: Path) -> None:
    fallow = standalone(config(tmp_path, {}))
    fallow.controller.state.names = frozenset({"alpha/etl", "beta/etl"})
    with running(fallow), pytest.raises(ControlError, match="'etl' is alpha/etl and beta/etl; known: alpha/etl, beta"):
        ask(fallow, request="switch", scope="etl", state="drain")
    fallow.close()


@pytest.mark.parametrize("state", [None, "", "restored", "off", ["drain"], 1])
def test_a_switch_to_an_unknown_state_names_those_that_are_known(fallow: Standalone, state: object) -> None:
    with pytest.raises(ControlError, match=r"cannot switch to .*; expected lend, hold, drain, stop"):
        ask(fallow, request="switch", scope="etl", state=state)


@pytest.mark.parametrize("request_", [{"request": "switch", "scope": "etl", "state": "drain"}, {"request": "restore"}])
def test_who_may_only_read_changes_nothing(fallow: Standalone, request_: dict[str, Any]) -> None:
    with pytest.raises(ControlError, match="user guest may not change anything: ask as root or as the user that runs"):
        ask(fallow, GUEST, **request_)
    assert fallow.controller.switch("alpha/etl").state is SwitchState.LEND


@pytest.mark.parametrize("value", [[], {}, 1, 1.5, True, None, "x", [["x"]], {"a": []}])
@pytest.mark.parametrize("name", ["request", "scope", "state", "why", "node", "cluster"])
def test_a_value_of_the_wrong_type_is_the_askers_mistake(fallow: Standalone, name: str, value: object) -> None:
    for kind in (*fallow.requests.reads, *fallow.requests.changes):
        given: dict[str, Any] = {"request": kind, "scope": "etl", "state": "lend", "why": "w", "cluster": "etl"}
        with suppress(ControlError):
            ask(fallow, **(given | {name: value}))


def test_restore_is_for_all_clusters(fallow: Standalone) -> None:
    assert ask(fallow, request="restore") == {"clusters": ("alpha/etl", "alpha/ops")}
    found = ask(fallow, request="status")
    assert found["restoring"] is True  # alpha/ops has no instance yet
    assert found["clusters"][0]["switch"]["state"] == "restored"


def test_a_switch_that_cannot_be_written_down_is_an_error(fallow: Standalone, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", fail)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StateError, match=r"cannot write .*: No space left on device"):
        ask(fallow, request="switch", scope="etl", state="drain")
    assert fallow.controller.switch("alpha/etl").state is SwitchState.LEND


def test_a_drain_reaches_the_framework(fallow: Standalone) -> None:
    ask(fallow, request="switch", scope="etl", state="drain")
    framework = fallow.controller.clusters["alpha/etl"].instance._object
    assert isinstance(framework, Framework)
    deadline = time.monotonic() + 10
    while framework.sizes() != {"a1": FLOOR}:
        assert time.monotonic() < deadline
        time.sleep(0.02)


# The way to the loop


def served(box: Inbox, function: Callable[[], object]) -> threading.Thread:
    """Ask in a thread of its own."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def test_a_request_is_done_in_the_loops_thread(fallow: Standalone) -> None:
    assert fallow.inbox.ask(threading.get_ident) != threading.get_ident()


def test_a_mistake_in_a_request_reaches_who_asked_and_not_the_loop() -> None:
    box, caught = Inbox(), []

    def ask_wrongly() -> None:
        with pytest.raises(ZeroDivisionError):
            box.ask(lambda: 1 / 0)
        caught.append(True)

    thread = served(box, ask_wrongly)
    assert box.serve(5)
    thread.join(5)
    assert caught == [True]


def test_a_loop_that_hangs_is_told_and_what_was_asked_is_not_done_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "ANSWER_SECONDS", 0.05)
    box, done = Inbox(), []
    with pytest.raises(ControlError, match=r"Fallow is busy or stopping: no answer within 0 s"):
        box.ask(lambda: done.append(1))
    assert box.serve(0)
    assert done == []


def test_a_loop_that_is_stopping_takes_no_request_and_still_does_what_was_asked_before() -> None:
    box, answers = Inbox(), []
    thread = served(box, lambda: answers.append(box.ask(lambda: 42)))
    while box._jobs.empty():
        thread.join(0.001)
    box.close()
    with pytest.raises(ControlError, match="Fallow is stopping"):
        box.ask(lambda: 42)
    assert box.serve(0)
    thread.join(5)
    assert answers == [42]


def test_what_was_asked_before_the_end_is_answered_and_what_comes_too_late_is_refused() -> None:
    box, answers = Inbox(), []
    thread = served(box, lambda: answers.append(box.ask(lambda: 42)))
    while box._jobs.empty():
        thread.join(0.001)
    box.close()
    box.finish()
    thread.join(5)
    assert answers == [42]
    box._closed = False  # as for one that looked just before it was closed
    with pytest.raises(ControlError, match="Fallow is stopping"):
        box.ask(lambda: 42)


def test_nothing_comes_within_the_time() -> None:
    box = Inbox()
    assert not box.serve(0)
    assert not box.serve(0.01)
    box.wake()
    assert box.serve(5)
    assert not box.serve(0)
