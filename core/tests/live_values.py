"""Answers as a running Fallow gives them, with as much in them as a test wants."""

from typing import Any

from fallow_core.api.encoding import from_json
from fallow_core.api.explain import Explanation
from fallow_core.api.status import Status
from fallow_core.api.tasks import Tasks
from fallow_core.cli.live.snapshot import Answers, Snapshot, snapshot

GIB = 1 << 30
Answer = dict[str, Any]


def size(cores: float, gib: float) -> Answer:
    return {"cpu_milli": round(cores * 1000), "memory_bytes": round(gib * GIB)}


def resource(unit: int, **changes: Any) -> Answer:
    """8 units, 3 in use of which 1 by batch, 5 to lend."""
    amounts = {"capacity": 8, "used": 3, "batch_used": 1, "batch": 5, "allocated": 2, "believed": 5}
    found = {name: value * unit for name, value in amounts.items()}
    return {**found, "exposure": 0, "overdraft": 0, "sample_age_seconds": 0.5, **changes}


def node(name: str, **changes: Any) -> Answer:
    return {"node": name, "pool": "", "cpu": resource(1000), "memory": resource(GIB), "awaited": [], **changes}


def row(on: str, **changes: Any) -> Answer:
    return {
        "node": on,
        "framework_node": f"{on}:45454",
        "state": "running",
        "age_seconds": 1.0,
        "allocated": size(2, 2),
        "in_force": size(4, 5),
        "in_flight": [],
        "newest": size(4, 5),
        "belief": size(4, 5),
        "floor": size(0.2, 0.25),
        "offer": size(5, 5),
        "due": None,
        "original": None,
        "in_force_why": "",
        "refusal": "",
        **changes,
    }


def cluster(name: str, *rows: Answer, **changes: Any) -> Answer:
    lane = {"state": "ok", "reason": "", "failures": 0, "failing_for_seconds": None, "next_try_in_seconds": None}
    return {
        "cluster": name,
        "switch": {"state": "lend", "who": "", "when": 0.0, "why": ""},
        "plugin": {"name": "yarn", "distribution": "fallow-yarn", "version": "1", "target": "x:Y"},
        "detail": "rm1 3.5.0",
        "report_age_seconds": 2.0,
        "failing": {},
        "reads": lane,
        "acts": lane,
        "capabilities": None,
        "pending": None,
        "rows": list(rows),
        **changes,
    }


def status(*nodes: Answer, clusters: tuple[Answer, ...] = (), **changes: Any) -> Answer:
    return {
        "mode": "enforce",
        "journal_error": "",
        "nodes": list(nodes),
        "clusters": list(clusters),
        "take_backs": [],
        "uptime_seconds": 100.0,
        "config_file": "/etc/fallow/fallow.yaml",
        "building": [],
        "failed": {},
        "config_problems": [],
        "sample_problems": {},
        "restoring": False,
        "switches": [],
        "refused_inputs": [],
        "configured": [],
        **changes,
    }


def explanation(name: str, *clusters: str, **changes: Any) -> Answer:
    def ledger(name: str, unit: int) -> Answer:
        account = {"weight": 1, "allocated": 2 * unit, "demand": None, "limit": None, "floor": 0, "fair": 5 * unit}
        account |= {"unit": 1, "in_force": 4 * unit, "pending": None, "room": 0, "spare": 0, "wants": None}
        return {
            "resource": name,
            "capacity": None,
            "drain_step": 0,
            "sample_age_seconds": 0.5,
            "allocated": 2 * unit,
            "believed": 5 * unit,
            "exposure": 0,
            "overdraft": 0,
            "accounts": [
                {**account, "cluster": cluster, "target": 4 * unit, "drains_for_others": False} for cluster in clusters
            ],
            "rows": [],
        }

    resources = {"cpu": ledger("cpu", 1000), "memory": ledger("memory", GIB)}
    lists: dict[str, list[Any]] = {
        key: [] for key in ("take_backs", "pending", "filtered_offers", "floors_given_up", "due", "decisions")
    }
    found = {"node": name, "mode": "enforce", "resources": resources, **lists}
    found["switches"] = []
    return found | changes


def task(task_id: str, **changes: Any) -> Answer:
    return {
        "cluster": "yarn/etl",
        "task": task_id,
        "framework_node": "n1:45454",
        "application": "application_1",
        "name": "nightly",
        "user": "ada",
        "queue": "root.etl",
        "role": "worker",
        "state": "running",
        "termination": None,
        "requested": size(2, 4),
        "used": size(0.5, 3),
        "age_seconds": 90.0,
        "listed_ago_seconds": 1.0,
        "harm_core_seconds": 330.4,
        "harm": "330 core-s = 90 s of work",
        **changes,
    }


def decision(*ids: str, ago: float = 5.0, **changes: Any) -> Answer:
    return {
        "ago_seconds": ago,
        "strategy": "memory_evict",
        "enforced": True,
        "why": "memory_evict: 91 % of the node's memory is used",
        "victims": [["yarn/etl", task_id] for task_id in ids],
        "arithmetic": [f"terminates {task_id}: frees 3 GiB" for task_id in ids],
        "barred": {},
        "outcomes": [],
        **changes,
    }


def due(on: str, why: str = "cpu: more than the dead band below") -> Answer:
    key = {"node": on, "cluster": "yarn/etl", "framework_node": f"{on}:45454"}
    return {"key": key, "size": size(1.5, 20), "urgent": True, "why": why, "take_back": {}}


def over(on: str, **changes: Any) -> Answer:
    key = {"node": on, "cluster": "yarn/etl", "framework_node": f"{on}:45454"}
    found = {"key": key, "resource": "cpu", "mode": "enforce", "overdraft": 500, "active": None, "why": "it is adopted"}
    return found | changes


def answers(
    found: Answer | None = None,
    *explanations: Answer,
    tasks: tuple[Answer, ...] = (),
    **more: Any,
) -> Answers:
    listed = {"node": "n1", "tasks": list(tasks), "incomplete": {}, "terminations_error": "", "terminations_lost": ""}
    if found is None:
        found = status(node("n1"), clusters=(cluster("yarn/etl", row("n1")),))
        explanations = explanations or (explanation("n1", "yarn/etl"),)
    return Answers(
        status=from_json(Status, found),
        explanations=tuple(from_json(Explanation, each) for each in explanations),
        tasks=from_json(Tasks, listed | more),
    )


def moment(found: Answer | None = None, *explanations: Answer, tasks: tuple[Answer, ...] = (), **more: Any) -> Snapshot:
    return snapshot(answers(found, *explanations, tasks=tasks, **more))
