"""What is read of pages and of this host for a diagnosis."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from plugins.yarn.tests.yarn_fakes import spec

from fallow_yarn.diagnosis import probes
from fallow_yarn.http.web import Web
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.security.access import Access
from fallow_yarn.settings.rm_addresses import rm_addresses

Serve = Callable[..., Endpoint]
Script = Callable[[socket.socket], None]
U = Access.simple("u")
CONF = b'{"properties":[{"key":"a","value":"1"}]}'
DATE = "Sun, 29 Nov 2026 20:00:00 GMT"
AT_DATE = 1795982400.0


def page(body: bytes, seen: list[str], *headers: str, status: str = "200 OK") -> Script:
    def script(connected: socket.socket) -> None:
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            request += connected.recv(1)
        seen.append(request.decode().split()[1].partition("?")[0])
        head = "\r\n".join((f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""))
        connected.sendall(head.encode() + body)

    return script


def soon() -> Deadline:
    return Deadline.after(10)


@pytest.mark.parametrize(
    ("header", "now", "ahead"),
    [((f"Date: {DATE}",), AT_DATE - 90, 90.0), ((), AT_DATE, None), (("Date: yesterday",), AT_DATE, None)],
)
def test_settings_and_clock_come_from_one_page(
    serve: Serve, header: tuple[str, ...], now: float, ahead: float | None
) -> None:
    seen: list[str] = []
    found = probes.conf_page(Web(serve(page(CONF, seen, *header)), "u"), soon(), lambda: now)
    assert (found.settings.text("a"), found.problem, found.ahead_seconds) == ("1", "", ahead)
    assert seen == ["/conf"]


def test_a_page_that_is_closed_to_the_user_is_a_problem_in_words(serve: Serve) -> None:
    found = probes.conf_page(Web(serve(page(b"", [], status="403 Forbidden")), "u"), soon())
    assert not found.settings.values
    assert "HTTP 403" in found.problem


def test_the_resource_managers_page_is_asked_for_at_its_web_address(serve: Serve) -> None:
    seen: list[str] = []
    endpoint = serve(page(CONF, seen))
    (place,) = rm_addresses(spec(resourceManager={"host": "rm", "web": endpoint.authority}))
    found = probes.manager_page(place, U, soon())
    assert (found.settings.text("a"), seen) == ("1", ["/conf"])


def test_a_node_manager_is_asked_for_its_settings_and_for_itself(serve: Serve) -> None:
    seen: list[str] = []
    info = b'{"nodeInfo":{"nodeManagerVersion":"3.5.0"}}'
    endpoint = serve(page(CONF, seen, f"Date: {DATE}"), page(info, seen))
    found = probes.node_page(endpoint.authority, U, soon())
    assert (found.settings.text("a"), found.info, found.problem) == ("1", {"nodeManagerVersion": "3.5.0"}, "")
    assert seen == ["/conf", "/ws/v1/node/info"]


def test_a_node_manager_whose_settings_are_closed_still_tells_its_release(serve: Serve) -> None:
    endpoint = serve(page(b"", [], status="403 Forbidden"), page(b'{"nodeInfo":{"nodeManagerVersion":"3.5.0"}}', []))
    found = probes.node_page(endpoint.authority, U, soon())
    assert found.info == {"nodeManagerVersion": "3.5.0"}
    assert "HTTP 403" in found.problem


@pytest.mark.parametrize("info", [b"{}", b"[1]", b"no JSON"])
def test_a_node_manager_that_says_nothing_of_itself_keeps_its_settings(serve: Serve, info: bytes) -> None:
    endpoint = serve(page(CONF, []), page(info, []))
    found = probes.node_page(endpoint.authority, U, soon())
    assert (found.settings.text("a"), found.info) == ("1", {})


def test_a_node_manager_without_a_web_address_is_a_problem_in_words() -> None:
    assert "its web address" in probes.node_page("", U, soon()).problem


def test_how_full_a_disk_is_counts_what_only_root_may_write(tmp_path: Path) -> None:
    used = probes.disk_used_percent(str(tmp_path))
    assert used is not None
    assert 0 <= used <= 100
    assert probes.disk_used_percent(str(tmp_path / "missing")) is None


def test_a_hierarchy_is_found_in_the_unified_tree_or_below_a_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "CGROUP_ROOT", tmp_path)
    (tmp_path / "batch" / "yarn").mkdir(parents=True)
    (tmp_path / "cpu" / "old").mkdir(parents=True)
    assert [probes.has_cgroup(name) for name in ("/batch/yarn", "old/", "/new")] == [True, True, False]
