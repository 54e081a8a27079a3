import socket
import threading
import urllib.request
from dataclasses import replace
from typing import TYPE_CHECKING

from core.tests.fake_agent_process import Started, row

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client.core import Metric


def samples(started: Started) -> dict[str, float]:
    """All samples by name and the values of their labels."""
    found: list[Metric] = started.agent.metrics()
    return {" ".join([each.name, *each.labels.values()]): each.value for family in found for each in family.samples}


def test_an_agent_shows_its_node_its_tasks_and_its_plugins(started: Started) -> None:
    found = samples(started)
    assert found["fallow_node_capacity_cpu_cores n1"] == 10
    assert found["fallow_node_tasks n1 alpha/etl running"] == 2
    assert found["fallow_cluster_up alpha/etl"] == 1
    assert found["fallow_cluster_switch alpha/etl lend"] == 1
    assert found["fallow_throttle_available n1"] in (0, 1)  # as this host has control groups
    assert not any(name.startswith("fallow_row_") for name in found)  # what is sent is a controller's


def test_whether_a_row_of_a_ledger_counts_is_shown(started: Started) -> None:
    assert samples(started)["fallow_node_grant_valid n1"] == 0
    started.put(row(may_pay=0))
    started.until(lambda: samples(started)["fallow_node_grant_valid n1"] == 1)


def test_what_an_agent_ended_is_counted_by_strategy(started: Started) -> None:
    started.agent.evictor.terminated["alpha/etl", "memory_evict"] += 1
    assert samples(started)["fallow_tasks_terminated_total n1 alpha/etl memory_evict"] == 1


def test_an_agent_serves_them_where_the_file_says(started: Started) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address, port = probe.getsockname()
    started.agent.config = replace(started.settings, metrics=(address, port))
    started.agent.inbox.ask = lambda function: function()  # type: ignore[method-assign]
    stop: Callable[[], None] = started.agent._serve_metrics()
    try:
        with urllib.request.urlopen(f"http://{address}:{port}/metrics", timeout=5) as answer:
            assert 'fallow_cluster_up{cluster="alpha/etl"} 1.0' in answer.read().decode()
    finally:
        stop()


def test_without_an_address_nothing_is_served(started: Started) -> None:
    before = threading.active_count()
    started.agent._serve_metrics()()
    assert threading.active_count() == before
