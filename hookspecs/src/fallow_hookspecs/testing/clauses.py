"""The clauses of the contract that can be tried on a plugin, each an id and a sentence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Clause:
    """One promise of a plugin. `id` is stable and starts with what it is about."""

    id: str
    text: str

    def __str__(self) -> str:
        return f"clause {self.id}: {self.text}"


_ALL: Final = (
    # plugin: what the entry point names, and the life of an instance
    Clause("plugin.level", "A plugin names the lowest and the highest level of the contract that it was written for."),
    Clause("plugin.hooks", "Every method that is marked as a hook is one of the four, with arguments that exist."),
    Clause("plugin.unknown-keys", "A key of the configuration that the plugin does not know is an error."),
    Clause("plugin.schema", "The model of the configuration gives a JSON schema."),
    Clause("plugin.close", "Closing an instance ends what it has started."),
    # call: what holds for every hook
    Clause("call.shape", "An answer has the types of the contract: integers where amounts are, finite ages."),
    Clause("call.deadline", "A call ends within the time it was given, with an answer or an exception."),
    Clause("call.failure", "A framework that cannot be asked is a failed call, never an answer without news."),
    Clause("call.recovers", "Once the framework can be asked again, the same instance answers again."),
    Clause("call.lanes", "A call that reads and a call that acts may run at the same time."),
    # report: what report_capacity says
    Clause(
        "report.rows", "A report has one row for each of the framework's nodes on the nodes asked for, and no other."
    ),
    Clause("report.only-asks", "A call without offers changes nothing."),
    Clause("report.allocated", "Allocated is what the framework has promised to tasks."),
    Clause("report.in-force", "In force is the size the scheduler works with, not the one it was last sent."),
    Clause("report.not-negative", "No size, amount or age of a report is negative; a unit is at least one."),
    Clause("report.units", "Sizes and the floor are whole units, and the floor is no larger than the maximum."),
    Clause("report.age", "An age counts from when the request that brought the value began."),
    Clause("report.no-news", "A node without news grows older or is left out; it is not reported as empty."),
    Clause(
        "report.pending", "Pending is what waits in the queues, or unknown; its largest request is part of the sum."
    ),
    Clause("report.applications", "The running applications are listed once each, with progress from 0 to 1."),
    Clause("report.gangs", "A gang is reported once, with a minimum of at least one, and only where there are gangs."),
    # offer: what report_capacity does about offers
    Clause("offer.one-answer", "Each offer of a call has exactly one answer, and nothing else has one."),
    Clause("offer.in-force", "An offer that is accepted comes into force, as the size that was accepted."),
    Clause("offer.not-above", "No more is accepted than was offered."),
    Clause("offer.why-other", "Where the size accepted is not the one offered, the answer says why."),
    Clause("offer.why-refused", "An offer is accepted, or refused with a kind and a reason."),
    Clause("offer.unknown-node", "An offer for a node that the framework does not have is refused as an unknown node."),
    Clause("offer.bad-value", "A size that cannot be is refused as a bad value."),
    Clause("offer.spoils-no-other", "A bad offer spoils no other offer of the same call."),
    Clause("offer.repeat", "Repeating an offer is harmless: it is answered and in force as before."),
    Clause(
        "offer.ends-nothing",
        "An offer without take-back terminates no task, even if less is offered than is allocated.",
    ),
    Clause("offer.floor", "At its floor a node is kept: it is accepted, and the node runs on."),
    Clause("offer.take-back", "Who says that the framework takes back has it end work until the rest fits the offer."),
    Clause("offer.notice", "Nothing is taken back before its notice is over."),
    Clause("offer.no-take-back", "Where the framework does not take back, an offer that asks for it is refused."),
    # tasks: what list_tasks says
    Clause("tasks.all", "A complete list has exactly the tasks that hold resources, each once."),
    Clause("tasks.this-node", "The list of a node has the tasks of that node alone."),
    Clause(
        "tasks.terminating",
        "A task that is terminating is listed until it has gone; where that is known, with since when.",
    ),
    Clause("tasks.vanished", "A task that has gone is in no later list."),
    Clause("tasks.complete", "No tasks is a complete list; a list that lacks something says so, and why."),
    Clause("tasks.requested", "A task's request is its amount in milli-cores and bytes."),
    Clause(
        "tasks.values", "Shares are from 0 to 1, ages are not negative, only a task that ends has a terminating age."
    ),
    Clause("tasks.application", "A task names its application and the framework's node that it runs on."),
    Clause(
        "tasks.measurable", "A running task has a cgroup, a pod or living processes, so that its use can be measured."
    ),
    Clause("tasks.age", "The age of a list counts from when the request that brought it began."),
    # kill: what kill_tasks does
    Clause("kill.one-answer", "Each task of an order has exactly one answer, and nothing else has one."),
    Clause("kill.only-these", "An order ends the tasks that it names, and no other."),
    Clause("kill.ends", "A task that was ordered to end now ends."),
    Clause("kill.gone", "A task that has gone is answered as already gone."),
    Clause("kill.twice", "Asking twice for the same task is harmless."),
    Clause("kill.spoils-no-other", "A task that cannot be terminated spoils no other of the same order."),
    Clause("kill.at-once", "The answer comes as soon as the terminations are under way; nobody waits for the end."),
    Clause("kill.gracefully", "Without force a task gets the time to end by itself."),
    Clause("kill.why", "A task that is spared, failed or not accessible says why."),
    Clause("kill.reason", "The reason of an order reaches the framework's user."),
    Clause("kill.evict", "Only a task that is a pod is left to eviction."),
    # placement: what set_cgroup_parent says
    Clause("placement.each", "Each task is placed once: by its directories, its movable processes, or a setting."),
    Clause("placement.relative", "Directories are relative to the cgroup root."),
    Clause("placement.why", "Where new tasks do not follow, the answer says why."),
    Clause("placement.repeat", "Asking again is harmless: no task ends, and the answer is the same."),
)

CLAUSES: Final[Mapping[str, Clause]] = {clause.id: clause for clause in _ALL}
"""All clauses by id, in the order of the contract."""
