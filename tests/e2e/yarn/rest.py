"""Calls to the web interfaces of the daemons, and waiting for what they show."""

import http.client
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

USER = "tester"
NOT_YET = (OSError, http.client.HTTPException, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as the ResourceManager shows it. `total_*` is what its scheduler works with: used + available."""

    node_id: str
    state: str
    containers: int
    used_mb: int
    used_vcores: int
    total_mb: int
    total_vcores: int
    health_time_ms: int


def call(address: str, path: str, body: object = None) -> Any:
    """The JSON answer to a GET, or with a body to a POST. OSError tells why there is none."""
    connection = http.client.HTTPConnection(address, timeout=20)
    try:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", f"{path}?user.name={USER}", content, headers)
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    if response.status >= 300:
        raise OSError(f"{address}{path} answers {response.status}: {text[:300]}")
    return json.loads(text) if text.strip() else {}


def nodes(address: str) -> dict[str, Node]:
    """Every node that the ResourceManager at this web address knows, by its id."""
    return nodes_in(call(address, "/ws/v1/cluster/nodes"))


def nodes_in(answer: Any) -> dict[str, Node]:
    """The nodes of a page of them, by their ids."""
    entries = (answer.get("nodes") or {}).get("node") or []
    return {
        n["id"]: Node(
            node_id=n["id"],
            state=n["state"],
            containers=n["numContainers"],
            used_mb=n["usedMemoryMB"],
            used_vcores=n["usedVirtualCores"],
            total_mb=n["usedMemoryMB"] + n["availMemoryMB"],
            total_vcores=n["usedVirtualCores"] + n["availableVirtualCores"],
            health_time_ms=n["lastHealthUpdate"],
        )
        for n in entries
    }


def wait_for(test: Callable[[], bool], seconds: float, what: str) -> None:
    """Return when `test` says yes; an answer that does not come or does not parse counts as not yet.

    TimeoutError names `what` was waited for, and the last failure.
    """
    end = time.monotonic() + seconds
    failure = ""
    while time.monotonic() < end:
        try:
            if test():
                return
            failure = ""
        except NOT_YET as error:
            failure = f"; the last try: {type(error).__name__}: {error}"
        time.sleep(0.1)
    raise TimeoutError(f"waited {seconds} s for {what}{failure}")
