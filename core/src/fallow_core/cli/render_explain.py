"""`fallow explain` as lines for people: each number with the terms that it was calculated from."""

from collections.abc import Iterator, Sequence

from fallow_core.api.decisions import Decision
from fallow_core.api.explain import (
    ClusterPending,
    DueOffer,
    Explanation,
    GivenUpFloor,
    GrantStatus,
    TakeBackDecision,
)
from fallow_core.api.status import RowName
from fallow_core.cli.capacity_lines import capacity_lines
from fallow_core.cli.render_status import mode_words
from fallow_core.cli.render_throttling import throttled
from fallow_core.cli.table import LABELS, amount, lost_state_words, marked, paragraph, seconds, size_words, switch_words
from fallow_core.ledger.entries import AccountEntry, ResourceLedger, RowEntry
from fallow_core.ledger.rows import ZERO
from fallow_core.model.policy import PublishingMode, SwitchState
from fallow_hookspecs import RESOURCE_NAMES, ResourceName

SWITCHED = {
    SwitchState.HOLD: "its offers do not grow",
    SwitchState.DRAIN: "no new work starts",
    SwitchState.STOP: "no new work starts, and what does not end by itself is terminated",
    SwitchState.RESTORED: "it keeps its original sizes, and its tasks are neither throttled nor terminated",
}
NOTHING_DUE = (
    "nothing is due: every size is within the dead band, waits for its growth delay, or belongs to a restored cluster"
)


def explanation_lines(answer: Explanation) -> list[str]:
    """The whole answer."""
    lines = [f"node {answer.node}, {mode_words(answer.mode)}{pool_words(answer.pools)}"]
    lines += marked(map(lost_state_words, answer.lost_state), "  ")
    for switch in answer.switches:
        lines += paragraph(f"{switch.cluster}: {switch_words(switch)}; {SWITCHED[switch.state]}", "  ")
    for name in RESOURCE_NAMES:
        lines += ["", LABELS[name], *_ledger(name, answer.resources[name])]
    lines += ["", *throttled(answer.throttle)] if answer.throttle is not None else []
    lines.append("")
    lines += [line for text in _offers(answer) for line in paragraph(text)]
    for decision in answer.decisions:
        lines += ["", *decision_lines(decision)]
    return lines


def pool_words(pools: Sequence[str]) -> str:
    """The pool of a node, and which others it matches."""
    others = f", the first of those that it matches: {', '.join(pools)}" if len(pools) > 1 else ""
    return f", pool {pools[0]}{others}" if pools else ""


def _offers(answer: Explanation) -> Iterator[str]:
    """What decides about offers besides the ledger, the offers that are due, and take-backs."""
    yield from map(_pending, answer.pending)
    yield from map(_given_up, answer.floors_given_up)
    yield from (f"not made: the larger offer to {_where(it.key)}; {it.why}" for it in answer.filtered_offers)
    yield from map(due_words, answer.due)
    if answer.node_grant is not None:
        yield from _grant(answer.node_grant)
    elif not answer.due:
        yield NOTHING_DUE
    yield from map(take_back_words, answer.take_backs)


def _where(key: RowName) -> str:
    return f"{key.cluster} {key.framework_node}"


def _pending(pending: ClusterPending) -> str:
    total = "a sum that is not known" if pending.total is None else size_words(pending.total)
    if pending.smallest is not None:
        total += f" (smallest request {size_words(pending.smallest)}; largest {size_words(pending.largest)})"
    names = " and ".join(name or "the default partition" for name in pending.partitions)
    where = f" for {names}" if names else ""
    words = [f"{pending.cluster} has pending{where} {total}", *([pending.detail] if pending.detail else [])]
    if pending.elsewhere != ZERO:
        words.append(f"this node cannot serve what is pending for other partitions: {size_words(pending.elsewhere)}")
    return "; ".join(words)


def _given_up(floor: GivenUpFloor) -> str:
    left = seconds(floor.left_seconds)
    return (
        f"given up for another {left}: the floor of {_where(floor.key)}; pressure terminated a task in it twice within "
        "an hour"
    )


def due_words(due: DueOffer) -> str:
    """An offer that is due, and why."""
    when = "at once" if due.urgent else "with the next call"
    return f"due {when}: {_where(due.key)} to {size_words(due.size)}; {due.why}"


def _grant(grant: GrantStatus) -> Iterator[str]:
    """What a controller tells an agent to take back of memory, and from whom. An agent sends no offers."""
    if grant.why:
        yield f"nothing is due: no controller's grant is valid; {grant.why}"
        return
    if grant.to_take_back:
        over = amount("memory", grant.to_take_back)
        yield f"due: the controller's ledger asks for {over} GiB less of allocated memory"
    else:
        yield "nothing is due: by the controller's ledger no more is allocated than can be lent"
    for name, account in grant.accounts.items():
        sizes = (account.allocated, account.target, account.may_pay)
        allocated, target, may_pay = (amount("memory", size) for size in sizes)
        stopped = "; it is stopped" if account.stopped else ""
        yield f"{name}: {allocated} GiB allocated, target {target} GiB, may still lose {may_pay} GiB{stopped}"


def take_back_words(take_back: TakeBackDecision) -> str:
    """A row above its offer, and what is done about it."""
    name, active = take_back.resource, take_back.active
    does = "is taken back" if take_back.mode is PublishingMode.ENFORCE else "would be taken back"
    doing = "" if active is None else f"; {does} down to {amount(name, active.down_to)}"
    over = f"{LABELS[name]} above the offer: {amount(name, take_back.overdraft)}"
    return f"{_where(take_back.key)}: {over}{doing}; {take_back.why} (mode {take_back.mode})"


def decision_lines(decision: Decision) -> list[str]:
    """One choice of victims: the need, the victims with their harm, the tasks that were spared, and the outcome."""
    did = "terminated" if decision.enforced else "would have terminated (observe)"
    count = len(decision.victims)
    head = f"{seconds(decision.ago_seconds)} ago {decision.strategy} {did} {count} task{'' if count == 1 else 's'}"
    lines = [head, *(line for text in decision.arithmetic for line in paragraph(text, indent="  "))]
    lines += [line for text in decision.outcomes for line in paragraph(text, indent="  → ")]
    barred = "; ".join(f"{task}: {why}" for task, why in decision.barred.items())
    return [*lines, *paragraph(f"may not be terminated: {barred}", indent="  ")] if barred else lines


def _ledger(name: ResourceName, ledger: ResourceLedger) -> list[str]:
    if ledger.capacity is None:
        lines = ["  never measured: no size changes"]
    else:
        lines = capacity_lines(name, ledger.capacity, ledger.sample_age_seconds)
    sums = ("allocated", "believed", "exposure", "overdraft")
    lines.append("  " + ", ".join(f"{what} {amount(name, getattr(ledger, what))}" for what in sums))
    for account in ledger.accounts:
        lines += paragraph(_account(name, account), "  ")
    ignoring = {account.cluster for account in ledger.accounts if not account.honoured}
    for row in ledger.rows:
        lines += paragraph(_row(name, row, row.key.cluster in ignoring), "    ")
    return lines


def _account(name: ResourceName, account: AccountEntry) -> str:
    demand = "everything" if account.demand is None else amount(name, account.demand)
    limit = "" if account.limit is None else f", limit {amount(name, account.limit)}"
    if account.of_tasks is not None:
        tasks = amount(name, account.of_tasks)
        limit += f" (CPU not honoured: no more than the tasks need that batch CPU is for, {tasks})"
    drains = "; drains for an account that waits" if account.drains_for_others else ""
    return (
        f"account {account.cluster}: weight {account.weight}, allocated {amount(name, account.allocated)}, "
        f"wants {demand}{limit}, floor {amount(name, account.floor)} → fair {amount(name, account.fair)}, "
        f"target {amount(name, account.target)}{drains}"
    )


def _row(name: ResourceName, row: RowEntry, ignored: bool) -> str:
    reasons = f" ({'; '.join(row.reasons)})" if row.reasons else ""
    return (
        f"{row.key.framework_node}: target {amount(name, row.target)} → offer {amount(name, row.size)}{reasons}; "
        f"in force {amount(name, row.in_force)}, newest sent {amount(name, row.newest)}, "
        f"belief {amount(name, row.belief)}{' (not honoured)' if ignored else ''}"
    )
