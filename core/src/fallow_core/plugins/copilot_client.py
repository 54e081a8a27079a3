"""An instance whose hooks are answered by a copilot.

Before each call the path of the socket is looked at anew. Another socket there means that the copilot was restarted:
then the connection is made anew, and the copilot asked who it is. So a restart costs the calls under way and no other,
and no process that took the socket's place is ever told anything without having been looked at.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import grpc

from fallow_core.plugins.copilot_path import Place, UntrustedPathError, check
from fallow_hookspecs import (
    API_LEVEL,
    CapacityReport,
    Finding,
    Instance,
    KillOrder,
    KillOutcome,
    Node,
    Offer,
    Placement,
    PluginError,
    TaskList,
    hookimpl,
)
from fallow_hookspecs.copilot import from_messages, to_messages
from fallow_hookspecs.copilot.status import OPTIONS, error_of, path_of
from fallow_hookspecs.copilot.v0 import copilot_pb2 as pb

DESCRIBE_SECONDS: Final = 5.0
START_SECONDS: Final = 3.0
"""How long a copilot that is started together with Fallow may take to serve."""
POLL_SECONDS: Final = 0.05

_CALLS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "Describe": pb.DescribeResponse.FromString,
    "ReportCapacity": pb.CapacityReport.FromString,
    "ListTasks": pb.TaskList.FromString,
    "KillTasks": pb.KillOutcome.FromString,
    "SetCgroupParent": pb.Placement.FromString,
    "Diagnose": pb.DiagnoseResponse.FromString,
}


class MisfitError(PluginError):
    """What serves at the path is no copilot, or not one for this Fallow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Connected:
    """A connection to one life of the copilot, and who it says it is."""

    place: Place
    channel: grpc.Channel
    calls: Mapping[str, Callable[..., Any]]
    description: pb.DescribeResponse

    def __str__(self) -> str:
        said = self.description
        package = f" of {said.distribution} {said.version}".rstrip() if said.distribution else f" {said.version}"
        return f"plugin {said.name!r}{package.rstrip()}"


class Link:
    """The connection to the copilot at one path; each lane calls it from its own thread."""

    def __init__(self, path: str, user: str | None, own_uid: int) -> None:
        self._path, self._user, self._own_uid = path, user, own_uid
        self._lock = threading.Lock()
        self._connected: _Connected | None = None
        self._closed = False

    def call(self, name: str, request: bytes, timeout_seconds: float) -> Any:
        """Make a call and return its message.

        :raises TryLater, Broken: the copilot says so.
        :raises PluginError: any other failure, in words for the operator.
        """
        begun = time.monotonic()
        connected = self.connect(timeout_seconds)
        return self._made(connected.calls[name], request, timeout_seconds, gone_seconds=time.monotonic() - begun)

    def connect(self, timeout_seconds: float) -> _Connected:
        """The connection to the copilot that serves now.

        :raises PluginError: there is none, the path cannot be trusted, or it is no copilot that fits.
        """
        place = check(self._path, self._user, self._own_uid)
        if not self._lock.acquire(timeout=timeout_seconds):
            raise PluginError(f"the copilot at {self._path} did not answer within {timeout_seconds:.3g} s")
        try:
            known = self._connected
            if known is not None and known.place.identity == place.identity:
                return known
            self._drop()
            self._connected = self._open(place, min(timeout_seconds, DESCRIBE_SECONDS))
            return self._connected
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the connection. Safe to repeat."""
        with self._lock:
            self._closed = True
            self._drop()

    def _drop(self) -> None:
        if self._connected is not None:
            self._connected.channel.close()
            self._connected = None

    def _open(self, place: Place, timeout_seconds: float) -> _Connected:
        if self._closed:
            raise PluginError("the connection was closed")
        channel = grpc.insecure_channel(f"unix:{self._path}", options=OPTIONS)
        try:
            calls: dict[str, Callable[..., Any]] = {
                name: channel.unary_unary(path_of(name), response_deserializer=parse) for name, parse in _CALLS.items()
            }
            description = self._made(calls["Describe"], b"", timeout_seconds)
            self._check_fits(description)
        except BaseException:
            channel.close()
            raise
        return _Connected(place=place, channel=channel, calls=calls, description=description)

    def _made(
        self, call: Callable[..., Any], request: bytes, timeout_seconds: float, *, gone_seconds: float = 0.0
    ) -> Any:
        try:
            return call(request, timeout=max(0.0, timeout_seconds - gone_seconds))
        except grpc.RpcError as error:
            raise self._in_words(cast("grpc.Call", error), timeout_seconds) from error  # it is both

    def _in_words(self, error: grpc.Call, timeout_seconds: float) -> PluginError:
        if (said := error_of(error)) is not None:
            return said
        code, text = error.code(), error.details() or ""
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return PluginError(f"the copilot at {self._path} did not answer within {timeout_seconds:.3g} s")
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return MisfitError(f"what serves at {self._path} is not a Fallow copilot of this version: {text}")
        if code is grpc.StatusCode.UNAVAILABLE:
            return PluginError(f"the copilot at {self._path} cannot be reached: {text}")
        if code in (grpc.StatusCode.ABORTED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN) and text:
            return PluginError(text)
        return PluginError(f"the copilot at {self._path} failed: {code.name}: {text}")

    def _check_fits(self, said: pb.DescribeResponse) -> None:
        if not said.name or not said.HasField("lowest_api_level") or not said.HasField("highest_api_level"):
            raise MisfitError(f"the copilot at {self._path} does not say its name and its API levels")
        lowest, highest = said.lowest_api_level, said.highest_api_level
        if not lowest <= API_LEVEL <= highest:
            raise MisfitError(
                f"the copilot at {self._path}, {said.name} {said.version}, is written for API levels {lowest} to "
                f"{highest}; this Fallow has level {API_LEVEL}"
            )


def open_client(path: str, user: str | None) -> Instance:
    """An instance with the hooks that the copilot at the path has. Waits a little for one that is being started.

    :raises PluginError: there is none, the path cannot be trusted, or it is no copilot that fits.
    """
    link = Link(path, user, os.geteuid())
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            connected = link.connect(DESCRIBE_SECONDS)
            break
        except (MisfitError, UntrustedPathError):
            raise
        except PluginError:
            if time.monotonic() >= end:
                raise
        time.sleep(POLL_SECONDS)
    hooks = {name: hook for name, hook in _HOOKS.items() if name in connected.description.hooks}
    made: Instance = type("Copilot", (_Copilot,), hooks)(link)
    return made


class _Copilot:
    """What every copilot has; the hooks come with what it says it implements."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.nodes: tuple[tuple[Node, ...], bytes] = ((), b"")

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        """The socket, who serves there, and what the copilot finds itself."""
        connected = self.link.connect(timeout_seconds)
        own = (
            Finding(subject="copilot's socket", ok=True, detail=connected.place.described),
            Finding(subject="copilot", ok=True, detail=str(connected)),
        )
        request = to_messages.diagnose_request(nodes).SerializeToString()
        return own + from_messages.findings(self.link.call("Diagnose", request, timeout_seconds))

    def close(self) -> None:
        """End the connection."""
        self.link.close()


def _nodes(self: _Copilot, nodes: tuple[Node, ...]) -> bytes:
    """The nodes of a request. They are thousands and seldom change: the same ones are converted once."""
    known, data = self.nodes
    if nodes is not known:
        data = to_messages.report_request(nodes, ()).SerializeToString()
        self.nodes = (nodes, data)
    return data


@hookimpl
def report_capacity(
    self: _Copilot, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
) -> CapacityReport:
    """Ask, or pass on the offers."""
    # Messages in a row are one message with the fields of all.
    request = _nodes(self, nodes) + to_messages.report_request((), offers).SerializeToString()
    return from_messages.capacity_report(self.link.call("ReportCapacity", request, timeout_seconds))


@hookimpl
def list_tasks(self: _Copilot, node: Node, timeout_seconds: float) -> TaskList:
    """Ask for the tasks."""
    request = to_messages.list_request(node).SerializeToString()
    return from_messages.task_list(self.link.call("ListTasks", request, timeout_seconds))


@hookimpl
def kill_tasks(self: _Copilot, node: Node, order: KillOrder, timeout_seconds: float) -> KillOutcome:
    """Pass on the order."""
    request = to_messages.kill_request(node, order).SerializeToString()
    return from_messages.kill_outcome(self.link.call("KillTasks", request, timeout_seconds))


@hookimpl
def set_cgroup_parent(self: _Copilot, node: Node, parent: str, timeout_seconds: float) -> Placement:
    """Pass on the directory."""
    request = to_messages.place_request(node, parent).SerializeToString()
    return from_messages.placement(self.link.call("SetCgroupParent", request, timeout_seconds))


_HOOKS: Final = {hook.__name__: hook for hook in (report_capacity, list_tasks, kill_tasks, set_cgroup_parent)}
