"""`fallow status` as lines for people."""

from collections.abc import Iterator

from fallow_core.api.cluster_status import ClusterStatus, LaneStatus, RowStatus
from fallow_core.api.status import NodeStatus, Status
from fallow_core.cli.problems import status_problems
from fallow_core.cli.table import LABELS, amount, marked, paragraph, part, seconds, table
from fallow_core.model.policy import PublishingMode
from fallow_core.plugins.lanes import LaneState
from fallow_hookspecs import RESOURCE_NAMES, Capabilities, ResourceName

MOST_IN_FLIGHT = 4
NODE_COLUMNS = {
    "HAS": "capacity",
    "IN USE": "used",
    "OF IT BATCH": "batch_used",
    "CAN LEND": "batch",
    "ALLOCATED": "allocated",
    "BELIEVED": "believed",
    "EXPOSURE": "exposure",
    "OVERDRAFT": "overdraft",
}
ROW_HEAD = ["", "ALLOCATED", "IN FORCE", "IN FLIGHT", "BELIEF", "OFFER", "FLOOR", "AT FIRST"]


def status_lines(status: Status) -> list[str]:
    """The whole answer."""
    lines = [f"{mode_words(status.mode)}, up {seconds(status.uptime_seconds)}, {status.config_file}"]
    lines += marked(status_problems(status))
    for node in status.nodes:
        pool = f", pool {node.pool}" if node.pool else ""
        lines += ["", f"node {node.node}{pool}", *_node_table(node)]
    for cluster in status.clusters:
        lines += ["", *_cluster(cluster)]
    return lines


def mode_words(mode: PublishingMode) -> str:
    """The mode, and whether offers are sent."""
    return f"publishing mode {mode} ({'nothing is sent' if mode is PublishingMode.OBSERVE else 'offers are sent'})"


def _node_table(node: NodeStatus) -> list[str]:
    lines = [["", *NODE_COLUMNS, "AGE"]]
    for name in RESOURCE_NAMES:
        resource = node.of(name)
        values = [amount(name, getattr(resource, field)) for field in NODE_COLUMNS.values()]
        lines.append([LABELS[name], *values, seconds(resource.sample_age_seconds)])
    return table(lines, indent="  ")


def _cluster(cluster: ClusterStatus) -> list[str]:
    plugin, switch, age = cluster.plugin, cluster.switch, cluster.report_age_seconds
    who = f" (by {switch.who}{': ' + switch.why if switch.why else ''})" if switch.who else ""
    title = f"cluster {cluster.cluster}   {plugin.distribution} {plugin.version}   switch {switch.state}{who}"
    report = "no report yet" if age is None else f"{cluster.detail or 'reported'}; report {seconds(age)} old"
    lines = [*paragraph(title), *paragraph(report, "  "), *marked(_cluster_problems(cluster), "  ")]
    if not cluster.rows:
        return [*lines, "  no node of this cluster is seen here"]
    amounts = [[LABELS[name], *_amounts(name, row)] for row in cluster.rows for name in RESOURCE_NAMES]
    first, *rest = table([ROW_HEAD, *amounts], indent="    ")
    lines.append(first)
    for number, row in enumerate(cluster.rows):
        lines.append(f"  {row.framework_node}   {row.state}, seen {seconds(row.age_seconds)} ago")
        lines += rest[number * len(RESOURCE_NAMES) :][: len(RESOURCE_NAMES)]
        lines += [line for note in _notes(row) for line in paragraph(note, "    ")]
    return lines


def _cluster_problems(cluster: ClusterStatus) -> Iterator[str]:
    yield from (f"{call} failed: {reason}" for call, reason in cluster.failing.items())
    yield from (f"wrapper {name} failed: {reason}" for name, reason in cluster.wrappers.items())
    lanes = {"reads": cluster.reads, "acts": cluster.acts}
    yield from (f"{name} {_lane(lane)}" for name, lane in lanes.items() if lane.state is not LaneState.OK)
    yield from _ignored(cluster.capabilities)


def _lane(lane: LaneStatus) -> str:
    """What failures mean for the next calls. Why a call failed is told with the call."""
    if lane.state is LaneState.STALLED:
        return f"stalled: {lane.reason}"
    if lane.state is LaneState.BROKEN:
        return "broken: no further call before the configuration is changed"
    again = lane.next_try_in_seconds
    when = f"in {seconds(again)}" if again else "with the next call that is due"
    return f"{lane.state} after {lane.failures} failure{'' if lane.failures == 1 else 's'}: next try {when}"


def _ignored(capabilities: Capabilities | None) -> Iterator[str]:
    if capabilities is not None:
        for name, capability in (("cpu", capabilities.cpu), ("memory", capabilities.memory)):
            if not capability.honoured:
                yield f"the framework ignores {name}: its offers hold nothing back"


def _amounts(name: ResourceName, row: RowStatus) -> list[str]:
    flight = [part(name, size) for size in row.in_flight]
    shown = ", ".join([*(["..."] if len(flight) > MOST_IN_FLIGHT else []), *flight[-MOST_IN_FLIGHT:]])
    after = (row.belief, row.offer, row.floor, row.original)
    return [part(name, row.allocated), part(name, row.in_force), shown or "-", *(part(name, size) for size in after)]


def _notes(row: RowStatus) -> list[str]:
    notes = [f"due: {row.due.why}"] if row.due else []
    notes += [f"refused: {row.refusal}"] if row.refusal else []
    return [*notes, f"in force: {row.in_force_why}"] if row.in_force_why else notes
