import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_yarn.errors import AccessDeniedError, ProtocolError, RemoteError, YarnError
from fallow_yarn.http.web import Web
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.rm.facts import Calculator, Identity, Setup, read_identity, read_setup
from fallow_yarn.rm.scheduler import Metrics, SchedulerNode, read_metrics, read_scheduler_node, read_scheduler_nodes

LATER = Deadline(0.0, clock=lambda: 0.0)
INFO, METRICS, SCHEDULER, THREADS = (
    "/ws/v1/cluster/info",
    "/ws/v1/cluster/metrics",
    "/ws/v1/cluster/scheduler",
    "/stacks",
)
ACTIVE = {"clusterInfo": {"startedOn": 17, "state": "STARTED", "haState": "ACTIVE", "resourceManagerVersion": "3.5.0"}}


class Pages(Web):
    """A web server with these pages; bytes are sent as they are, an exception is raised."""

    def __init__(self, pages: Mapping[str, object]) -> None:
        super().__init__(Endpoint(host="rm1", port=8088, setting="spec.web", purpose="p", hadoop_key="k"), "u")
        self.pages = dict(pages)
        self.asked: list[str] = []

    def page(self, path: str, deadline: Deadline) -> bytes:
        self.asked.append(path)
        answer = self.pages.get(path, RemoteError("not found", kind="HTTP 404"))
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()


def leaf(memory: int, vcores: int) -> dict[str, object]:
    return {"type": "capacitySchedulerLeafQueueInfo", "AMResourceLimit": {"memory": memory, "vCores": vcores}}


def scheduler(*queues: object, kind: str = "capacityScheduler") -> dict[str, object]:
    queue = {"queues": {"queue": list(queues)}} if queues else {}
    return {"scheduler": {"schedulerInfo": {"type": kind, **queue}}}


def setting(bound: str, memory_mb: object, vcores: object) -> dict[str, object]:
    return {
        f"/conf?name=yarn.scheduler.{bound}-allocation-mb": {"property": {"value": memory_mb}},
        f"/conf?name=yarn.scheduler.{bound}-allocation-vcores": {"property": {"value": vcores}},
    }


def test_who_answers_is_told() -> None:
    identity = read_identity(Pages({INFO: ACTIVE}), LATER)
    assert identity == Identity(version="3.5.0", active=True, ha_state="ACTIVE", started_on=17)


@pytest.mark.parametrize(("ha_state", "state"), [("STANDBY", "STARTED"), ("INITIALIZING", "STARTED"), ("ACTIVE", "")])
def test_the_start_time_counts_only_when_active(ha_state: str, state: str) -> None:
    info = {"startedOn": 17, "state": state, "haState": ha_state, "resourceManagerVersion": "3.5.0"}
    identity = read_identity(Pages({INFO: {"clusterInfo": info}}), LATER)
    assert (identity.active, identity.started_on) == (False, None)


@pytest.mark.parametrize(
    ("version", "takes_back"),
    [
        *((version, True) for version in ("3.5.0", "3.3.6", "3.10.0-SNAPSHOT", "4.0")),
        *((version, False) for version in ("3.2.4", "2.10.2", "", "x.y", "3", "cdh3.5")),
    ],
)
def test_releases_before_3_3_take_nothing_back(version: str, takes_back: bool) -> None:
    assert Identity(version=version, active=True, ha_state="ACTIVE", started_on=1).takes_back is takes_back


@pytest.mark.parametrize("info", [{}, [], None, {"nodeInfo": {}}, {"clusterInfo": None}, {"clusterInfo": []}])
def test_another_servers_answer_is_a_protocol_error(info: object) -> None:
    with pytest.raises(ProtocolError, match=r"rm1:8088 \(spec.web\): the answer lacks clusterInfo"):
        read_identity(Pages({INFO: info}), LATER)


def test_the_setup_is_read_and_numbers_may_be_text() -> None:
    pages = {
        SCHEDULER: scheduler(leaf(2048, 4)),
        THREADS: b"Thread 44 (org.apache.CapacityScheduler$AsyncScheduleThread@1):",
        **setting("minimum", "256", "1"),
        **setting("maximum", 8192, 4),
    }
    assert read_setup(Pages(pages), Size(4096, 8), LATER) == Setup(
        scheduler="capacityScheduler",
        minimum=Size(256, 1),
        maximum=Size(8192, 4),
        calculator=Calculator.DOMINANT,
        asynchronous=True,
    )


def test_pages_that_are_closed_or_missing_leave_gaps_and_no_error() -> None:
    pages = {
        SCHEDULER: scheduler(kind="fairScheduler"),
        "/conf?name=yarn.scheduler.minimum-allocation-mb": AccessDeniedError("closed", kind="HTTP 403"),
    }
    assert read_setup(Pages(pages), Size(4096, 8), LATER) == Setup(
        scheduler="fairScheduler", minimum=None, maximum=None, calculator=None, asynchronous=None
    )


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        ([leaf(2048, 1)], Calculator.DEFAULT),  # half of 4096 MB is 4 of 8 vcores
        ([leaf(1024, 1)], Calculator.DEFAULT),
        ([leaf(1023, 1)], None),  # less than 2 vcores: both calculators give 1
        ([leaf(0, 0)], None),
        ([leaf(512, 1), {"queues": {"queue": [leaf(512, 1), leaf(1024, 2)]}}], Calculator.DOMINANT),
        ([{"queues": {"queue": leaf(2048, 1)}}], Calculator.DEFAULT),
        ([], None),
    ],
)
def test_the_calculator_is_told_by_the_limits_for_masters(queues: list[object], expected: Calculator | None) -> None:
    setup = read_setup(Pages({SCHEDULER: scheduler(*queues)}), Size(4096, 8), LATER)
    assert setup.calculator is expected


def test_facts_read_the_setup_once_for_each_start() -> None:
    pages = Pages({INFO: ACTIVE, SCHEDULER: scheduler(leaf(2048, 4)), METRICS: {"clusterMetrics": {}}})
    rm = ResourceManager.at(client="h:1", admin="h:2", web="h:3", user="u")
    rm._web = pages
    first = rm.facts(LATER)
    assert first.setup is not None
    pages.asked.clear()
    assert rm.facts(LATER) == first
    assert pages.asked == [INFO]
    pages.pages[INFO] = {"clusterInfo": {**ACTIVE["clusterInfo"], "startedOn": 18}}
    rm.facts(LATER)
    assert SCHEDULER in pages.asked


def test_facts_read_the_setup_again_when_a_grown_cluster_may_tell_the_calculator() -> None:
    def total(vcores: int) -> object:
        return {"clusterMetrics": {"totalClusterResourcesAcrossPartition": {"memory": 4096, "vCores": vcores}}}

    pages = Pages({INFO: ACTIVE, SCHEDULER: scheduler(leaf(0, 1)), METRICS: total(0)})
    rm = ResourceManager.at(client="h:1", admin="h:2", web="h:3", user="u")
    rm._web = pages
    rm.facts(LATER)
    pages.asked.clear()
    rm.facts(LATER)
    assert pages.asked == [INFO, METRICS]
    pages.pages |= {SCHEDULER: scheduler(leaf(2048, 1)), METRICS: total(8)}
    setup = rm.facts(LATER).setup
    assert setup is not None
    assert setup.calculator is Calculator.DEFAULT


def test_a_standby_has_no_setup() -> None:
    standby = {"clusterInfo": {**ACTIVE["clusterInfo"], "haState": "STANDBY"}}
    pages = Pages({INFO: standby})
    rm = ResourceManager.at(client="h:1", admin="h:2", web="h:3", user="u")
    rm._web = pages
    assert rm.facts(LATER).setup is None
    assert pages.asked == [INFO]


def test_totals_are_those_over_all_partitions() -> None:
    exact = {"memory": 2048, "vCores": 2}
    metrics = {"availableMB": 0, "totalMB": 6656, "totalVirtualCores": 7, "totalClusterResourcesAcrossPartition": exact}
    pages = Pages({METRICS: {"clusterMetrics": metrics | {"pendingMB": "512", "pendingVirtualCores": 1}}})
    assert read_metrics(pages, LATER) == Metrics(total=Size(2048, 2), pending=Size(512, 1), pending_containers=None)


@pytest.mark.parametrize(("memory", "vcores", "expected"), [(1, 1, Size(9, 8)), (0, 1, None), (1, 0, None)])
def test_totals_made_of_what_is_available_count_only_while_some_is(
    memory: int, vcores: int, expected: Size | None
) -> None:
    metrics = {"availableMB": memory, "availableVirtualCores": vcores, "totalMB": 9, "totalVirtualCores": 8}
    assert read_metrics(Pages({METRICS: {"clusterMetrics": metrics}}), LATER).total == expected


def node(used: int, available: int) -> dict[str, object]:
    return {
        "id": "h:1",
        "usedMemoryMB": used,
        "usedVirtualCores": 1,
        "availMemoryMB": available,
        "availableVirtualCores": -1,
    }


def test_an_overcommitted_node_has_a_negative_rest_and_its_true_size() -> None:
    pages = Pages({"/ws/v1/cluster/nodes/h:1": {"node": node(3584, -2560)}})
    assert read_scheduler_node(pages, "h:1", LATER) == SchedulerNode(size=Size(1024, 0), used=Size(3584, 1))


def test_a_node_that_the_resource_manager_does_not_know_has_no_size() -> None:
    assert read_scheduler_node(Pages({}), "h:1", LATER) is None


@pytest.mark.parametrize("empty", [None, "", {}, {"node": None}, {"node": ""}, {"node": []}])
def test_an_empty_list_may_have_many_shapes(empty: object) -> None:
    path = "/ws/v1/cluster/nodes?states=RUNNING,DECOMMISSIONING"
    assert read_scheduler_nodes(Pages({path: {"nodes": empty}}), LATER) == {}


def test_a_list_of_one_may_be_the_node_itself() -> None:
    path = "/ws/v1/cluster/nodes?states=RUNNING,DECOMMISSIONING"
    for nodes in (node(1, 2), [node(1, 2)]):
        assert list(read_scheduler_nodes(Pages({path: {"nodes": {"node": nodes}}}), LATER)) == ["h:1"]


KEYS = (
    *("clusterMetrics", "clusterInfo", "scheduler", "schedulerInfo", "queues", "queue", "AMResourceLimit", "memory"),
    *("vCores", "nodes", "node", "id", "usedMemoryMB", "availMemoryMB", "usedVirtualCores", "availableVirtualCores"),
    *("totalClusterResourcesAcrossPartition", "type", "property", "value", "startedOn"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)


@given(JSON)
def test_json_of_any_shape_ends_in_a_value_or_a_yarn_error(answer: object) -> None:
    class Same(Pages):
        def page(self, path: str, deadline: Deadline) -> bytes:
            return json.dumps(answer).encode()

    pages = Same({})
    for read in (
        lambda: read_identity(pages, LATER),
        lambda: read_setup(pages, Size(4096, 8), LATER),
        lambda: read_metrics(pages, LATER),
        lambda: read_scheduler_node(pages, "h:1", LATER),
        lambda: read_scheduler_nodes(pages, LATER),
    ):
        try:
            read()
        except YarnError:
            continue
