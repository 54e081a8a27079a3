"""The service: it runs each call in its lane, and returns the answer or the error.

If the caller gives up or the deadline passes while a call waits for its lane, the call never starts. A call that has
started continues, because a thread cannot be stopped, and its lane starts no other call before it ends.

If the method alone determines the lane, gRPC runs the call in the lane itself, which saves two thread switches. A
report may belong to either lane, so its call runs in a pool and waits for the lane.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any, Final, NoReturn, TypeVar

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from fallow_hookspecs import CapacityReport, Finding, KillOutcome, Node, Placement, PluginError, TaskList
from fallow_hookspecs.copilot import messages
from fallow_hookspecs.copilot.host import Hosted
from fallow_hookspecs.copilot.lanes import Lane
from fallow_hookspecs.copilot.status import OPTIONS, SERVICE, status_of
from fallow_hookspecs.copilot.v0 import copilot_pb2 as pb

THREADS: Final = 16
"""How many reports may wait for a lane. Core makes at most two; each leaves at its deadline."""

PLUGIN_SHARE: Final = 0.95
"""The share of the remaining time that the plugin gets, so that its own timeout error still arrives."""

NO_DEADLINE_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 2.0

_Ask = Callable[[Any, float], Any]
_T = TypeVar("_T")


class Service:
    """Serves a hosted instance."""

    def __init__(self, hosted: Hosted) -> None:
        self._hosted = hosted
        self._reads, self._acts = Lane("reads"), Lane("acts")
        self._nodes: tuple[Message | None, tuple[Node, ...]] = (None, ())
        self._health = health.HealthServicer()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="calls")
        self._server = grpc.server(self._pool, options=OPTIONS)
        self._server.add_generic_rpc_handlers((self._handlers(),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    def serve(self, address: str) -> None:
        """Listen at an address of gRPC, such as `unix:/run/x/socket`.

        :raises RuntimeError: gRPC cannot listen there.
        """
        self._server.add_insecure_port(address)
        self._server.start()
        for name in ("", SERVICE):
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    def stop(self, grace_seconds: float) -> None:
        """Report it as health, take no more calls, give the calls under way this time, and close the instance."""
        end = time.monotonic() + grace_seconds
        self._health.enter_graceful_shutdown()
        self._server.stop(grace_seconds).wait()
        self._pool.shutdown(wait=False)
        for lane in (self._reads, self._acts):
            lane.close(max(0.0, end - time.monotonic()))
        # In a thread that is abandoned if it does not end.
        closing = threading.Thread(target=self._hosted.instance.close, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)

    def _handlers(self) -> grpc.GenericRpcHandler:
        hook, reads, acts = self._hosted.hooks.caller, self._reads, self._acts

        def report(request: pb.ReportCapacityRequest, seconds: float) -> CapacityReport:
            offers = messages.read_offers(request.offers)
            answer = hook.report_capacity(nodes=self._nodes_of(request), offers=offers, timeout_seconds=seconds)
            return _checked(answer, CapacityReport, "report_capacity")

        def list_tasks(request: pb.ListTasksRequest, seconds: float) -> TaskList:
            answer = hook.list_tasks(node=messages.read_node(request.node), timeout_seconds=seconds)
            return _checked(answer, TaskList, "list_tasks")

        def kill(request: pb.KillTasksRequest, seconds: float) -> KillOutcome:
            node, order = messages.read_node(request.node), messages.read_order(request)
            return _checked(hook.kill_tasks(node=node, order=order, timeout_seconds=seconds), KillOutcome, "kill_tasks")

        def place(request: pb.SetCgroupParentRequest, seconds: float) -> Placement:
            node = messages.read_node(request.node)
            answer = hook.set_cgroup_parent(node=node, parent=request.parent, timeout_seconds=seconds)
            return _checked(answer, Placement, "set_cgroup_parent")

        def diagnose(request: pb.DiagnoseRequest, seconds: float) -> tuple[Finding, ...]:
            return self._hosted.instance.diagnose(messages.read_nodes(request.nodes), seconds)

        made = {
            "Describe": _handler(pb.DescribeRequest, lambda request, context: self._description()),
            "ReportCapacity": self._hook(
                "report_capacity", pb.ReportCapacityRequest, None, report, messages.report_message
            ),
            "ListTasks": self._hook("list_tasks", pb.ListTasksRequest, reads, list_tasks, messages.task_list_message),
            "KillTasks": self._hook("kill_tasks", pb.KillTasksRequest, acts, kill, messages.outcome_message),
            "SetCgroupParent": self._hook(
                "set_cgroup_parent", pb.SetCgroupParentRequest, acts, place, messages.placement_message
            ),
            "Diagnose": self._hook("", pb.DiagnoseRequest, reads, diagnose, messages.findings_message),
        }
        return grpc.method_handlers_generic_handler(SERVICE, made)

    def _description(self) -> pb.DescribeResponse:
        hosted = self._hosted
        return messages.description(hosted.plugin, hosted.distribution, hosted.version, hosted.hooks.implemented)

    def _hook(
        self,
        name: str,
        request_type: type[Message],
        lane: Lane | None,
        ask: _Ask,
        answer: Callable[[Any], Message],
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """`lane`: the lane of all calls of this method; `None` if it depends on the request."""

        def call(request: Any, context: grpc.ServicerContext) -> Message:
            if name and name not in self._hosted.hooks.implemented:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{self._hosted} does not implement {name}")
            its_lane = lane or (self._acts if request.offers else self._reads)
            try:
                return answer(_done(its_lane, lambda: ask(request, _seconds_left(context)), context))
            except Exception as error:
                _abort(error, context)

        if lane is not None:
            call.experimental_thread_pool = lane  # type: ignore[attr-defined] # gRPC looks for it
        return _handler(request_type, call)

    def _nodes_of(self, request: pb.ReportCapacityRequest) -> tuple[Node, ...]:
        """The nodes of a request. There may be thousands that seldom change, so the last ones are kept.

        It removes the offers from the request.
        """
        request.ClearField("offers")
        message, nodes = self._nodes
        if message != request:
            nodes = messages.read_nodes(request.nodes)
            self._nodes = (request, nodes)
        return nodes


def _handler(request_type: type[Message], call: Callable[..., Message]) -> "grpc.RpcMethodHandler[Any, Any]":
    return grpc.unary_unary_rpc_method_handler(
        call,
        request_deserializer=request_type.FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


def _done(lane: Lane, function: Callable[[], _T], context: grpc.ServicerContext) -> _T:
    """Run a call in its lane, and wait for its answer until the caller gives up or the deadline passes."""
    if lane.is_here:
        return function()
    future = lane.submit(function)

    def give_up() -> None:
        future.cancel()

    if not context.add_callback(give_up):
        give_up()
    return future.result()


def _seconds_left(context: grpc.ServicerContext) -> float:
    left: float | None = context.time_remaining()  # None where the caller gave no deadline
    return NO_DEADLINE_SECONDS if left is None else max(0.0, left) * PLUGIN_SHARE


def _checked(answer: object, expected: type[_T], hook: str) -> _T:
    if not isinstance(answer, expected):
        raise PluginError(f"{hook} gave a wrong answer: a {type(answer).__name__}, not a {expected.__name__}")
    return answer


def _abort(error: BaseException, context: grpc.ServicerContext) -> NoReturn:
    if isinstance(error, CancelledError):
        context.abort(grpc.StatusCode.CANCELLED, "the caller has given up")
    code, text, trailers = status_of(error)
    context.set_trailing_metadata(tuple(trailers))
    context.abort(code, text)
