"""What the planner remembers between rounds: of each node, of each cluster, and of all. One round brings it up to
date.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from fallow_core.ledger.blast_radius import Part, TakeBacks
from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import RowKey
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import ExitMode, PublishingPolicy, SwitchState
from fallow_core.model.refused_inputs import RefusedInputs
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_core.planner.memory import Memory, Original
from fallow_core.planner.node_state import NodeState
from fallow_core.planner.sums import ClusterSums
from fallow_core.planner.switches import Switch, known_scopes, scopes, strictest
from fallow_hookspecs import Resources

SETTLE_SECONDS = 1800.0
"""After a changed policy nothing is taken back, and no task is terminated for overdraft, for this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizesLeftBehind:
    """Since when a cluster is sent only the sizes to leave behind, and which those are."""

    mode: ExitMode
    since: float


@dataclass(slots=True, kw_only=True)
class ClusterState:
    """One cluster. `rows`: its keys by node. `inputs`: what of it concerns all its nodes, to notice that it changed.

    `due`: offers that are due by the ledgers of its nodes. `warning`: what is said of its largest node.
    """

    sums: ClusterSums = field(default_factory=ClusterSums)
    rows: dict[str, set[RowKey]] = field(default_factory=dict)
    inputs: object = None
    due: dict[RowKey, DueOffer] = field(default_factory=dict)
    warning: str = ""
    take_backs_started: int = 0


@dataclass(slots=True, kw_only=True)
class PlannerState:
    """All of it. `names` are the clusters that are configured; `removed` those that are no longer and still count, with
    the reason in `removal_reasons`; `left_behind` those that get no other sizes, as Fallow stops or restores them.

    `memory` is what has to survive a restart: the caller writes changes down and applies them. `unwritten`: rows of
    which a change may not be written down yet. `awaited`: rows that an earlier process knew and that nobody has
    reported yet. `due`: what is due now, the rules that hold offers back applied. `unknown_until`: the memory was lost,
    so anything may be in flight. `memory_unknown`: why an earlier process's memory cannot be read, while no person has
    given it up; then nothing grows, and no size that was found since then counts as the one found first.
    """

    policies: NodePolicies
    publishing: PublishingPolicy
    take_back: TakeBackPolicy = field(default_factory=TakeBackPolicy)
    names: frozenset[str] = frozenset()
    memory: Memory = field(default_factory=Memory)
    awaited: set[RowKey] = field(default_factory=set)
    nodes: dict[str, NodeState] = field(default_factory=dict)
    clusters: dict[str, ClusterState] = field(default_factory=dict)
    removed: dict[str, SizesLeftBehind] = field(default_factory=dict)
    removal_reasons: dict[str, str] = field(default_factory=dict)
    left_behind: dict[str, SizesLeftBehind] = field(default_factory=dict)
    take_backs: TakeBacks = field(default_factory=TakeBacks)
    due: dict[RowKey, DueOffer] = field(default_factory=dict)
    unwritten: set[RowKey] = field(default_factory=set)
    told: dict[RowKey, Resources] = field(default_factory=dict)
    told_take_backs: set[Part] = field(default_factory=set)
    refused: RefusedInputs = field(default_factory=lambda: RefusedInputs("nodes"))
    unknown_until: float = -math.inf
    memory_unknown: str = ""
    settles_until: float = -math.inf
    policies_checked_at: float = -math.inf
    last_round_at: float = -math.inf

    def look_at_all(self) -> None:
        """Compute every node in the next round: something changed that concerns all of them."""
        self.policies_checked_at = -math.inf
        for node in self.nodes.values():
            node.look_again_at = -math.inf

    @property
    def originals(self) -> Mapping[RowKey, Original]:
        """The size that each row had before Fallow first changed it; none while that is unknown."""
        return {} if self.memory_unknown else self.memory.originals

    def settle(self, now: float) -> None:
        """The policy of something changed: for `SETTLE_SECONDS` overdraft only drains."""
        self.settles_until = now + SETTLE_SECONDS

    def settles(self, now: float) -> bool:
        """Whether a policy changed a short time ago."""
        return now < self.settles_until

    def pool(self, node: str) -> str:
        """The pool of a node; empty where it is in none or unknown."""
        return next(iter(self.pools(node)), "")

    def pools(self, node: str) -> tuple[str, ...]:
        """The pools that a node matches, of which the first one counts; empty where it is unknown."""
        found = self.nodes.get(node)
        return () if found is None else found.policy.pools

    def switch_at(self, cluster: str, node: str) -> tuple[str, Switch]:
        """The scope and the switch that count for a cluster on a node: the strictest of those that match."""
        return strictest(self.memory.switches, scopes(cluster, node, self.pool(node)))

    def restored(self, cluster: str) -> bool:
        """Whether a cluster was restored: no size is sent to it until the operator switches it to something else."""
        return self.memory.switches.get(cluster, Switch()).state is SwitchState.RESTORED

    def stopped(self, node: str) -> frozenset[str]:
        """The clusters of which nothing is to run on a node."""
        return frozenset(name for name in self.names if self.switch_at(name, node)[1].state is SwitchState.STOP)

    def scopes(self, nodes: Iterable[str]) -> list[str]:
        """All scopes that can be switched, and those that were once."""
        known = known_scopes(self.names, nodes, [pool.name for pool in self.policies.pools])
        return [*known, *sorted(self.memory.switches.keys() - set(known) - self.removed.keys())]

    @property
    def take_backs_started(self) -> Counter[str]:
        """How many take-backs were started, by cluster."""
        return Counter({name: cluster.take_backs_started for name, cluster in self.clusters.items()})


def add_cluster(state: PlannerState, name: str) -> None:
    """A cluster is configured from now on. One that was being removed stays."""
    if name in state.names:
        return
    state.names |= {name}
    state.removal_reasons.pop(name, None)
    if state.removed.pop(name, None) is None:
        state.awaited |= {key for key in state.memory.known if key.cluster == name}
    state.look_at_all()


def remove_cluster(state: PlannerState, name: str, mode: ExitMode, now: float) -> None:
    """A cluster is no longer configured. It gets the size to leave behind and no other; its rows count until its
    scheduler can promise nothing any more. One that was restored keeps its sizes.
    """
    state.names -= {name}
    state.left_behind.pop(name, None)
    if name in state.clusters:
        mode = ExitMode.KEEP if state.restored(name) else mode
        state.removed[name] = SizesLeftBehind(mode=mode, since=now)
        state.removal_reasons[name] = f"its sizes to leave behind are being sent: {mode}"
    else:
        state.awaited = {key for key in state.awaited if key.cluster != name}
    state.look_at_all()


def forget_cluster(state: PlannerState, name: str) -> None:
    """Nothing of a removed cluster counts any more."""
    state.removed.pop(name, None)
    state.removal_reasons.pop(name, None)
    state.clusters.pop(name, None)
    state.awaited = {key for key in state.awaited if key.cluster != name}
    state.take_backs.forget(lambda key: key.cluster == name)


def leave_behind(state: PlannerState, clusters: Collection[str], mode: ExitMode, now: float) -> None:
    """From now on send these clusters only the sizes to leave behind, until their frameworks have taken them.

    A cluster that was restored keeps its sizes.
    """
    sizes = SizesLeftBehind(mode=mode, since=now)
    state.left_behind = {
        name: state.left_behind[name] if state.restored(name) else sizes
        for name in clusters
        if name in state.left_behind or not state.restored(name)
    }


def restore(state: PlannerState, now: float) -> None:
    """Send every row the size found first, and then nothing more; removed clusters then keep what they have."""
    names = {*state.names, *state.removed}
    state.left_behind = dict.fromkeys(sorted(names), SizesLeftBehind(mode=ExitMode.ORIGINAL, since=now))
    state.removed = {name: replace(sizes, mode=ExitMode.KEEP) for name, sizes in state.removed.items()}


def forget_node(state: PlannerState, name: str) -> None:
    """A node is no longer there. What frameworks report of it counts for no other one."""
    state.nodes.pop(name, None)
    for cluster in state.clusters.values():
        cluster.due = {key: due for key, due in cluster.due.items() if key.node != name}
    state.take_backs.forget(lambda key: key.node == name)
