"""The record of one thing in the view, as the other commands show it."""

from msgspec.structs import replace

from fallow_core.api.decisions import Decision
from fallow_core.api.explain import DueOffer, TakeBackDecision
from fallow_core.api.tasks import TaskStatus
from fallow_core.cli import tasks
from fallow_core.cli.live.events import Event
from fallow_core.cli.live.snapshot import Snapshot
from fallow_core.cli.live.view_state import Kind, Ref
from fallow_core.cli.render_explain import decision_lines, due_words, explanation_lines, take_back_words
from fallow_core.cli.render_status import status_lines
from fallow_core.cli.table import paragraph

GONE = ["It is not there any more."]


def record(snapshot: Snapshot, ref: Ref) -> list[str]:
    """What `fallow explain` says of a node or a decision, `fallow tasks` of a task, `fallow status` of a cluster."""
    answers, lines = snapshot.answers, list[str]()
    match ref.kind:
        case Kind.NODE:
            for explanation in answers.explanations:
                lines += explanation_lines(explanation) if explanation.node == ref.key else []
        case Kind.ACCOUNT:
            clusters = tuple(cluster for cluster in answers.status.clusters if cluster.cluster == ref.key)
            lines += status_lines(replace(answers.status, nodes=(), clusters=clusters)) if clusters else []
        case Kind.TASK:
            for task in snapshot.tasks:
                lines += _task(snapshot, task) if f"{task.cluster} {task.task}" == ref.key else []
        case Kind.EVENT:
            for event in snapshot.events:
                lines += _event(event) if event.key == ref.key else []
    return lines or GONE


def _task(snapshot: Snapshot, task: TaskStatus) -> list[str]:
    head = f"task {task.task} of {task.cluster} on {task.framework_node}, application {task.application}"
    one = replace(snapshot.answers.tasks, tasks=(task,))
    lines = [head, "", *tasks.lines(one), "", f"cost: {task.harm}"]
    if task.termination:
        note = f"; {task.termination.note}" if task.termination.note else ""
        lines.append(f"it is being terminated ({task.termination.phase}): {task.termination.why}{note}")
    return lines


def _event(event: Event) -> list[str]:
    match event.source:
        case Decision():
            return decision_lines(event.source)
        case DueOffer():
            return paragraph(due_words(event.source))
        case TakeBackDecision():
            return paragraph(take_back_words(event.source))
    return [event.text]
