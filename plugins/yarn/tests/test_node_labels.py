"""Pending requests count for the nodes whose label they ask for."""

from dataclasses import replace

import pytest
from plugins.yarn.tests.diagnosis_fakes import Fakes
from plugins.yarn.tests.yarn_fakes import ETL, NODE_ID, Clock, FakeManager, entry, instance, reading
from plugins.yarn.tests.yarn_fakes import HOST as NODE

from fallow_hookspecs import CapacityReport, Pending, Resources
from fallow_yarn.errors import RefusedError
from fallow_yarn.ipc.protos import yarn_pb2
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.reports.reporter import REQUESTS_SECONDS
from fallow_yarn.rm.applications import Request
from fallow_yarn.rm.nodes import list_nodes
from fallow_yarn.rm.readings import NodeReading

GPU, OTHER = "gpu", "worker-2:45454"
MIB = 1 << 20
NOTHING = Pending(total=Resources(0, 0))
DEFAULT = Request(size=Size(1024, 1), containers=2)
LABELLED = Request(size=Size(512, 1), containers=3, label=GPU)


def report(yarn: YarnInstance) -> CapacityReport:
    return yarn.report_capacity((NODE,), (), 10.0)


def set_up(manager: FakeManager, *requests: Request, exclusive: bool = True, own: str = GPU, other: str = "") -> None:
    """A cluster with a node of this host, another node, and these pending requests."""
    manager.labels_now = {GPU: exclusive}
    waiting = sum(request.containers for request in requests if not request.label)
    nodes: tuple[NodeReading, ...] = (entry(label=own), entry(OTHER, label=other))
    manager.reading_now = reading(*nodes, pending=Size(1024 * waiting, waiting), pending_containers=waiting)
    manager.applications_now = (replace(ETL, requests=requests),)


def test_without_labels_nothing_is_said_of_partitions(manager: FakeManager) -> None:
    set_up(manager, DEFAULT, own="")
    found = report(instance(manager))
    assert (found.rows[0].partitions, found.pending_by_partition) == ((), {})


def test_a_node_with_an_exclusive_label_serves_the_requests_for_it_alone(manager: FakeManager) -> None:
    set_up(manager, DEFAULT, LABELLED)
    found = report(instance(manager))
    assert [row.partitions for row in found.rows] == [(GPU,)]
    assert {name: part.total for name, part in found.pending_by_partition.items()} == {
        "": Resources(2000, 2048 * MIB),
        GPU: Resources(3000, 1536 * MIB),
    }
    assert found.pending is not None
    assert found.pending.total == Resources(5000, 3584 * MIB)
    assert "3 containers of al in root.batch for gpu" in found.pending.detail


def test_the_smallest_request_of_the_default_partition_is_not_that_of_a_label(manager: FakeManager) -> None:
    set_up(manager, DEFAULT, LABELLED)
    default = report(instance(manager)).pending_by_partition[""]
    assert default.smallest == default.largest == Resources(1000, 1024 * MIB)


def test_a_node_whose_label_is_not_exclusive_serves_the_default_partition_too(manager: FakeManager) -> None:
    set_up(manager, DEFAULT, exclusive=False)
    assert report(instance(manager)).rows[0].partitions == (GPU, "")


def test_a_node_without_a_label_serves_the_default_partition_alone(manager: FakeManager) -> None:
    set_up(manager, DEFAULT, own="", other=GPU)
    assert report(instance(manager)).rows[0].partitions == ("",)


def test_requests_for_a_label_are_read_though_the_scheduler_counts_none(manager: FakeManager) -> None:
    set_up(manager, LABELLED)
    found = report(instance(manager))
    assert found.pending_by_partition[GPU].total == Resources(3000, 1536 * MIB)
    assert found.pending_by_partition[""] == NOTHING


def test_what_is_pending_for_a_label_is_unknown_where_requests_cannot_be_read(manager: FakeManager) -> None:
    clock = Clock()
    set_up(manager, LABELLED)
    yarn = instance(manager, clock)
    report(yarn)
    manager.applications_failure = RefusedError("rm:8088: connection refused")
    clock.now += REQUESTS_SECONDS
    assert GPU in report(yarn).pending_by_partition
    clock.now += REQUESTS_SECONDS
    assert report(yarn).pending_by_partition == {"": NOTHING}


def test_a_label_that_cannot_be_read_counts_as_exclusive_and_says_so(manager: FakeManager) -> None:
    set_up(manager, DEFAULT, exclusive=False)
    manager.labels_failure = RefusedError("rm:8088: connection refused")
    found = report(instance(manager))
    assert found.rows[0].partitions == (GPU,)
    assert "node labels count as exclusive" in found.detail


@pytest.mark.parametrize(("labels", "expected"), [((), ""), ((b"",), ""), ((b"gpu",), GPU)])
def test_the_label_of_a_node_is_in_the_list_of_nodes(labels: tuple[bytes, ...], expected: str) -> None:
    response = yarn_pb2.GetClusterNodesResponse()
    made = response.reports.add(labels=labels)
    made.node_id.host, made.node_id.port = b"worker-1", 45454
    made.capability.memory_mb = 1
    (node,) = list_nodes(lambda *_: response.SerializeToString(), "rm", Deadline.after(5))
    assert node.label == expected


def test_doctor_says_what_an_exclusive_label_means_for_what_is_lent() -> None:
    fakes = Fakes()
    set_up(fakes.manager, DEFAULT, LABELLED)
    found = fakes.findings()[f"label of {NODE_ID}"]
    assert found.ok is None
    assert "only requests for gpu can use what is lent here" in found.detail
    assert "3 containers for gpu, 2 for the default partition" in found.detail
    fakes.manager.labels_now = {GPU: False}
    assert fakes.findings()[f"label of {NODE_ID}"].ok is True
    fakes.manager.labels_failure = RefusedError("rm:8088: connection refused")
    assert "taken for exclusive" in fakes.findings()[f"label of {NODE_ID}"].detail
