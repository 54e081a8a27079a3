"""Has the ResourceManager read its exclude and include files again, by IPC (refreshNodes).

Only the graceful one of the three kinds is used. The normal kind terminates all containers of every excluded node at
once, also of nodes that somebody else decommissions gracefully; the forceful kind does so for the latter. A grace of 0
seconds terminates only the containers of newly excluded nodes.
"""

from typing import Final

from fallow_yarn.ipc.protos import yarn_pb2
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.nodes import Call

METHOD: Final = "refreshNodes"
MOST_GRACE_SECONDS: Final = 2147483647


def refresh_nodes(call: Call, grace_seconds: int, deadline: Deadline) -> None:
    """Refresh; newly excluded nodes without a timeout in their file get this grace, from 0 on.

    It replaces the grace of nodes that are being decommissioned already, counted from the start of that. Nodes that are
    no longer excluded are in use again. ValueError for a grace that must not be sent.
    """
    if not 0 <= grace_seconds <= MOST_GRACE_SECONDS:
        raise ValueError(f"a grace of {grace_seconds} s; expected 0 to {MOST_GRACE_SECONDS}")
    request = yarn_pb2.RefreshNodesRequest(kind=yarn_pb2.GRACEFUL, timeout=grace_seconds)
    call(METHOD, request.SerializeToString(), deadline)
