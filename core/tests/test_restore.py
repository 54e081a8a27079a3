import os
import time
from pathlib import Path
from typing import Any

import pytest
from core.tests import live_values
from core.tests.fake_framework import Framework, size
from core.tests.fake_standalone import FakeHost, config, serving, standalone, until

from fallow_core.api import control_socket
from fallow_core.api.control_socket import ControlServer, Peer, ask
from fallow_core.api.encoding import from_json, to_json
from fallow_core.api.status import Status
from fallow_core.config.problems import Problem
from fallow_core.config.settings import Config
from fallow_core.errors import ControlError, StateError
from fallow_core.model.policy import PublishingMode, PublishingPolicy
from fallow_core.runtime import restore
from fallow_core.runtime.restore import outcome
from fallow_core.state import publish_journal
from fallow_hookspecs import NodeState, Refusal

BYTES = 8 * 2**30
OPERATOR = control_socket.user_name(os.geteuid())


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "LONGEST_SECONDS", 3.0)
    monkeypatch.setattr(restore, "POLL_SECONDS", 0.02)


@pytest.fixture
def framework() -> Framework:
    framework = Framework(time.monotonic, a1=size(8))
    framework.delay_seconds = 0.02
    return framework


@pytest.fixture
def settings(tmp_path_factory: pytest.TempPathFactory, framework: Framework) -> Config:
    policy = PublishingPolicy(mode=PublishingMode.ENFORCE, report_interval_seconds=0.1, urgent_interval_seconds=0.1)
    return config(tmp_path_factory.mktemp("f"), {"etl": framework}, publishing=policy)


@pytest.fixture
def host() -> FakeHost:
    host = FakeHost()
    host.used = size(4)
    return host


def lend(settings: Config, host: FakeHost, framework: Framework) -> None:
    """A Fallow has changed the size, and was killed."""
    fallow = standalone(settings, host)
    until(fallow, lambda: framework.sizes() == {"a1": size(6)})
    fallow.close()


def test_a_running_fallow_puts_the_sizes_found_first_back(
    settings: Config, host: FakeHost, framework: Framework
) -> None:
    fallow = standalone(settings, host)
    until(fallow, lambda: framework.sizes() == {"a1": size(6)})
    with serving(fallow):
        answer = restore.restore(settings, "somebody")
        assert answer.done, answer
        assert [row.detail for row in answer.rows] == ["restored"]
        assert framework.sizes() == {"a1": size(8)}
        switch = ask(settings.control_socket, {"request": "status"})["clusters"][0]["switch"]
        assert (switch["state"], switch["who"]) == ("restored", OPERATOR)  # as the kernel says
    fallow.close()


def test_without_a_running_fallow_this_process_puts_them_back(
    settings: Config, host: FakeHost, framework: Framework
) -> None:
    lend(settings, host, framework)
    answer = restore.restore(settings, "ada")
    assert answer.done, answer
    assert [to_json(row) for row in answer.rows] == [
        {
            "cluster": "alpha/etl",
            "framework_node": "a1",
            "done": True,
            "detail": "restored",
            "original": {"cpu_milli": 8000, "memory_bytes": BYTES},
            "in_force": {"cpu_milli": 8000, "memory_bytes": BYTES},
            "allocated": {"cpu_milli": 0, "memory_bytes": 0},
        }
    ]
    assert framework.sizes() == {"a1": size(8)}
    assert publish_journal.load(settings.state_dir).memory.switches["alpha/etl"].who == "ada"
    os.close(publish_journal.lock(settings.state_dir))


def test_after_a_restore_the_next_fallow_publishes_nothing_until_it_is_switched_to_lend(
    settings: Config, host: FakeHost, framework: Framework
) -> None:
    lend(settings, host, framework)
    restore.restore(settings, "ada")
    calls = len(framework.calls)
    fallow = standalone(settings, host)
    until(fallow, lambda: fallow.controller.rows)
    with serving(fallow):
        time.sleep(0.15)
        assert len(framework.calls) == calls
        ask(settings.control_socket, {"request": "switch", "scope": "etl", "state": "lend"})
        deadline = time.monotonic() + 10
        while framework.sizes()["a1"].cpu_milli != 6000:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    fallow.close()


def test_a_restore_sends_no_other_size_on_its_way(settings: Config, host: FakeHost, framework: Framework) -> None:
    lend(settings, host, framework)
    before = len(framework.calls)
    restore.restore(settings, "ada")
    assert {offer.total for call in framework.calls[before:] for offer in call} == {size(8)}


def test_nothing_changed_is_nothing_to_put_back(settings: Config, framework: Framework) -> None:
    answer = restore.restore(settings, "ada")
    assert answer.done, answer
    assert [row.detail for row in answer.rows] == ["never changed by Fallow"]
    assert framework.calls == []


def test_a_framework_that_is_away_is_a_restore_that_is_not_done(
    settings: Config, host: FakeHost, framework: Framework, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "LONGEST_SECONDS", 1.0)
    lend(settings, host, framework)
    framework.reports_fail = ConnectionError("refused")
    answer = restore.restore(settings, "ada")
    assert not answer.done
    assert answer.problems == (
        "alpha/etl: no report yet; ConnectionError: refused",
        "alpha/etl a1: changed by Fallow once, and not reported now",
    )


def test_a_refused_size_is_a_restore_that_is_not_done_and_not_waited_for(
    settings: Config, host: FakeHost, framework: Framework, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "LONGEST_SECONDS", 50.0)
    lend(settings, host, framework)
    framework.refuses = {"a1": Refusal.ACCESS_DENIED}
    answer = restore.restore(settings, "ada")
    assert not answer.done
    assert [row.detail for row in answer.rows] == ["NOT restored: refused: this node is refused: access denied"]


def test_a_node_that_is_away_is_a_restore_that_is_not_done(
    settings: Config, host: FakeHost, framework: Framework
) -> None:
    lend(settings, host, framework)
    framework.nodes["a1"].state = NodeState.UNHEALTHY
    answer = restore.restore(settings, "ada")
    assert not answer.done
    assert [row.detail for row in answer.rows] == ["NOT restored: the node is unhealthy"]


def test_a_size_that_does_not_arrive_is_a_restore_that_is_not_done(
    settings: Config, host: FakeHost, framework: Framework, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "LONGEST_SECONDS", 0.3)
    lend(settings, host, framework)
    framework.delay_seconds = 1e9
    answer = restore.restore(settings, "ada")
    assert not answer.done
    assert [row.detail for row in answer.rows] == ["NOT restored: sent, but not seen in force yet"]


def test_a_plugin_that_cannot_be_built_is_a_restore_that_is_not_done(
    settings: Config, host: FakeHost, framework: Framework, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "LONGEST_SECONDS", 0.3)
    lend(settings, host, framework)

    def fail(_: object) -> Any:
        raise FileNotFoundError("/etc/etl.token")

    answer = restore.restore(config(settings.file.parent, {"etl": fail}), "ada")
    assert not answer.done
    assert "FileNotFoundError: /etc/etl.token" in answer.problems[0]


def test_a_broken_cluster_file_is_a_restore_that_is_not_done(settings: Config) -> None:
    problem = Problem(file=Path("/etc/fallow/clusters.d/ops.yaml"), line=3, message="unknown key 'usr'")
    answer = restore.restore(config(settings.file.parent, {}, problems=(problem,)), "ada")
    assert to_json(answer) == {"done": False, "rows": [], "groups": [], "problems": [str(problem)]}


def test_work_above_the_size_found_first_is_told(settings: Config, host: FakeHost, framework: Framework) -> None:
    lend(settings, host, framework)
    framework.nodes["a1"].allocated = size(9, 1)
    answer = restore.restore(settings, "ada")
    assert answer.done
    assert [row.detail for row in answer.rows] == ["restored; more CPU than that is still allocated"]


def test_a_row_whose_size_in_force_is_not_known_is_not_done() -> None:
    found = live_values.cluster("alpha/etl", live_values.row("n1", in_force=None, newest=None, original=size(8)))
    answer = outcome(from_json(Status, live_values.status(clusters=(found,))))
    assert not answer.done
    assert answer.rows[0].detail == "NOT restored: the node is running"


def test_a_node_that_is_gone_is_nothing_to_put_back(settings: Config, host: FakeHost, framework: Framework) -> None:
    lend(settings, host, framework)
    framework.nodes["a1"].state = NodeState.GONE
    answer = restore.restore(settings, "ada")
    assert answer.done
    assert [row.detail for row in answer.rows] == ["gone, nothing to put back"]


def test_a_disk_that_cannot_be_written_is_a_clear_error_and_sends_nothing(
    settings: Config, host: FakeHost, framework: Framework, monkeypatch: pytest.MonkeyPatch
) -> None:
    lend(settings, host, framework)
    calls = len(framework.calls)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", fail)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StateError, match=r"cannot write .*: No space left on device"):
        restore.restore(settings, "ada")
    assert len(framework.calls) == calls


def test_a_running_fallow_that_refuses_is_an_error(settings: Config) -> None:
    def refuse(peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
        raise ControlError("user guest may not change anything")

    server = ControlServer(settings.control_socket, None, refuse)
    with pytest.raises(ControlError, match="user guest may not change anything"):
        restore.restore(settings, "ada")
    server.close()


def test_a_fallow_that_starts_meanwhile_is_kept_away(settings: Config, host: FakeHost, framework: Framework) -> None:
    lend(settings, host, framework)
    seen: list[str] = []

    def start(offers: object) -> None:
        with pytest.raises(StateError) as caught:
            standalone(settings)
        seen.append(str(caught.value))

    framework.seen = start
    assert restore.restore(settings, "ada").done
    assert seen[0].startswith("a Fallow is running already")
