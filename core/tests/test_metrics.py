import http.client
import os
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from core.tests import fake_framework
from core.tests.fake_framework import GIB, NODE, World, size
from core.tests.qos_values import seen
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families

from fallow_core.agent.eviction.evictor import Evictor
from fallow_core.api import metrics, metrics_server
from fallow_core.api.status import ConfigReads, ProcessStatus, RefusedFile, run_status
from fallow_core.api.throttling import ThrottlingStatus
from fallow_core.errors import FallowError
from fallow_core.model.policy import AccountPolicy, ExitMode, PublishingMode, SwitchState, TakeBack
from fallow_core.model.qos_policy import QosPolicy, StrategyMode
from fallow_core.plugins.session import CALLS
from fallow_core.runtime import inbox
from fallow_core.runtime.inbox import Inbox
from fallow_core.state.terminations_file import TerminationsFile
from fallow_hookspecs import NodeState, ResourceCapability, TaskState

NO_THROTTLING = ThrottlingStatus(
    cpu_suppress=StrategyMode.OFF,
    cgroup_reconcile=StrategyMode.OFF,
    identity=StrategyMode.OFF,
    memory_reclaim=StrategyMode.OFF,
    missing="no control groups",
    problems=(),
    unavailable={},
)
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path, monkeypatch, a={"a1": size(8)}, b={"b1": size(8)})
    world.frameworks["a"].nodes["a1"].allocated = size(1.5, 0.5)
    world.used = size(3)
    world.run(5)
    return world


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def agent_of(world: World) -> Evictor:
    return Evictor(NODE, QosPolicy(), TerminationsFile(world.state_dir, boot_id="b"), world.now)


def families_of(world: World, problems: int = 0, agent: Evictor | None = None) -> list[Metric]:
    process = ProcessStatus(
        uptime_seconds=1.0,
        config_file="f",
        refused_files=(RefusedFile(file="f", since=0.0, problems=("wrong",) * problems),) if problems else (),
    )
    status = run_status(world.controller, process, world.now)
    switches = world.controller.journal.memory.switches
    return metrics.families(status, switches, agent or agent_of(world), NO_THROTTLING)


def samples_of(families: list[Metric]) -> Series:
    """All samples by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def scraped(world: World) -> Series:
    """All samples by name and labels."""
    return samples_of(families_of(world, 2))


def value(world: World, name: str, **labels: str) -> float | None:
    return scraped(world).get((name, tuple(sorted(labels.items()))))


def page(port: int, seconds: float = 5) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=seconds) as answer:
        return str(answer.read().decode())


# The page


def test_the_page_of_a_small_state(world: World, port: int) -> None:
    stop = metrics_server.serve("127.0.0.1", port, lambda: families_of(world))
    try:
        lines = page(port).splitlines()
    finally:
        stop()
    labels = 'cluster="alpha/a",framework_node="a1",node="n1"'
    for line in (
        "# HELP fallow_node_batch_cpu_cores What the node can lend now.",
        "# TYPE fallow_node_batch_cpu_cores gauge",
        'fallow_node_batch_cpu_cores{node="n1"} 7.0',
        'fallow_node_batch_memory_bytes{node="n1"} 7.516192768e+09',
        f"fallow_row_allocated_cpu_cores{{{labels}}} 1.5",
        f"fallow_row_in_force_cpu_cores{{{labels}}} 3.5",
        f"fallow_row_belief_cpu_cores{{{labels}}} 3.5",
        f"fallow_row_offer_cpu_cores{{{labels}}} 3.5",
        'fallow_cluster_switch{cluster="alpha/a",state="lend"} 1.0',
        'fallow_plugin_lane_state{cluster="alpha/a",lane="reads",state="ok"} 1.0',
        'fallow_plugin_lane_state{cluster="alpha/a",lane="reads",state="stalled"} 0.0',
        "# TYPE fallow_offers_sent_total counter",
        'fallow_offers_sent_total{cluster="alpha/a"} 1.0',
        "fallow_config_problems 0.0",
        "fallow_journal_writable 1.0",
    ):
        assert line in lines


def test_the_page_can_be_read_by_a_parser(world: World, port: int) -> None:
    stop = metrics_server.serve("127.0.0.1", port, lambda: families_of(world))
    try:
        names = {family.name for family in text_string_to_metric_families(page(port))}
    finally:
        stop()
    assert {family.name for family in families_of(world)} <= names


def test_an_address_that_is_taken_is_a_clear_error() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        text = f"cannot serve metrics on 127.0.0.1:{port}: Address already in use; set metrics, or metrics: off"
        with pytest.raises(FallowError, match=text):
            metrics_server.serve("127.0.0.1", port, list)


def test_a_scrape_while_the_loop_hangs_fails_and_does_not_hang(
    world: World,
    port: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(inbox, "ANSWER_SECONDS", 0.05)
    loop = Inbox()
    stop = metrics_server.serve("127.0.0.1", port, lambda: loop.ask(lambda: families_of(world)))
    try:
        with pytest.raises(http.client.RemoteDisconnected):
            page(port)
    finally:
        stop()
    (record,) = caplog.records
    assert record.getMessage().startswith('scrape_failed reason="Fallow is busy or stopping')
    assert capfd.readouterr().err == ""


def test_silent_connections_get_no_thread_each_and_keep_nobody_from_the_page(world: World, port: int) -> None:
    stop = metrics_server.serve("127.0.0.1", port, lambda: families_of(world))
    before = threading.active_count()
    silent = [
        socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(2 * metrics_server.MOST_CONNECTIONS)
    ]
    try:
        assert "fallow_config_problems" in page(port)
        assert threading.active_count() == before
        assert silent[0].recv(1) == b""  # the oldest ones gave way
    finally:
        stop()
        for each in silent:
            each.close()


def test_a_client_that_says_nothing_is_not_waited_for_forever(
    port: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(metrics_server, "CLIENT_SECONDS", 0.05)
    stop = metrics_server.serve("127.0.0.1", port, list)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as silent:
            assert silent.recv(1) == b""
    finally:
        stop()
    assert caplog.records == []


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"HTTP/1.1 405 "),
        (b"GET /other HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 "),
        (b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 "),
        (b"\xff\xfe\r\n\r\n", b"HTTP/1.1 405 "),
        (b"GET /" + b"x" * metrics_server.MOST_REQUEST_BYTES, b""),
    ],
)
def test_a_request_that_is_none_gets_a_status_or_is_closed(port: int, request_text: bytes, status: bytes) -> None:
    stop = metrics_server.serve("127.0.0.1", port, list)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(request_text)
            with suppress(ConnectionResetError):
                assert client.recv(13) == status
    finally:
        stop()


def test_a_page_that_its_client_takes_slowly_is_sent_whole_and_others_get_theirs(port: int) -> None:
    family = GaugeMetricFamily("a", "x" * (4 << 20), value=1)
    stop = metrics_server.serve("127.0.0.1", port, lambda: [family])
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as slow:
            slow.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert len(page(port)) > 4 << 20
            answer = slow.makefile("rb").read()
        assert answer.endswith(b"a 1.0\n")
    finally:
        stop()


def test_a_mistake_in_a_scrape_is_an_event(
    port: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> list[Metric]:
        raise LookupError("no")

    stop = metrics_server.serve("127.0.0.1", port, fail)
    try:
        with pytest.raises(urllib.error.HTTPError):
            page(port)
    finally:
        stop()
    assert [record.getMessage() for record in caplog.records] == ["scrape_failed reason=LookupError('no')"]
    assert capfd.readouterr().err == ""


def test_a_file_whose_name_is_not_utf8_does_not_end_the_page(world: World, port: int) -> None:
    file = os.fsdecode(b"clusters.d/\xff.yaml")
    refused = RefusedFile(file=file, since=0.0, problems=("wrong",))
    families = metrics._files([refused], ConfigReads(taken=1))
    stop = metrics_server.serve("127.0.0.1", port, lambda: list(families))
    try:
        assert 'fallow_config_file_problems{file="clusters.d/\\\\udcff.yaml"} 1.0' in page(port)
    finally:
        stop()


def test_nothing_listens_after_the_end(port: int) -> None:
    metrics_server.serve("127.0.0.1", port, list)()
    with pytest.raises(urllib.error.URLError):
        page(port)


# Values


def test_sums_of_a_node(world: World) -> None:
    assert value(world, "fallow_node_capacity_cpu_cores", node="n1") == 10
    assert value(world, "fallow_node_used_cpu_cores", node="n1") == 3
    assert value(world, "fallow_node_batch_used_cpu_cores", node="n1") == 0
    assert value(world, "fallow_node_allocated_memory_bytes", node="n1") == GIB / 2
    assert value(world, "fallow_node_believed_cpu_cores", node="n1") == 7
    assert value(world, "fallow_node_exposure_cpu_cores", node="n1") == 0
    assert value(world, "fallow_node_overdraft_cpu_cores", node="n1") == 0
    assert value(world, "fallow_node_cpu_sample_age_seconds", node="n1") == 0
    world.used = size(9)
    world.tick()
    assert value(world, "fallow_node_exposure_cpu_cores", node="n1") == 6
    assert value(world, "fallow_node_overdraft_cpu_cores", node="n1") == 0.5


def test_what_is_not_known_has_no_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(8)})
    world.frameworks["a"].reports_fail = ConnectionError("refused")
    world.controller.tick({})
    world.now += 100
    world.controller.tick({})
    names = {name for name, _ in scraped(world)}
    assert not names & {
        "fallow_node_capacity_cpu_cores",
        "fallow_node_batch_memory_bytes",
        "fallow_node_cpu_sample_age_seconds",
        "fallow_cluster_report_age_seconds",
        "fallow_row_in_force_cpu_cores",
    }
    assert value(world, "fallow_plugin_call_failures_total", cluster="alpha/a") == 1


def test_ages_grow(world: World) -> None:
    world.measured_at = world.now
    world.frameworks["a"].reports_fail = ConnectionError("refused")
    reported_at = world.cluster("a").reported_at
    assert reported_at is not None
    world.run(50)
    assert value(world, "fallow_node_memory_sample_age_seconds", node="n1") == 50
    assert value(world, "fallow_cluster_report_age_seconds", cluster="alpha/a") == world.now - reported_at > 40


def test_no_series_is_left_of_a_row_that_has_gone(world: World) -> None:
    node = world.frameworks["b"].nodes["b1"]
    assert any(("framework_node", "b1") in labels for _, labels in scraped(world))
    node.state = NodeState.GONE
    world.run(15)
    node.listed = False
    world.run(15)
    assert not any(("framework_node", "b1") in labels for _, labels in scraped(world))
    assert any(("framework_node", "a1") in labels for _, labels in scraped(world))


def test_a_cluster_without_an_instance_is_down(world: World) -> None:
    world.start("a")
    assert value(world, "fallow_cluster_up", cluster="alpha/a") == 1
    assert value(world, "fallow_cluster_up", cluster="alpha/b") == 0
    assert value(world, "fallow_config_problems") == 2


def test_a_kind_of_call_that_fails_is_seen_while_others_succeed(world: World) -> None:
    world.frameworks["b"].reports_fail = ConnectionError("refused")
    world.run(15)
    failing = {call: value(world, "fallow_plugin_call_failing", cluster="alpha/b", call=call) for call in CALLS}
    assert failing == {"report": 1, "list_tasks": 0, "offers": 0}
    assert value(world, "fallow_plugin_call_failing", cluster="alpha/a", call="report") == 0


def test_the_state_of_a_switch_is_one_of_all_states(world: World) -> None:
    world.controller.set_switch("alpha/b", SwitchState.HOLD, "ada", "")
    states = {state: value(world, "fallow_cluster_switch", cluster="alpha/b", state=state) for state in SwitchState}
    assert states == {"lend": 0, "hold": 1, "drain": 0, "stop": 0, "restored": 0}


def test_a_journal_that_cannot_be_written_is_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", fail)
    monkeypatch.setattr(os, "fsync", fail)
    world.controller.leave(ExitMode.FLOOR)
    world.run(2)
    assert value(world, "fallow_journal_writable") == 0


def test_tasks_are_counted_by_cluster_and_state_and_terminations_by_strategy(world: World) -> None:
    agent = agent_of(world)
    agent.tasks = tuple(
        seen(name, cluster="alpha/a", terminating=terminating)
        for name, terminating in (("t1", False), ("t2", False), ("t3", True))
    )
    agent.terminated["alpha/a", "memory_evict"] = 4
    found = samples_of(families_of(world, agent=agent))

    def tasks(cluster: str, state: str) -> float:
        return found["fallow_node_tasks", (("cluster", cluster), ("node", "n1"), ("state", state))]

    assert [tasks("alpha/a", state) for state in TaskState] == [0, 2, 1]
    assert [tasks("alpha/b", state) for state in TaskState] == [0, 0, 0]
    labels = (("cluster", "alpha/a"), ("node", "n1"), ("strategy", "memory_evict"))
    assert found["fallow_tasks_terminated_total", labels] == 4


def test_a_cluster_whose_tasks_were_never_listed_has_no_number_of_them(world: World) -> None:
    world.cluster("b").lists.clear()
    clusters = {dict(labels)["cluster"] for name, labels in scraped(world) if name == "fallow_node_tasks"}
    assert clusters == {"alpha/a"}


def test_take_backs_that_started_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    takes_back = ResourceCapability(honoured=True, takes_back=True, take_back_charged=False)
    monkeypatch.setattr(fake_framework, "HONOURED", takes_back)
    accounts = {"a": AccountPolicy(take_back=TakeBack.ALLOWED)}
    world = World(tmp_path, monkeypatch, accounts=accounts, a={"a1": size(8)}, b={"b1": size(8)})
    policy = world.controller.state.take_back
    world.controller.state.take_back = replace(policy, mode=PublishingMode.ENFORCE)
    world.run(5)
    world.frameworks["a"].nodes["a1"].allocated = size(4)
    world.run(5)
    world.used = size(7)
    seconds = max(policy.after_seconds.values())
    world.run(seconds + 10)
    assert value(world, "fallow_take_backs_started_total", cluster="alpha/a") == len(policy.after_seconds)
    assert value(world, "fallow_take_backs_started_total", cluster="alpha/b") == 0


# Names


def test_metric_names_follow_the_conventions(world: World) -> None:
    families = families_of(world)
    assert len({family.name for family in families}) == len(families)
    for family in families:
        assert isinstance(family, GaugeMetricFamily | CounterMetricFamily)
        check_name(family)


def check_name(family: Metric) -> None:
    """Snake case below one prefix; base units, once, at the end; `_total` for counters and only there; a help text."""
    assert re.fullmatch(r"fallow(_[a-z]+)+", family.name)
    words = family.name.split("_")
    units = [word for word in words if word in {"seconds", "bytes", "cores"}]
    assert len(units) <= 1
    assert not units or words[-1] == units[0]
    assert not {"milli", "milliseconds", "ms", "mb", "gib", "kib", "mib", "minutes", "percent", "total"} & set(words)
    assert ("cpu" in words and words[-1] != "seconds") == ("cores" in words)
    assert all(sample.name == family.name + "_total" for sample in family.samples if family.type == "counter")
    assert all(sample.name == family.name for sample in family.samples if family.type == "gauge")
    assert family.documentation.endswith(".")
    assert all(re.fullmatch(r"[a-z_]+", label) for sample in family.samples for label in sample.labels)


@pytest.mark.parametrize("make", [GaugeMetricFamily, CounterMetricFamily])
def test_the_check_of_names_finds_mistakes(make: Callable[..., Metric]) -> None:
    for name in ("fallow_cpu_milli", "fallow_bytes_memory_bytes", "Fallow_x", "other_x", "fallow_seconds_age"):
        with pytest.raises(AssertionError):
            check_name(make(name, "Help."))


def test_a_switch_of_any_scope_and_what_is_refused_are_seen(world: World) -> None:
    world.controller.set_switch("all", SwitchState.DRAIN, "ada", "")
    world.run(3)
    world.used = size(-1)
    world.run(3)
    assert value(world, "fallow_switch", scope="all", state="drain") == 1
    assert value(world, "fallow_switch", scope="all", state="lend") == 0
    assert value(world, "fallow_input_refused", source="nodes", kind="sample", of=f"cpu of {NODE.name}") == 1
