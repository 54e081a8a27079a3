import pytest

from fallow_yarn.ipc.protos import yarn_pb2
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.nodes import list_nodes
from fallow_yarn.rm.refresh import MOST_GRACE_SECONDS, refresh_nodes


@pytest.mark.parametrize(
    ("grace_seconds", "message"), [(0, "08021000"), (600, "080210d804"), (MOST_GRACE_SECONDS, "080210ffffffff07")]
)
def test_the_request_is_graceful_and_always_says_for_how_long(grace_seconds: int, message: str) -> None:
    calls: list[tuple[str, str]] = []

    def call(method: str, request: bytes, _deadline: Deadline) -> bytes:
        calls.append((method, request.hex()))
        return b""

    refresh_nodes(call, grace_seconds, Deadline.after(1))
    assert calls == [("refreshNodes", message)]


@pytest.mark.parametrize("grace_seconds", [-1, MOST_GRACE_SECONDS + 1])
def test_a_grace_that_means_something_else_is_not_sent(grace_seconds: int) -> None:
    def call(_method: str, _request: bytes, _deadline: Deadline) -> bytes:
        raise AssertionError("sent")

    with pytest.raises(ValueError, match=f"a grace of {grace_seconds} s"):
        refresh_nodes(call, grace_seconds, Deadline.after(1))


@pytest.mark.parametrize(("shown", "meant"), [(None, None), (0, 0), (600, 600), ((1 << 32) - 1, -1)])
def test_a_node_tells_the_grace_that_it_was_given(shown: int | None, meant: int | None) -> None:
    report = yarn_pb2.NodeReport(state=yarn_pb2.DECOMMISSIONING, decommissioning_timeout=shown)
    report.node_id.host, report.node_id.port = b"n1", 1
    report.capability.memory_mb = 1
    answer = yarn_pb2.GetClusterNodesResponse(reports=[report]).SerializeToString()
    (node,) = list_nodes(lambda *_: answer, "rm", Deadline.after(1))
    assert node.grace_seconds == meant
