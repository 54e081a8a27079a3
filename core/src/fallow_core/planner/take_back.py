"""Take-backs in a round: what each row's take-back depends on, the decisions, and what tasks may be terminated for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fallow_core.ledger.blast_radius import Candidate, Part, budget, decide_all
from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.node_ledger import NodeLedger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.take_back import Change, Decision, PartState, Situation
from fallow_core.ledger.take_back_offers import with_take_backs
from fallow_core.model.event import Event
from fallow_core.model.policy import AccountPolicy, PublishingMode, SwitchState, TakeBack
from fallow_core.planner.nodes import Computed
from fallow_core.planner.observations import NO_TASKS, ClusterObservation
from fallow_core.planner.state import PlannerState
from fallow_hookspecs import ResourceName

Situations = Mapping[Part, Situation]


def decide(
    state: PlannerState, computed: Sequence[Computed], clusters: Mapping[str, ClusterObservation], now: float
) -> tuple[dict[str, list[DueOffer]], list[Event]]:
    """Decide about the take-backs of the nodes that were computed. Returns the offers of each node with them.

    In observe mode they are only shown; one that is under way then is cancelled.
    """
    enforce = PublishingMode.OBSERVE not in (state.take_back.mode, state.publishing.mode)
    situations: dict[Part, Situation] = {}
    candidates = [each for one in computed for each in _candidates(state, one, clusters, situations, enforce=enforce)]
    decisions = decide_all(state.take_backs, candidates, state.take_back, now, enforce=enforce)
    events = _tell(state, decisions, enforce=enforce)
    offers: dict[str, list[DueOffer]] = {}
    for one in computed:
        own = {row.key for row in one.inputs.rows}
        found = {(key, name): decisions[key, name] for key in own for name in state.take_back.after_seconds}
        one.node.decisions = found
        by_resource: dict[ResourceName, dict[RowKey, Decision]] = {}
        for (key, name), decision in found.items():
            if enforce or decision.state.active is None:
                by_resource.setdefault(name, {})[key] = decision
        offers[one.node.name] = with_take_backs(one.due, one.inputs.rows, by_resource)
    _share_budgets(state, computed, situations, now, enforce=enforce)
    return offers, events


def adopt(state: PlannerState, keys: Sequence[RowKey]) -> list[RowKey]:
    """Allow take-backs of what was allocated on these rows when Fallow first saw them."""
    for key in keys:
        for name in state.take_back.after_seconds:
            part = (key, name)
            state.take_backs.parts[part] = replace(state.take_backs.parts.get(part, PartState()), fitted=True)
    state.look_at_all()
    return sorted(keys)


def under_pressure(ledger: NodeLedger) -> bool:
    """Whether a node is measured to use more than its watermark allows, batch included."""
    sides = (ledger.cpu.capacity, ledger.memory.capacity)
    return any(side is not None and side.used > side.capacity - side.margin for side in sides)


def _candidates(
    state: PlannerState,
    one: Computed,
    clusters: Mapping[str, ClusterObservation],
    situations: dict[Part, Situation],
    *,
    enforce: bool,
) -> list[Candidate]:
    ledger = one.node.ledger
    assert ledger is not None
    pressed = under_pressure(ledger)
    found = []
    for name in state.take_back.after_seconds:
        side = ledger.of(name)
        for entry, row in zip(side.rows, sorted(one.inputs.rows, key=lambda row: row.key), strict=True):
            situation = _situation(state, one, row, name, clusters[row.key.cluster], enforce=enforce)
            situations[row.key, name] = situation
            found.append(
                Candidate(
                    entry=entry,
                    resource=name,
                    situation=situation,
                    node_overdraft=side.to_take_back,
                    under_pressure=pressed,
                )
            )
    return found


def _situation(
    state: PlannerState, one: Computed, row: Row, name: ResourceName, cluster: ClusterObservation, *, enforce: bool
) -> Situation:
    inputs, active = one.inputs, state.take_backs.parts.get((row.key, name), PartState()).active
    account = inputs.accounts.get(row.key.cluster, AccountPolicy())
    can = cluster.capabilities
    capability = None if can is None else can.cpu if name == "cpu" else can.memory
    usage, limit = inputs.sample.of(name), inputs.publishing.degrade_after_seconds
    sampled = usage is not None and inputs.now - usage.measured_at < limit
    tasks = one.node.observation.tasks.get(row.key, NO_TASKS)
    return Situation(
        allowed=capability is not None
        and capability.takes_back
        and not capability.take_back_charged
        and account.take_back is TakeBack.ALLOWED
        and account.switch is not SwitchState.RESTORED
        and (enforce or active is None),
        fresh=sampled and inputs.now - row.measured_at < limit and not inputs.unsure,
        masters=tasks.masters.amount(name),
        largest=tasks.largest.amount(name),
        cluster_allocated=state.clusters[row.key.cluster].sums.allocated.amount(name),
        settles=state.settles(inputs.now),
        stopped=account.switch is SwitchState.STOP,
    )


def _share_budgets(
    state: PlannerState, computed: Sequence[Computed], situations: Situations, now: float, *, enforce: bool
) -> None:
    """What tasks of each cluster may be terminated for overdraft of memory on each node, in bytes.

    That is where the framework cannot take back, or did not in its time; nothing that was adopted. All nodes of a
    cluster together get no more than the blast radius leaves, those under pressure first.
    """
    for one in computed:
        one.node.budgets = {}
    if state.settles(now):
        return
    left: dict[str, int] = {}
    by_key = {row.key: one.node for one in computed for row in one.inputs.rows}
    decided = [(part[0], d) for one in computed for part, d in one.node.decisions.items() if part[1] == "memory"]
    for key, decision in decided:
        active = decision.state.active
        overdue = active is not None and active.overdue(now, state.take_back)
        taken_back = situations[key, "memory"].allowed and enforce
        if not decision.overdraft or not decision.state.fitted or (taken_back and not overdue):
            continue
        cluster, situation = key.cluster, situations[key, "memory"]
        if cluster not in left:
            started = state.take_backs.started.get((cluster, "memory"), ())
            left[cluster] = budget(started, "memory", situation, state.take_back, now)
        most = left[cluster]
        if overdue and active is not None:
            most = max(most, active.started.amount)
        node = by_key[key]
        node.budgets = {**node.budgets, cluster: max(node.budgets.get(cluster, 0), most)}
        left[cluster] = max(left[cluster] - decision.overdraft - situation.largest, 0)


def _tell(state: PlannerState, decisions: Mapping[Part, Decision], *, enforce: bool) -> list[Event]:
    events = []
    for part, decision in decisions.items():
        (key, name), change, active = part, decision.change, decision.state.active
        if change is Change.STARTS:
            if enforce:
                state.clusters[key.cluster].take_backs_started += 1
            if (enforce or part not in state.told_take_backs) and active is not None:
                state.told_take_backs.add(part)
                what = "take_back_starts" if enforce else "take_back_would_start"
                amount, notice = active.started.amount, active.notice_seconds
                events.append(_event(what, key, resource=name, amount=amount, notice_seconds=notice, why=decision.why))
        elif change is not None:
            down_to = {} if active is None else {"down_to": active.size}
            events.append(_event(f"take_back_{change}", key, resource=name, **down_to, why=decision.why))
        if not decision.overdraft:
            state.told_take_backs.discard(part)
    return events


def _event(name: str, key: RowKey, **fields: object) -> Event:
    return Event(logger="take_back", name=name, fields={"cluster": key.cluster, "node": key.framework_node} | fields)
