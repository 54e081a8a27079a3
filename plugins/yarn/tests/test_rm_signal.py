import pytest

from fallow_yarn.ipc.protos import yarn_pb2
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.signal import signal_container

LATER = Deadline(0.0, clock=lambda: 0.0)


@pytest.mark.parametrize(("force", "command"), [(False, "GRACEFUL_SHUTDOWN"), (True, "FORCEFUL_SHUTDOWN")])
def test_a_signal_names_the_container_and_its_attempt(force: bool, command: str) -> None:
    sent: list[tuple[str, bytes, Deadline]] = []

    def call(method: str, argument: bytes, deadline: Deadline) -> bytes:
        sent.append((method, argument, deadline))
        return b""

    container = ContainerId.parse("container_e17_1410901177871_0012_02_000345")
    assert container is not None
    signal_container(call, container, LATER, force=force)
    ((method, argument, deadline),) = sent
    assert (method, deadline) == ("signalToContainer", LATER)
    request = yarn_pb2.SignalContainerRequest.FromString(argument)
    attempt = request.container.attempt
    assert (attempt.application.cluster_timestamp, attempt.application.id) == (1410901177871, 12)
    assert (attempt.attempt, request.container.id) == (2, (17 << 40) + 345)
    assert yarn_pb2.SignalCommand.Name(request.command) == command


def test_the_request_is_what_a_resource_manager_takes() -> None:
    """The bytes that a real one has taken for this container."""
    sent: list[bytes] = []

    def call(_method: str, argument: bytes, _deadline: Deadline) -> bytes:
        sent.append(argument)
        return b""

    container = ContainerId.parse("container_1795976558743_0001_01_000004")
    assert container is not None
    signal_container(call, container, LATER, force=False)
    assert sent == [bytes.fromhex("0a11120d0a0908011097f1adc4a234100118041002")]
