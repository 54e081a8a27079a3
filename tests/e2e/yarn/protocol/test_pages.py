"""The members of the pages that are read, by name and type: on the embedded YARN as on a real one."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.e2e.yarn import rest
from tests.e2e.yarn.protocol.clusters import MASTER_MB, VERSION, Manager, Shape, Yarn
from tests.e2e.yarn.protocol.conftest import StartYarn
from tests.e2e.yarn.rest import wait_for

from fallow_yarn.ipc.connection import Connection, simple
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.rm.applications import Request
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.rm.status import HA_PROTOCOL

TASK_MB, TASKS = 512, 2
STANDBY = 2
Types = Mapping[str, type | tuple[type, ...]]
NUMBER = (int, float)

INFO: Types = {"id": int, "startedOn": int, "state": str, "haState": str, "resourceManagerVersion": str}
METRICS: Types = {
    **dict.fromkeys(["appsSubmitted", "appsCompleted", "appsPending", "appsRunning", "appsFailed", "appsKilled"], int),
    **dict.fromkeys(["reservedMB", "availableMB", "allocatedMB", "totalMB", "reservedVirtualCores"], int),
    **dict.fromkeys(["availableVirtualCores", "allocatedVirtualCores", "totalVirtualCores"], int),
    **dict.fromkeys(["containersAllocated", "containersReserved", "containersPending", "totalNodes"], int),
    **dict.fromkeys(["activeNodes", "lostNodes", "shutdownNodes", "unhealthyNodes", "rebootedNodes"], int),
    **dict.fromkeys(["decommissioningNodes", "decommissionedNodes"], int),
    "totalClusterResourcesAcrossPartition": dict,
    "crossPartitionMetricsAvailable": bool,
}
NODE: Types = {
    **dict.fromkeys(["rack", "state", "id", "nodeHostName", "nodeHTTPAddress", "version", "healthReport"], str),
    **dict.fromkeys(["lastHealthUpdate", "numContainers", "usedMemoryMB", "availMemoryMB"], int),
    **dict.fromkeys(["usedVirtualCores", "availableVirtualCores", "numRunningOpportContainers"], int),
    **dict.fromkeys(["usedResource", "availableResource"], dict),
}
APPLICATION: Types = {
    **dict.fromkeys(["id", "user", "name", "queue", "state", "finalStatus", "applicationType"], str),
    **dict.fromkeys(["amContainerLogs", "amHostHttpAddress"], str),
    **dict.fromkeys(["priority", "startedTime", "elapsedTime", "allocatedMB", "allocatedVCores"], int),
    **dict.fromkeys(["runningContainers", "numNonAMContainerPreempted"], int),
    "progress": NUMBER,
}
CONTAINER: Types = {
    **dict.fromkeys(["id", "state", "diagnostics", "user", "executionType", "containerLogsLink", "nodeId"], str),
    **dict.fromkeys(["exitCode", "totalMemoryNeededMB", "totalVCoresNeeded"], int),
}
NODE_INFO: Types = {
    **dict.fromkeys(["id", "nodeHostName", "nodeManagerVersion"], str),
    **dict.fromkeys(["totalPmemAllocatedContainersMB", "totalVCoresAllocatedContainers", "nmStartupTime"], int),
    "nodeHealthy": bool,
}


@pytest.fixture(scope="module")
def yarn(start_yarn: StartYarn) -> Yarn:
    """One with an application: a master, two containers, and one that finds no room."""
    made = start_yarn(Shape(memory_mb=MASTER_MB + TASKS * TASK_MB, vcores=TASKS + 2))
    app = made.submit(TASKS + 1, TASK_MB, 1, "exec sleep 600")
    wait_for(lambda: len(app.running()) == TASKS, 60, "the containers")
    wait_for(lambda: rm_page(made, "metrics")["clusterMetrics"]["containersPending"] == 1, 20, "the one that waits")
    return made


def rm_page(yarn: Yarn, name: str) -> Any:
    return rest.call(yarn.rm.web, f"/ws/v1/cluster/{name}")


def differences(found: Mapping[str, Any], types: Types) -> list[str]:
    return [f"{key}: {found.get(key)!r}" for key, kind in types.items() if not isinstance(found.get(key), kind)]


def test_info(yarn: Yarn) -> None:
    info = rm_page(yarn, "info")["clusterInfo"]
    assert differences(info, INFO) == []
    assert (info["state"], info["haState"], info["resourceManagerVersion"]) == ("STARTED", "ACTIVE", VERSION)
    assert info["id"] == info["startedOn"]


def test_metrics(yarn: Yarn) -> None:
    metrics = rm_page(yarn, "metrics")["clusterMetrics"]
    assert differences(metrics, METRICS) == []
    assert (metrics["availableMB"], metrics["allocatedMB"], metrics["totalMB"]) == (0, 1280, 1280)
    assert (metrics["containersAllocated"], metrics["containersPending"], metrics["appsRunning"]) == (3, 1, 1)
    pending = (None, None) if VERSION.startswith("3.2.") else (TASK_MB, 1)
    assert (metrics.get("pendingMB"), metrics.get("pendingVirtualCores")) == pending
    total = metrics["totalClusterResourcesAcrossPartition"]
    assert (total["memory"], total["vCores"]) == (1280, 4)


def test_node(yarn: Yarn) -> None:
    (node,) = rm_page(yarn, "nodes")["nodes"]["node"]
    assert differences(node, NODE) == []
    assert ("totalResource" in node) is not VERSION.startswith("3.2.")
    assert (node["id"], node["state"], node["numContainers"]) == (yarn.nodes["nm1"].node_id, "RUNNING", 3)
    used = {
        entry["name"]: entry["value"] for entry in node["usedResource"]["resourceInformations"]["resourceInformation"]
    }
    assert used == {"memory-mb": 1280, "vcores": 3}
    assert rm_page(yarn, f"nodes/{node['id']}")["node"].keys() == node.keys()


def test_application(yarn: Yarn) -> None:
    (app,) = rm_page(yarn, "apps")["apps"]["app"]
    assert differences(app, APPLICATION) == []
    assert (app["state"], app["finalStatus"], app["runningContainers"]) == ("RUNNING", "UNDEFINED", 3)
    assert (app["allocatedMB"], app["allocatedVCores"]) == (1280, 3)
    (node,) = rm_page(yarn, "nodes")["nodes"]["node"]
    assert app["amHostHttpAddress"] == node["nodeHTTPAddress"]


def test_what_an_application_waits_for(yarn: Yarn) -> None:
    (app,) = rm_page(yarn, "apps")["apps"]["app"]
    (request,) = [entry for entry in app["resourceRequests"] if entry["numContainers"]]
    assert (request["resourceName"], request["numContainers"]) == ("*", 1)
    assert (request["capability"]["memory"], request["capability"]["vCores"]) == (TASK_MB, 1)
    assert request["executionTypeRequest"]["executionType"] == "GUARANTEED"
    manager = ResourceManager.at(client=yarn.rm.client, admin=yarn.rm.admin, web=yarn.rm.web, user=rest.USER)
    (without,) = manager.applications(Deadline.after(10))
    (told,) = manager.applications(Deadline.after(10), requests=True)
    assert (without.requests, told.requests) == ((), (Request(size=Size(TASK_MB, 1), containers=1),))


def test_queue(yarn: Yarn) -> None:
    scheduler = rm_page(yarn, "scheduler")["scheduler"]["schedulerInfo"]
    (queue,) = scheduler["queues"]["queue"]
    (partition,) = queue["resources"]["resourceUsagesByPartition"]
    assert (scheduler["type"], queue["type"]) == ("capacityScheduler", "capacitySchedulerLeafQueueInfo")
    assert (scheduler["maximumAllocation"]["memory"], scheduler["maximumAllocation"]["vCores"]) == (8192, 4)
    assert (partition["pending"]["memory"], queue["pendingContainers"]) == (TASK_MB, 1)
    assert (partition["used"]["memory"], queue["numContainers"]) == (1280, 3)
    assert (queue["AMResourceLimit"]["memory"], queue["AMResourceLimit"]["vCores"]) == (1280, 4)


def test_containers_and_node_manager(yarn: Yarn) -> None:
    containers = rest.call(yarn.webs["nm1"], "/ws/v1/node/containers")["containers"]["container"]
    assert [differences(container, CONTAINER) for container in containers] == [[], [], []]
    assert {(container["state"], container["exitCode"]) for container in containers} == {("RUNNING", -1000)}
    assert {container["nodeId"] for container in containers} == {yarn.nodes["nm1"].node_id}
    info = rest.call(yarn.webs["nm1"], "/ws/v1/node/info")["nodeInfo"]
    assert differences(info, NODE_INFO) == []
    assert (info["id"], info["totalPmemAllocatedContainersMB"]) == (yarn.nodes["nm1"].node_id, 1280)


def test_settings_come_one_by_one_or_all(yarn: Yarn) -> None:
    name = "yarn.scheduler.minimum-allocation-mb"
    entries = {entry["key"]: entry["value"] for entry in rest.call(yarn.rm.web, "/conf")["properties"]}
    assert entries[name] == "128"
    assert rest.call(yarn.webs["nm1"], "/conf")["properties"][0].keys() >= {"key", "value", "isFinal", "resource"}


def test_a_standby_says_so_to_who_asks_by_ipc(standby: Manager) -> None:
    endpoint = Endpoint.parse(standby.admin, setting="test", purpose="the admin port", hadoop_key="test")
    connection = Connection(endpoint, HA_PROTOCOL, "me", simple("me"))
    # Field 1 is its state; field 2 whether it is ready to become active.
    assert connection.call("getServiceStatus", b"", Deadline.after(10))[:4] == bytes((0x08, STANDBY, 0x10, 1))
    connection.close()
