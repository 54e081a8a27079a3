import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_yarn.errors import ProtocolError
from fallow_yarn.ipc.protos import yarn_pb2
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.nodes import Node, State, list_nodes, updatable_ids

LATER = Deadline(0.0, clock=lambda: 0.0)


def report(host: bytes, state: str = "RUNNING", memory_mb: int = 4096) -> yarn_pb2.NodeReport:
    return yarn_pb2.NodeReport(
        node_id=yarn_pb2.NodeId(host=host, port=45454),
        http_address=host + b":8042",
        state=state,
        capability=yarn_pb2.Resource(memory_mb=memory_mb, virtual_cores=4),
        used=yarn_pb2.Resource(memory_mb=1024, virtual_cores=1),
        containers=2,
    )


def listed(*reports: yarn_pb2.NodeReport) -> tuple[Node, ...]:
    reply = yarn_pb2.GetClusterNodesResponse(reports=reports).SerializeToString()
    return decoded(reply)


def decoded(reply: bytes) -> tuple[Node, ...]:
    def call(method: str, request: bytes, _deadline: Deadline) -> bytes:
        assert (method, request) == ("getClusterNodes", b"")  # no state named: all states
        return reply

    return list_nodes(call, "rm1:8032", LATER)


def test_a_report_becomes_a_node() -> None:
    assert listed(report(b"h1")) == (
        Node(
            node_id="h1:45454",
            host="h1",
            http_address="h1:8042",
            state=State.RUNNING,
            capability=Size(4096, 4),
            custom=(),
            used=Size(1024, 1),
            containers=2,
        ),
    )


def test_further_resources_are_kept_as_they_came_and_the_two_known_ones_are_not_repeated() -> None:
    with_gpu = report(b"h1")
    for key, value in ((b"memory-mb", 4096), (b"vcores", 4), (b"yarn.io/gpu", 2)):
        with_gpu.capability.values.add(key=key, value=value)
    gpu = with_gpu.capability.values[2]
    gpu.MergeFromString(b"\x1a\x01G\x2a\x03tag")  # units and a tag, which this plugin has no names for
    (node,) = listed(with_gpu)
    (custom,) = node.custom
    assert (custom.name, custom.value) == ("yarn.io/gpu", 2)
    assert custom.message == b"\x0a\x0byarn.io/gpu\x10\x02\x1a\x01G\x2a\x03tag"


@pytest.mark.parametrize(
    ("host", "reported", "address"),
    [
        (b"h1", b"elsewhere.example.com:8042", "h1:8042"),
        (b"2001:db8:0:0:0:0:0:1", b"2001:db8:0:0:0:0:0:1:8042", "[2001:db8:0:0:0:0:0:1]:8042"),
        (b"h1", b"h1", ""),
        (b"h1", b"", ""),
    ],
)
def test_the_web_pages_of_a_node_are_on_the_host_of_its_id(host: bytes, reported: bytes, address: str) -> None:
    entry = report(host)
    entry.http_address = reported
    (node,) = listed(entry)
    assert node.http_address == address


def test_of_two_entries_with_one_id_the_active_one_counts() -> None:
    for order in ([0, 1], [1, 0]):
        reports = [report(b"h1", "LOST"), report(b"h1", "RUNNING")]
        assert [node.state for node in listed(*(reports[i] for i in order))] == [State.RUNNING]


def test_nodes_that_are_gone_cannot_be_updated() -> None:
    states = [state.value for state in State if state is not State.UNKNOWN]
    nodes = listed(*(report(state.encode(), state) for state in states))
    assert updatable_ids(nodes) == {f"{s}:45454" for s in ("NEW", "RUNNING", "UNHEALTHY", "DECOMMISSIONING")}


def test_a_state_without_a_name_is_unknown_and_spoils_nothing() -> None:
    encoded = report(b"h1").SerializeToString() + b"\x38\x63"  # state 99
    missing = report(b"h2")
    missing.ClearField("state")
    (first, second) = decoded(
        b"".join(b"\x0a" + bytes([len(entry)]) + entry for entry in (encoded, missing.SerializeToString()))
    )
    assert second.state is State.UNKNOWN
    assert first.node_id == "h1:45454"


@pytest.mark.parametrize("field", ["node_id", "capability"])
def test_an_entry_without_id_or_size_is_a_protocol_error(field: str) -> None:
    broken = report(b"h1")
    broken.ClearField(field)
    with pytest.raises(ProtocolError, match="rm1:8032: an entry in the list of nodes lacks"):
        listed(broken)


@given(st.binary(max_size=200))
def test_garbage_is_a_protocol_error_or_a_list(garbage: bytes) -> None:
    try:
        nodes = decoded(garbage)
    except ProtocolError:
        return
    assert len(nodes) <= len(garbage)


@pytest.mark.parametrize(
    "host", [b"h2\nevil", b"h2 evil", b"../etc", b"a/b", b"<host>", b"#h2", b"-h2", b"h2\x1b[2J", b"h\xff", b"a" * 300]
)
def test_a_node_whose_host_is_no_host_name_is_left_out_alone(host: bytes) -> None:
    assert [node.host for node in listed(report(b"h1"), report(host))] == ["h1"]


@pytest.mark.parametrize("port", [-1, 65_536, 1 << 30])
def test_a_node_whose_port_is_no_port_is_left_out_alone(port: int) -> None:
    other = report(b"h2")
    other.node_id.port = port
    assert [node.host for node in listed(report(b"h1"), other)] == ["h1"]


@pytest.mark.parametrize("host", [b"n-1.example.com", b"n_1", b"10.0.0.1", b"2001:db8:0:0:0:0:0:1", b"[::1]", b"n1."])
def test_names_and_addresses_as_hadoop_writes_them_are_hosts(host: bytes) -> None:
    assert [node.host for node in listed(report(host))] == [host.decode()]
