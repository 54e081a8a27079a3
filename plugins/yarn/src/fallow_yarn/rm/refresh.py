"""Having the ResourceManager read its lists of nodes again, by IPC (refreshNodes).

Of the three kinds only the graceful one is used. The normal one ends at once what runs on every excluded node, those
included that somebody else is decommissioning gracefully, and the forceful one ends all of those. A grace of 0 seconds
ends what runs on the nodes that are newly excluded, and on no other.
"""

from typing import Final

from fallow_yarn.ipc.protos import yarn_pb2
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.nodes import Call

METHOD: Final = "refreshNodes"
MOST_GRACE_SECONDS: Final = 2147483647


def refresh_nodes(call: Call, grace_seconds: int, deadline: Deadline) -> None:
    """Read the lists again; newly excluded nodes get this grace, from 0 on, where their list gives them none itself.

    So do nodes that are being decommissioned already, in place of theirs and counted from when that began. Those that
    are no longer excluded are in use again. ValueError for a grace that must not be sent.
    """
    if not 0 <= grace_seconds <= MOST_GRACE_SECONDS:
        raise ValueError(f"a grace of {grace_seconds} s; expected 0 to {MOST_GRACE_SECONDS}")
    request = yarn_pb2.RefreshNodesRequest(kind=yarn_pb2.GRACEFUL, timeout=grace_seconds)
    call(METHOD, request.SerializeToString(), deadline)
