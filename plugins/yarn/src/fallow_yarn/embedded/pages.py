"""The pages of an active ResourceManager that this plugin and its tests read. Pure."""

import re
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from fallow_yarn.embedded.application import PREEMPTED, Application, ApplicationState
from fallow_yarn.embedded.http_server import Request, Response, failure, page
from fallow_yarn.embedded.node_state import NodeState
from fallow_yarn.embedded.scheduler import Scheduler
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.model.size import Size

Json = dict[str, Any]
MAX_LONG: Final = (1 << 63) - 1
NODE: Final = re.compile(r"/ws/v1/cluster/nodes/([^/]+)")
QUEUE: Final = "default"
SCHEDULER_CLASS: Final = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"


def answer(scheduler: Scheduler, request: Request, now: float) -> Response:
    """One of the pages below /ws/v1/cluster that an active ResourceManager has."""
    scheduler.tick(now)
    states = set(filter(None, request.query.get("states", "").split(",")))
    match request.path:
        case "/ws/v1/cluster/metrics":
            return page({"clusterMetrics": _metrics(scheduler, now)})
        case "/ws/v1/cluster/nodes":
            nodes = [node for node in scheduler.nodes.values() if not states or node.state in states]
            entries = [_node(node, scheduler.settings, now) for node in nodes]
            return page({"nodes": {"node": entries} if entries else {}})
        case "/ws/v1/cluster/scheduler":
            return page({"scheduler": {"schedulerInfo": _scheduler(scheduler, now)}})
        case "/ws/v1/cluster/apps":
            chosen = [app for app in scheduler.applications if not states or app.state in states]
            found = [_application(app, scheduler) for app in chosen]
            for name in request.query.get("deSelects", "").split(","):
                for entry in found:
                    entry.pop(name, None)
            return page({"apps": {"app": found} if found else {}})
    if (match_node := NODE.fullmatch(request.path)) is None:
        return failure(HTTPStatus.NOT_FOUND, "NotFoundException", f"HTTP 404 Not Found: {request.path}")
    if (node := scheduler.nodes.get(match_node[1])) is None:
        return failure(HTTPStatus.NOT_FOUND, "NotFoundException", f"nodeId, {match_node[1]}, is not found")
    return page({"node": _node(node, scheduler.settings, now)})


def settings_of(settings: Settings) -> Mapping[str, object]:
    """The settings on the page /conf."""
    others = "*" if settings.admins is None else ",".join(sorted(settings.admins))
    return {
        "yarn.admin.acl": others or " ",
        "yarn.resourcemanager.scheduler.class": SCHEDULER_CLASS,
        "yarn.scheduler.minimum-allocation-mb": settings.minimum.memory_mb,
        "yarn.scheduler.minimum-allocation-vcores": settings.minimum.vcores,
        "yarn.scheduler.maximum-allocation-mb": settings.maximum.memory_mb,
        "yarn.scheduler.maximum-allocation-vcores": settings.maximum.vcores,
        **{f"yarn.resourcemanager.nodes.{kind}-path": str(path) for kind, path in _lists(settings).items()},
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": round(settings.heartbeat_seconds * 1000),
        "yarn.nm.liveness-monitor.expiry-interval-ms": round(settings.expiry_seconds * 1000),
    }


def _lists(settings: Settings) -> Mapping[str, Path]:
    given = {"exclude": settings.exclude_file, "include": settings.include_file}
    return {kind: path for kind, path in given.items() if path is not None}


def pending(applications: Iterable[Application]) -> tuple[Size, int]:
    """The sum of the pending requests, and the number of containers in them."""
    memory_mb = vcores = containers = 0
    for application in applications:
        size, count = application.wanted()
        memory_mb, vcores, containers = (
            memory_mb + size.memory_mb * count,
            vcores + size.vcores * count,
            containers + count,
        )
    return Size(memory_mb, vcores), containers


def _metrics(scheduler: Scheduler, now: float) -> Json:
    nodes = scheduler.in_table(now)
    total, used = _sum(node.total for node in nodes), _sum(node.used for node in nodes)
    # Cut at 0, and the total is computed from it: so the real one's is wrong while more is allocated than there is.
    available = Size(max(total.memory_mb - used.memory_mb, 0), max(total.vcores - used.vcores, 0))
    waiting, waiting_containers = pending(scheduler.applications)
    states = [node.state for node in scheduler.nodes.values()]
    apps = [app.state for app in scheduler.applications]
    metrics: Json = {
        "appsSubmitted": len(apps),
        "appsPending": apps.count(ApplicationState.ACCEPTED),
        "appsRunning": apps.count(ApplicationState.RUNNING),
        "appsCompleted": apps.count(ApplicationState.FINISHED),
        "appsFailed": apps.count(ApplicationState.FAILED),
        "appsKilled": 0,
        "reservedMB": 0,
        "availableMB": available.memory_mb,
        "allocatedMB": used.memory_mb,
        "totalMB": available.memory_mb + used.memory_mb,
        "reservedVirtualCores": 0,
        "availableVirtualCores": available.vcores,
        "allocatedVirtualCores": used.vcores,
        "totalVirtualCores": available.vcores + used.vcores,
        "containersAllocated": sum(len(node.containers) for node in nodes),
        "containersReserved": 0,
        "containersPending": waiting_containers,
        "totalNodes": len(states),
        "activeNodes": states.count("RUNNING"),
        "lostNodes": states.count("LOST"),
        "shutdownNodes": states.count("SHUTDOWN"),
        "unhealthyNodes": 0,
        "decommissioningNodes": states.count("DECOMMISSIONING"),
        "decommissionedNodes": states.count("DECOMMISSIONED"),
        "rebootedNodes": 0,
        "totalClusterResourcesAcrossPartition": _resource(total, {}),
        "crossPartitionMetricsAvailable": True,
    }
    if scheduler.settings.release.shows_pending:
        metrics |= {"pendingMB": waiting.memory_mb, "pendingVirtualCores": waiting.vcores}
    return metrics


def _node(node: NodeState, settings: Settings, now: float) -> Json:
    is_known = node.is_in_table(now)
    used, available = (node.used, node.available) if is_known else (Size(0, 0), Size(0, 0))
    host = node.id.rpartition(":")[0]
    entry: Json = {
        "rack": "/default-rack",
        "state": node.state,
        "id": node.id,
        "nodeHostName": host,
        "nodeHTTPAddress": node.web,
        "lastHealthUpdate": node.health_ms,
        "version": settings.version,
        "healthReport": "",
        "numContainers": len(node.containers) if is_known else 0,
        "usedMemoryMB": used.memory_mb,
        "availMemoryMB": available.memory_mb,
        "usedVirtualCores": used.vcores,
        "availableVirtualCores": available.vcores,
        "numRunningOpportContainers": 0,
        "usedResource": _resource(used, {}),
        "availableResource": _resource(available, {}),
    }
    if settings.release.takes_back:
        entry["totalResource"] = _resource(node.capability, node.custom)
    return entry


def _resource(size: Size, custom: Mapping[str, int]) -> Json:
    values = {"memory-mb": size.memory_mb, "vcores": size.vcores, **custom}
    entries = [
        {
            "maximumAllocation": MAX_LONG,
            "minimumAllocation": 0,
            "name": name,
            "resourceType": "COUNTABLE",
            "units": "Mi" if name == "memory-mb" else "",
            "value": value,
        }
        for name, value in values.items()
    ]
    return {
        "memory": size.memory_mb,
        "vCores": size.vcores,
        "resourceInformations": {"resourceInformation": entries},
    }


def _scheduler(scheduler: Scheduler, now: float) -> Json:
    nodes = scheduler.in_table(now)
    total = _sum(node.total for node in nodes)
    waiting, waiting_containers = pending(scheduler.applications)
    partition = {
        "partitionName": "",
        "used": _resource(_sum(node.used for node in nodes), {}),
        "reserved": _resource(Size(0, 0), {}),
        "pending": _resource(waiting, {}),
        "amLimit": _resource(total, {}),
    }
    leaf = {
        "type": "capacitySchedulerLeafQueueInfo",
        "queueName": QUEUE,
        "queuePath": f"root.{QUEUE}",
        "state": "RUNNING",
        "capacity": 100.0,
        "maxCapacity": 100.0,
        "numApplications": sum(not app.is_over for app in scheduler.applications),
        "numContainers": sum(len(node.containers) for node in nodes),
        "pendingContainers": waiting_containers,
        "AMResourceLimit": _resource(total, {}),
        "resources": {"resourceUsagesByPartition": [partition]},
    }
    maximum = scheduler.settings.maximum
    return {
        "type": "capacityScheduler",
        "queueName": "root",
        "capacity": 100.0,
        "maximumAllocation": {"memory": maximum.memory_mb, "vCores": maximum.vcores},
        "queues": {"queue": [leaf]},
    }


def _application(application: Application, scheduler: Scheduler) -> Json:
    order, containers, master = application.order, application.containers, application.master
    used = _sum(container.size for container in containers)
    final = {ApplicationState.FINISHED: "SUCCEEDED", ApplicationState.FAILED: "FAILED"}
    preempted = [ended for ended in application.ended if ended.exit_code == PREEMPTED]
    entry: Json = {
        "id": application.id,
        "user": order.user,
        "name": order.name,
        "queue": f"root.{order.queue}" if scheduler.settings.release.names_queue_paths else order.queue,
        "state": application.state.value,
        "finalStatus": final.get(application.state, "UNDEFINED"),
        "progress": 100.0 * application.progress,
        "applicationType": "YARN",
        "priority": order.priority,
        "startedTime": application.started_ms,
        "elapsedTime": max(round(time.time() * 1000) - application.started_ms, 0),
        "allocatedMB": used.memory_mb,
        "allocatedVCores": used.vcores,
        "runningContainers": len(containers),
        "numNonAMContainerPreempted": len(preempted),
        "resourceRequests": _requests(application),
    }
    node = None if master is None else scheduler.nodes.get(master.node_id)
    if master is not None and node is not None:
        entry["amContainerLogs"] = f"http://{node.web}/node/containerlogs/{master.id}/{order.user}"
        entry["amHostHttpAddress"] = node.web
    return entry


def _requests(application: Application) -> list[Json]:
    """What it waits for, wherever that is."""
    size, count = application.wanted()
    request = {
        "priority": 1,
        "resourceName": "*",
        "capability": _resource(size, {}),
        "numContainers": count,
        "executionTypeRequest": {"executionType": "GUARANTEED", "enforceExecutionType": False},
    }
    return [request] if count else []


def _sum(sizes: Iterable[Size]) -> Size:
    memory_mb = vcores = 0
    for size in sizes:
        memory_mb, vcores = memory_mb + size.memory_mb, vcores + size.vcores
    return Size(memory_mb, vcores)
