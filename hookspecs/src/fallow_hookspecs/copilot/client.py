"""The client: an instance whose hooks call a copilot.

Core uses it, and checks the path of the socket before it connects.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, cast

import grpc

from fallow_hookspecs.capacity import CapacityReport, Node, Offer
from fallow_hookspecs.copilot import messages
from fallow_hookspecs.copilot.fast_read import Known
from fallow_hookspecs.copilot.status import OPTIONS, error_of, path_of
from fallow_hookspecs.copilot.v0 import copilot_pb2 as pb
from fallow_hookspecs.errors import PluginError
from fallow_hookspecs.fitting import level_misfit
from fallow_hookspecs.hooks import hookimpl
from fallow_hookspecs.placement import Placement
from fallow_hookspecs.plugin import Finding, Instance
from fallow_hookspecs.tasks import KillOrder, KillOutcome, TaskList

_ANSWERS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "Describe": pb.DescribeResponse.FromString,
    "ReportCapacity": pb.CapacityReport.FromString,
    "ListTasks": pb.TaskList.FromString,
    "KillTasks": pb.KillOutcome.FromString,
    "SetCgroupParent": pb.Placement.FromString,
    "Diagnose": pb.DiagnoseResponse.FromString,
}


_OWN_CONNECTION: Final = ("grpc.use_local_subchannel_pool", 1)
"""Otherwise gRPC may reuse a connection to a process that has ended, and wait before it tries again."""


class MisfitError(PluginError):
    """The server at the path is no copilot, or not one for this Fallow."""


class Caller(Protocol):
    """Makes the calls of an instance. A failed call raises a PluginError."""

    def call(self, name: str, request: bytes, timeout_seconds: float) -> Any:
        """Make a call such as `ListTasks`, and return its message."""

    def close(self) -> None:
        """Close the connection. Safe to repeat."""


class Connection:
    """A connection to one process of a copilot. `description` is how it describes itself."""

    def __init__(self, path: str, timeout_seconds: float) -> None:
        """Connect to the socket at the path, and ask for the description.

        :raises MisfitError: it is no copilot that fits.
        :raises PluginError: there is no answer.
        """
        self._path = path
        self._channel = grpc.insecure_channel(f"unix:{path}", options=(*OPTIONS, _OWN_CONNECTION))
        self._calls: dict[str, Callable[..., Any]] = {
            name: self._channel.unary_unary(path_of(name), response_deserializer=parse)
            for name, parse in _ANSWERS.items()
        }
        try:
            self.description: pb.DescribeResponse = self.call("Describe", b"", timeout_seconds)
            self._check_fits()
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        said = self.description
        package = f" of {said.distribution}" if said.distribution else ""
        return f"plugin {said.name!r}{package} {said.version}".rstrip()

    def call(self, name: str, request: bytes, timeout_seconds: float, *, gone_seconds: float = 0.0) -> Any:
        """Make a call. `gone_seconds` of its timeout have already passed."""
        try:
            return self._calls[name](request, timeout=max(0.0, timeout_seconds - gone_seconds))
        except grpc.RpcError as error:
            raise self._in_words(cast("grpc.Call", error), timeout_seconds) from error  # it is both
        except ValueError as error:  # the other lane has closed the channel
            raise PluginError(f"the copilot at {self._path} was restarted") from error

    def close(self) -> None:
        """End the connection, and with it the calls under way."""
        self._channel.close()

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

    def _check_fits(self) -> None:
        said = self.description
        if not said.name or not said.HasField("lowest_api_level") or not said.HasField("highest_api_level"):
            raise MisfitError(f"the copilot at {self._path} does not say its name and its API levels")
        if misfit := level_misfit((said.lowest_api_level, said.highest_api_level)):
            raise MisfitError(f"the copilot at {self._path}, {said.name} {said.version}, {misfit}")


def instance_of(
    caller: Caller, hooks: Iterable[str], findings: Callable[[float], tuple[Finding, ...]] = lambda _: ()
) -> Instance:
    """An instance with only these hooks. `findings` gets a timeout; its findings come before those of the copilot."""
    known = {name: hook for name, hook in _HOOKS.items() if name in set(hooks)}
    made: Instance = type("Copilot", (_Copilot,), known)(caller, findings)
    return made


class _Copilot:
    """The base of every instance. The hooks are added one by one, because a copilot may lack some."""

    def __init__(self, caller: Caller, findings: Callable[[float], tuple[Finding, ...]]) -> None:
        self.caller = caller
        self.findings = findings
        self.nodes: tuple[tuple[Node, ...], bytes] = ((), b"")
        self.reads, self.acts = Known(), Known()  # one for each lane, since both may call at the same time

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        """The findings of this side and of the copilot."""
        own = self.findings(timeout_seconds)
        request = messages.diagnose_request(nodes).SerializeToString()
        return own + messages.read_findings(self.caller.call("Diagnose", request, timeout_seconds))

    def close(self) -> None:
        """Close the connection."""
        self.caller.close()


def _nodes(self: _Copilot, nodes: tuple[Node, ...]) -> bytes:
    """The nodes of a request. There may be thousands that seldom change, so the last ones are kept."""
    known, data = self.nodes
    if nodes is not known:
        data = messages.report_request(nodes, ()).SerializeToString()
        self.nodes = (nodes, data)
    return data


@hookimpl
def report_capacity(
    self: _Copilot, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
) -> CapacityReport:
    """Ask for a report, or send the offers."""
    # Concatenated messages are one message with the fields of both.
    request = _nodes(self, nodes) + messages.report_request((), offers).SerializeToString()
    message = self.caller.call("ReportCapacity", request, timeout_seconds)
    return messages.read_report(message, self.acts if offers else self.reads)


@hookimpl
def list_tasks(self: _Copilot, node: Node, timeout_seconds: float) -> TaskList:
    """Ask for the tasks."""
    request = messages.list_request(node).SerializeToString()
    return messages.read_task_list(self.caller.call("ListTasks", request, timeout_seconds), self.reads)


@hookimpl
def kill_tasks(self: _Copilot, node: Node, order: KillOrder, timeout_seconds: float) -> KillOutcome:
    """Send the order."""
    request = messages.kill_request(node, order).SerializeToString()
    return messages.read_outcome(self.caller.call("KillTasks", request, timeout_seconds))


@hookimpl
def set_cgroup_parent(self: _Copilot, node: Node, parent: str, timeout_seconds: float) -> Placement:
    """Send the directory."""
    request = messages.place_request(node, parent).SerializeToString()
    return messages.read_placement(self.caller.call("SetCgroupParent", request, timeout_seconds))


_HOOKS: Final = {hook.__name__: hook for hook in (report_capacity, list_tasks, kill_tasks, set_cgroup_parent)}
