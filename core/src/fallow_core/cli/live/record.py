"""The record of one thing in the view, as the other commands show it."""

from fallow_core.cli import render, tasks
from fallow_core.cli.live.events import Event
from fallow_core.cli.live.snapshot import Answer, Snapshot
from fallow_core.cli.live.view_state import Kind, Ref

GONE = ["It is not there any more."]


def record(snapshot: Snapshot, ref: Ref) -> list[str]:
    """What `fallow explain` says of a node or a decision, `fallow tasks` of a task, `fallow status` of a cluster."""
    status = snapshot.answers.status
    match ref.kind:
        case Kind.NODE:
            found = [answer for answer in snapshot.answers.explanations if answer["node"] == ref.key]
            return [line for answer in found for line in render.explanation(answer)] or GONE
        case Kind.ACCOUNT:
            clusters = [cluster for cluster in status["clusters"] if cluster["cluster"] == ref.key]
            return render.status({**status, "nodes": [], "clusters": clusters}) if clusters else GONE
        case Kind.TASK:
            for answer in snapshot.answers.tasks["tasks"]:
                if f"{answer['cluster']} {answer['task']}" == ref.key:
                    return _task(snapshot, answer)
        case Kind.EVENT:
            for event in snapshot.events:
                if event.key == ref.key:
                    return _event(snapshot, event)
    return GONE


def _task(snapshot: Snapshot, task: Answer) -> list[str]:
    head = f"task {task['task']} of {task['cluster']} on {task['framework_node']}, application {task['application']}"
    termination = task["termination"]
    lines = [head, "", *tasks.lines({**snapshot.answers.tasks, "tasks": [task]}), "", f"cost: {task['harm']}"]
    if termination:
        note = f"; {termination['note']}" if termination["note"] else ""
        lines.append(f"it ends ({termination['phase']}): {termination['why']}{note}")
    return lines


def _event(snapshot: Snapshot, event: Event) -> list[str]:
    """The lines that `fallow explain` has for it beyond those that it has without it."""
    if event.record is None:
        return [event.text]
    place, what, index = event.record
    answer = snapshot.answers.explanations[place]
    bare = {**answer, "take_backs": [], "due": [], "decisions": []}
    lines = render.explanation({**bare, what: [answer[what][index]]})
    start = len(render.explanation(bare))
    if what == "due":  # it takes the place of the line which says that nothing is due
        start -= 1
    return [line for line in lines[start:] if line]
