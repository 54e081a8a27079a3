"""The clauses of the contract that the suites test, each with an id and a sentence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Clause:
    """One promise of a plugin. `id` is stable and begins with its group."""

    id: str
    text: str

    def __str__(self) -> str:
        return f"clause {self.id}: {self.text}"


_ALL: Final = (
    # plugin: what the entry point names, and the life of an instance
    Clause("plugin.level", "A plugin names the lowest and the highest level of the contract that it supports."),
    Clause("plugin.hooks", "Every method marked as a hook is one of the four hooks and has only known arguments."),
    Clause("plugin.unknown-keys", "An unknown key in the configuration is an error."),
    Clause("plugin.schema", "The model of the configuration has a JSON schema."),
    Clause("plugin.close", "Closing an instance stops everything that it started."),
    # call: what holds for every hook
    Clause("call.shape", "An answer has the types of the contract: amounts are integers, ages are finite."),
    Clause("call.deadline", "A call returns an answer or raises an exception within its timeout."),
    Clause("call.failure", "If the framework cannot be reached, the call fails; it does not return an empty answer."),
    Clause("call.recovers", "Once the framework can be reached again, the same instance answers again."),
    Clause("call.lanes", "A call that reads and a call that acts can run at the same time."),
    # report: what report_capacity says
    Clause("report.rows", "A report has exactly one row for each of the framework's nodes on the requested nodes."),
    Clause("report.only-asks", "A call without offers changes nothing."),
    Clause("report.allocated", "`allocated` is the amount that the framework has promised to tasks."),
    Clause("report.in-force", "`in_force` is the size that the scheduler works with, not the one it was last sent."),
    Clause("report.not-negative", "No size, amount or age in a report is negative; a unit is at least one."),
    Clause("report.units", "Sizes and the floor are multiples of the unit, and the floor is at most the maximum."),
    Clause("report.age", "An age counts from the start of the request that returned the value."),
    Clause("report.no-news", "A node without news ages or is omitted; it is not reported as empty."),
    Clause(
        "report.pending",
        "`pending` is the sum of pending requests, or unknown; the largest request is at most the sum.",
    ),
    Clause("report.applications", "Each running application is listed once, with a progress from 0 to 1."),
    Clause("report.gangs", "A gang is reported once, with a minimum of at least one, and only if `has_gangs` is set."),
    # offer: what report_capacity does about offers
    Clause("offer.one-answer", "Each offer of a call has exactly one answer, and there are no other answers."),
    Clause("offer.in-force", "The accepted size of an offer comes into force."),
    Clause("offer.not-above", "The accepted size is at most the offered size."),
    Clause("offer.why-other", "If the accepted size differs from the offered size, the answer says why."),
    Clause("offer.why-refused", "An offer is either accepted, or refused with a kind and a reason."),
    Clause("offer.unknown-node", "An offer for a node that the framework does not have is refused as `UNKNOWN_NODE`."),
    Clause("offer.bad-value", "An impossible size is refused as `BAD_VALUE`."),
    Clause("offer.spoils-no-other", "A bad offer affects no other offer of the same call."),
    Clause("offer.repeat", "Repeating an offer changes nothing: it has the same answer and stays in force."),
    Clause(
        "offer.ends-nothing",
        "An offer without take-back terminates no task, even if it is smaller than the allocations.",
    ),
    Clause("offer.floor", "An offer of the floor is accepted, and the node keeps running."),
    Clause(
        "offer.take-back",
        "If `takes_back` is set, an offer with take-back makes the framework terminate tasks until no more than it "
        "says is allocated.",
    ),
    Clause(
        "offer.no-further",
        "What is allocated between an offer and what it takes back to is not terminated.",
    ),
    Clause("offer.no-take-back", "If `takes_back` is not set, an offer with take-back is refused."),
    # tasks: what list_tasks says
    Clause("tasks.all", "A complete list has exactly the tasks that hold resources, each of them once."),
    Clause("tasks.this-node", "The list of a node has only tasks of that node."),
    Clause(
        "tasks.terminating",
        "A terminating task is listed until it has gone, with the age of its termination if that is known.",
    ),
    Clause("tasks.vanished", "No later list has a task that has gone."),
    Clause(
        "tasks.complete", "A list without tasks is complete; an incomplete list says that it is incomplete, and why."
    ),
    Clause("tasks.requested", "The request of a task is in milli-cores and bytes."),
    Clause(
        "tasks.values",
        "Shares are from 0 to 1, ages are not negative, and only a terminating task has a terminating age.",
    ),
    Clause("tasks.application", "A task names its application and the framework's node on which it runs."),
    Clause(
        "tasks.measurable", "A running task has a cgroup, a pod or living processes, so that core can measure its use."
    ),
    Clause("tasks.age", "The age of a list counts from the start of the request that returned it."),
    # kill: what kill_tasks does
    Clause("kill.one-answer", "Each task of an order has exactly one answer, and there are no other answers."),
    Clause("kill.only-these", "An order terminates only the tasks that it names."),
    Clause("kill.ends", "An order with `force` terminates its tasks."),
    Clause("kill.gone", "The answer for a task that has gone is `ALREADY_GONE`."),
    Clause("kill.twice", "Repeating an order for a task is harmless."),
    Clause("kill.spoils-no-other", "A task that cannot be terminated affects no other task of the same order."),
    Clause(
        "kill.at-once",
        "The call returns as soon as the terminations are under way; it does not wait until the tasks have gone.",
    ),
    Clause("kill.gracefully", "Without `force` a task gets time to finish by itself."),
    Clause("kill.why", "The answers `SPARED`, `FAILED` and `NO_ACCESS` have a reason."),
    Clause("kill.reason", "The reason of an order is shown to the framework's user."),
    Clause("kill.evict", "Only a task that is a pod is answered with `EVICT`."),
    # placement: what set_cgroup_parent says
    Clause("placement.each", "Each task has exactly one place: its directories, its movable processes, or a setting."),
    Clause("placement.relative", "Directories are relative to the cgroup root."),
    Clause("placement.why", "If new tasks do not follow, the answer says why."),
    Clause("placement.repeat", "Repeating the call is harmless: no task is terminated, and the answer is the same."),
)

CLAUSES: Final[Mapping[str, Clause]] = {clause.id: clause for clause in _ALL}
"""All clauses by id, in the order of the contract."""
