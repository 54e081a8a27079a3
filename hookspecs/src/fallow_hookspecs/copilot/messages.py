"""The requests and answers of the copilot: the arguments and answers of hooks as messages, and back."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from google.protobuf.message import Message

from fallow_hookspecs.capacity import CapacityReport, Node, Offer
from fallow_hookspecs.copilot.codec import Codec
from fallow_hookspecs.copilot.fast_read import Known, kill_answers
from fallow_hookspecs.copilot.fast_write import put_row, put_task, put_tolerantly
from fallow_hookspecs.copilot.v0 import copilot_pb2 as pb
from fallow_hookspecs.placement import Placement
from fallow_hookspecs.plugin import Finding, Plugin
from fallow_hookspecs.tasks import KillOrder, KillOutcome, TaskList

_T = TypeVar("_T")
_M = TypeVar("_M", bound=Message)

_NODE = Codec(Node, pb.Node.DESCRIPTOR)
_OFFER = Codec(Offer, pb.Offer.DESCRIPTOR)
_ORDER = Codec(KillOrder, pb.KillTasksRequest.DESCRIPTOR)
_OUTCOME = Codec(KillOutcome, pb.KillOutcome.DESCRIPTOR)
_PLACEMENT = Codec(Placement, pb.Placement.DESCRIPTOR)
_FINDING = Codec(Finding, pb.Finding.DESCRIPTOR)
_REPORT = Codec(CapacityReport, pb.CapacityReport.DESCRIPTOR, by_hand=("rows",))
_TASK_LIST = Codec(TaskList, pb.TaskList.DESCRIPTOR, by_hand=("tasks",))


def description(plugin: Plugin, distribution: str, version: str, hooks: Iterable[str]) -> pb.DescribeResponse:
    """Who a plugin is. `hooks` are the names of those it implements."""
    lowest, highest = plugin.api_levels
    return pb.DescribeResponse(
        name=plugin.name,
        version=version,
        distribution=distribution,
        lowest_api_level=lowest,
        highest_api_level=highest,
        hooks=hooks,
        pod_selector=plugin.pod_selector,
    )


# Requests


def report_request(nodes: Iterable[Node], offers: Iterable[Offer]) -> pb.ReportCapacityRequest:
    """The arguments of `report_capacity`."""
    message = pb.ReportCapacityRequest()
    _add(message.nodes.add, _NODE, nodes)
    _add(message.offers.add, _OFFER, offers)
    return message


def list_request(node: Node) -> pb.ListTasksRequest:
    """The argument of `list_tasks`."""
    message = pb.ListTasksRequest()
    _NODE.put(message.node, node)
    return message


def kill_request(node: Node, order: KillOrder) -> pb.KillTasksRequest:
    """The arguments of `kill_tasks`."""
    message = pb.KillTasksRequest()
    _NODE.put(message.node, node)
    _ORDER.put(message, order)
    return message


def place_request(node: Node, parent: str) -> pb.SetCgroupParentRequest:
    """The arguments of `set_cgroup_parent`."""
    message = pb.SetCgroupParentRequest(parent=parent)
    _NODE.put(message.node, node)
    return message


def diagnose_request(nodes: Iterable[Node]) -> pb.DiagnoseRequest:
    """The argument of `diagnose`."""
    message = pb.DiagnoseRequest()
    _add(message.nodes.add, _NODE, nodes)
    return message


def read_nodes(messages: Iterable[pb.Node]) -> tuple[Node, ...]:
    """The nodes of a request."""
    return tuple(map(_NODE.take, messages))


def read_node(message: pb.Node) -> Node:
    """The node of a request."""
    return _NODE.take(message)


def read_offers(messages: Iterable[pb.Offer]) -> tuple[Offer, ...]:
    """The offers of a request."""
    return tuple(map(_OFFER.take, messages))


def read_order(message: pb.KillTasksRequest) -> KillOrder:
    """The order of a request."""
    return _ORDER.take(message)


# Answers


def report_message(report: CapacityReport) -> pb.CapacityReport:
    """A report. A row that messages cannot carry keeps only its names, so core refuses it."""
    message = pb.CapacityReport()
    _REPORT.put(message, report)
    put_tolerantly(message.rows.add, put_row, report.rows, names=("node", "framework_node"))
    return message


def read_report(message: pb.CapacityReport, known: Known | None = None) -> CapacityReport:
    """A report. `known` has the rows of the report before; it removes the ages from the message."""
    return _REPORT.take(message, rows=(known or Known()).rows(message.rows))


def task_list_message(listed: TaskList) -> pb.TaskList:
    """A list of tasks. A task that messages cannot carry keeps only its names, so core refuses it."""
    message = pb.TaskList()
    _TASK_LIST.put(message, listed)
    put_tolerantly(message.tasks.add, put_task, listed.tasks, names=("id", "application_id", "framework_node"))
    return message


def read_task_list(message: pb.TaskList, known: Known | None = None) -> TaskList:
    """A list of tasks. `known` has the tasks of the list before; it removes the ages from the message."""
    return _TASK_LIST.take(message, tasks=(known or Known()).tasks(message.tasks))


def outcome_message(outcome: KillOutcome) -> pb.KillOutcome:
    """What became of the tasks of an order."""
    return _filled(pb.KillOutcome(), _OUTCOME, outcome)


def read_outcome(message: pb.KillOutcome) -> KillOutcome:
    """What became of the tasks of an order."""
    return KillOutcome(answers=kill_answers(message.answers))


def placement_message(placed: Placement) -> pb.Placement:
    """Where tasks are in the cgroup tree."""
    return _filled(pb.Placement(), _PLACEMENT, placed)


def read_placement(message: pb.Placement) -> Placement:
    """Where tasks are in the cgroup tree."""
    return _PLACEMENT.take(message)


def findings_message(found: Iterable[Finding]) -> pb.DiagnoseResponse:
    """What an operator should know."""
    message = pb.DiagnoseResponse()
    _add(message.findings.add, _FINDING, found)
    return message


def read_findings(message: pb.DiagnoseResponse) -> tuple[Finding, ...]:
    """What an operator should know."""
    return tuple(map(_FINDING.take, message.findings))


def _filled(message: _M, its: Codec[_T], value: _T) -> _M:
    its.put(message, value)
    return message


def _add(add: Callable[[], Message], its: Codec[_T], values: Iterable[_T]) -> None:
    for value in values:
        its.put(add(), value)
