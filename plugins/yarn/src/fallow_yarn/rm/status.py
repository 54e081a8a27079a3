"""Reads the HA state of a ResourceManager, by IPC (HAServiceProtocol), or from its page if IPC is not permitted."""

from enum import StrEnum
from typing import Final

from fallow_yarn.errors import AccessDeniedError, NoSuchCallError, ProtocolError
from fallow_yarn.http.web import Web
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.facts import read_identity
from fallow_yarn.rm.nodes import Call

HA_PROTOCOL: Final = "org.apache.hadoop.ha.HAServiceProtocol"
METHOD: Final = "getServiceStatus"
_STATE_FIELD: Final = 0x08  # field 1, a varint: the only one that is read


class Status(StrEnum):
    """The HA state of a ResourceManager, in Hadoop's words."""

    INITIALIZING = "INITIALIZING"
    ACTIVE = "ACTIVE"
    STANDBY = "STANDBY"
    UNKNOWN = "UNKNOWN"


_STATES: Final = {0: Status.INITIALIZING, 1: Status.ACTIVE, 2: Status.STANDBY}


def read_status(call: Call, web: Web, deadline: Deadline) -> Status:
    """The state that it reports: by IPC, or from the page for a user without admin rights or a cluster without HA.

    The state is in the first bytes of the reply, so that its message type is not needed.
    """
    try:
        reply = call(METHOD, b"", deadline)
    except (AccessDeniedError, NoSuchCallError):
        state = read_identity(web, deadline).ha_state
        return Status(state) if state in list(Status) else Status.UNKNOWN
    if len(reply) < 2 or reply[0] != _STATE_FIELD:
        raise ProtocolError(f"{web.endpoint.host}: the answer to {METHOD} lacks the state")
    return _STATES.get(reply[1], Status.UNKNOWN)
