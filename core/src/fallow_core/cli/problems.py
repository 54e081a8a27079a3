"""Lists the problems of a running Fallow, one text each."""

from collections.abc import Iterator

from fallow_core.api.decisions import Shortfall
from fallow_core.api.status import LABELS, Status
from fallow_core.api.tasks import Tasks
from fallow_core.cli.table import amount, lost_state_words, switch_words
from fallow_core.model.policy import SwitchState
from fallow_hookspecs import RESOURCE_NAMES


def status_problems(status: Status) -> Iterator[str]:
    """What concerns the process, a node, or a cluster that does not run."""
    yield from map(lost_state_words, status.lost_state)
    yield from status.config_problems
    yield from (why if name in why else f"{name}: {why}" for name, why in status.failed.items())
    yield from (f"{name}: removed, but it still counts: {why}" for name, why in status.removals.items())
    yield from (f"{name}: not used on this host: {why}" for name, why in status.not_selected.items())
    yield from (f"{name}: still being built" for name in status.building)
    yield from (f"{name}: {why}" for name, why in status.sample_problems.items())
    yield from (f"{it.source}: {it.kind} of {it.of} is refused: {it.why}" for it in status.refused_inputs)
    yield from (*status.probe_problems, *status.throttle_problems)
    for group, tasks in status.exempt_groups.items():
        yield f"/{group}: exempt by qos.exempt: nothing is changed there; {tasks} tasks are not throttled for it"
    yield from (switch_words(switch) for switch in status.switches if "/" not in switch.scope)
    for node in status.nodes:
        blocked = (node.of(name).watermark_problem for name in RESOURCE_NAMES)
        yield from (f"{node.node}: {why}" for why in blocked if why)
        for row in node.awaited:
            where = f"{row.cluster} {row.framework_node}"
            yield f"{where}: known from before and not reported yet; until then nothing grows"
    yield from map(_shortfall, status.shortfalls)
    yield from (restored_words(it.cluster) for it in status.clusters if it.switch.state is SwitchState.RESTORED)
    if status.restoring:
        yield "the original sizes are being put back"
    if status.journal_error:
        yield status.journal_error


def restored_words(cluster: str) -> str:
    """What `restored` means for a cluster, and how to end it."""
    return (
        f"{cluster} is restored: it is sent no size, and its tasks are neither throttled nor terminated, also under "
        f"pressure, until fallow switch lend {cluster}"
    )


def _shortfall(shortfall: Shortfall) -> str:
    name, spared = shortfall.resource, [f"{count} tasks: {why}" for why, count in shortfall.spared.items()]
    lacking = f"{amount(name, shortfall.short_of)} {'cores' if name == 'cpu' else 'GiB'}"
    frees = "terminates" if shortfall.enforced else "would terminate (observe)"
    text = f"pressure on {LABELS[name]} is not relieved: {shortfall.why}; {shortfall.strategy} {frees} too little"
    return f"{text}: it lacks {lacking}{'; not terminated are ' if spared else ''}{', '.join(spared)}"


def cluster_problems(status: Status) -> Iterator[str]:
    """Calls that fail, and sizes that a framework refuses."""
    for cluster in status.clusters:
        yield from (f"{cluster.cluster}: {call} failed: {why}" for call, why in cluster.failing.items())
        refused = (row for row in cluster.rows if row.refusal)
        yield from (f"{cluster.cluster} {row.framework_node}: refused: {row.refusal}" for row in refused)


def task_problems(tasks: Tasks) -> Iterator[str]:
    """Why tasks or their terminations may be missing."""
    yield from (f"{name}: not all tasks are known: {why}" for name, why in tasks.incomplete.items())
    yield from map(restored_words, tasks.restored)
    yield from filter(None, (tasks.terminations_error, tasks.terminations_lost))
