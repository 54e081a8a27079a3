"""Signals a container through the ResourceManager, by IPC (signalToContainer).

The NodeManager signals the container's process group once, at its next heartbeat; no SIGKILL follows a graceful signal.
It drops a signal for a container that has no process yet.
"""

from typing import Final

from fallow_yarn.ipc.protos import yarn_pb2
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.nodes import Call

METHOD: Final = "signalToContainer"
EPOCH_SHIFT: Final = 40


def signal_container(call: Call, container: ContainerId, deadline: Deadline, *, force: bool) -> None:
    """Request SIGTERM, or with `force` SIGKILL. A YarnError if the ResourceManager refuses.

    It refuses unknown or finished containers, and users who may not modify the application.
    """
    request = yarn_pb2.SignalContainerRequest()
    attempt = request.container.attempt
    attempt.application.id = container.application
    attempt.application.cluster_timestamp = container.cluster_timestamp
    attempt.attempt = container.attempt
    request.container.id = container.epoch << EPOCH_SHIFT | container.number
    request.command = yarn_pb2.FORCEFUL_SHUTDOWN if force else yarn_pb2.GRACEFUL_SHUTDOWN
    call(METHOD, request.SerializeToString(), deadline)
