"""Hundreds of simulated NodeManagers at a real ResourceManager: the small form of the benchmark `rm_sync`."""

from pathlib import Path
from random import Random

import pytest
from tests.benchmarks.fleet import sending
from tests.benchmarks.fleet.cluster import CONFIGURED, Fleet
from tests.e2e.yarn.jars import Jars

from fallow_hookspecs import Node, NodeState
from fallow_yarn.publishing.publisher import BATCH_SIZE

NODES = 2 * BATCH_SIZE + 50


@pytest.mark.timeout(300)
def test_all_sizes_are_changed_by_several_calls_and_read_back_while_their_containers_run_on(
    hadoop_jars: Jars, tmp_path: Path
) -> None:
    with Fleet(hadoop_jars, tmp_path / "cluster", NODES, heartbeat_seconds=2) as fleet:
        plugin = fleet.instance()
        try:
            nodes = (Node(name=sending.HOST),)
            before = plugin.report_capacity(nodes, (), 60).rows
            sizes = sending.varied(fleet.ids, Random(1))
            sending.by_plugin(plugin, sizes)()
            fleet.wait_until_right(sending.total_of(sizes))
            after = plugin.report_capacity(nodes, (), 60).rows
        finally:
            plugin.close()
    expected = {offer.framework_node: offer.total for offer in sending.offers(sizes)}
    configured = sending.offers(dict.fromkeys(fleet.ids, CONFIGURED))[0].total
    assert {row.framework_node: row.in_force for row in before} == dict.fromkeys(expected, configured)
    assert {row.framework_node: row.in_force for row in after} == expected
    assert {row.state for row in after} == {NodeState.RUNNING}
    assert {row.framework_node: row.allocated for row in after} == {r.framework_node: r.allocated for r in before}
    assert all(row.allocated.memory_bytes > 0 for row in after)
