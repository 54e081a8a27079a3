"""Turns error answers of a Hadoop server into exceptions."""

from typing import Final

from fallow_yarn.errors import (
    AccessDeniedError,
    AuthenticationRefusedError,
    NoSuchCallError,
    RemoteError,
    StandbyError,
    UnknownNodeError,
    first_line,
)
from fallow_yarn.ipc.protos.rpc_pb2 import ResponseHeader
from fallow_yarn.ipc.wire import Answer
from fallow_yarn.net.endpoint import Endpoint

_UNKNOWN_NODE: Final = "unrecognized node"


def remote_error(endpoint: Endpoint, method: str, user: str, answer: Answer) -> RemoteError:
    """The exception for an error answer."""
    detail = first_line(answer.text)
    kind = first_line(answer.exception)
    said = f"{endpoint}: {method} refused: {kind.rpartition('.')[2] or 'no class'}: {detail or 'no text'}"
    name = kind.rpartition(".")[2]
    if name == "StandbyException":
        return StandbyError(f"{said}; it is a standby or has just started", kind=kind, detail=detail)
    if _is_access_denied(name, detail, fatal=answer.fatal):
        advice = f"the user {user!r} needs the right: see yarn.admin.acl and hadoop-policy.xml of the ResourceManager"
        return AccessDeniedError(f"{said}; {advice}", kind=kind, detail=detail)
    if answer.code == ResponseHeader.FATAL_UNAUTHORIZED or (answer.fatal and name == "AccessControlException"):
        advice = f"if the cluster has Kerberos, set spec.kerberos; if not, this is not {endpoint.purpose}"
        return AuthenticationRefusedError(f"{said}; {advice} ({endpoint.hadoop_key})", kind=kind, detail=detail)
    if answer.code in (ResponseHeader.ERROR_NO_SUCH_METHOD, ResponseHeader.ERROR_NO_SUCH_PROTOCOL):
        advice = f"expected {endpoint.purpose} ({endpoint.hadoop_key}): is it another port of the ResourceManager?"
        return NoSuchCallError(f"{said}; {advice}", kind=kind, detail=detail)
    if _UNKNOWN_NODE in detail:
        node = detail.rpartition(f"{_UNKNOWN_NODE}: ")[2] if f"{_UNKNOWN_NODE}: " in detail else None
        return UnknownNodeError(said, node=node, kind=kind, detail=detail)
    # Any other error may have happened after the work was done.
    return RemoteError(said, kind=kind, detail=detail, maybe_sent=True)


def _is_access_denied(name: str, detail: str, *, fatal: bool) -> bool:
    """A denied call has the cause in its text; a denied connection has an exception class of its own."""
    return name == "AuthorizationException" or (not fatal and "AccessControlException" in (name + detail))
