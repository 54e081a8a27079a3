"""The protocol between NodeManagers and the ResourceManager: a line of JSON, and a line of JSON as the answer.

It is the embedded YARN's own protocol, not Hadoop's.
"""

import json
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from fallow_yarn.embedded.application import Container
from fallow_yarn.embedded.listener import Serve
from fallow_yarn.embedded.node_state import Orders, Registration, Status
from fallow_yarn.embedded.scheduler import Scheduler
from fallow_yarn.model.size import Size

Json = dict[str, Any]
Use = Callable[[], AbstractContextManager[Scheduler | None]]
"""The active scheduler for a moment, with nobody else at it; None if this ResourceManager is not active (any more)."""


def serve_tracker(use: Use, clock: Callable[[], float], heartbeat_seconds: float) -> Serve:
    """Serve the connection of one NodeManager."""

    def serve(connection: socket.socket) -> None:
        with connection.makefile("rb") as incoming:
            for line in incoming:
                with use() as scheduler:
                    if scheduler is None:
                        return
                    answer = _answer(scheduler, json.loads(line), clock())
                connection.sendall(json.dumps(answer | {"heartbeat_seconds": heartbeat_seconds}).encode() + b"\n")

    return serve


def _answer(scheduler: Scheduler, message: Json, now: float) -> Json:
    node_id = message["node"]
    statuses = [
        Status(container=entry["id"], exit_code=entry["exit_code"], diagnostics=entry["diagnostics"])
        for entry in message["containers"]
    ]
    if message["kind"] == "heartbeat":
        orders = scheduler.heartbeat(node_id, statuses, now)
        return {"register": True} if orders is None else _orders(orders)
    if message["kind"] == "unregister":
        scheduler.unregister(node_id, now)
        return {}
    registration = Registration(
        node_id=node_id,
        web=message["web"],
        size=Size(message["memory_mb"], message["vcores"]),
        health_ms=message["health_ms"],
        custom=message["custom"],
        containers=statuses,
    )
    return {"end_because": scheduler.register(registration, now)}


def _orders(orders: Orders) -> Json:
    size = orders.size
    return {
        "start": [_container(container) for container in orders.start],
        "end": list(orders.end),
        "signals": list(orders.signals),
        "forget": list(orders.forget),
        "size": None if size is None else [size.memory_mb, size.vcores],
    }


def _container(container: Container) -> Json:
    return {
        "id": container.id,
        "application": container.application.id,
        "user": container.application.order.user,
        "memory_mb": container.size.memory_mb,
        "vcores": container.size.vcores,
        "command": container.command,
    }
