"""Switches: what the operator wants of all, of a framework, a cluster, a pool or a node. Pure.

A switch is kept under its scope: `all`, `framework:yarn`, `pool:NAME`, `node:NAME`, or the name of a cluster, which is
`framework/cluster`. Of those that match a cluster on a node the strictest counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fallow_core.model.policy import SwitchState

ALL = "all"

STRICTNESS = (SwitchState.LEND, SwitchState.HOLD, SwitchState.DRAIN, SwitchState.STOP, SwitchState.RESTORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """What the operator wants of one scope, and who wanted it, when (seconds since 1970) and why."""

    state: SwitchState = SwitchState.LEND
    who: str = ""
    when: float = 0.0
    why: str = ""


def scopes(cluster: str, node: str, pool: str) -> list[str]:
    """The scopes that a cluster on a node lies in, the narrowest first; `pool` is empty where the node is in none."""
    of_pool = [f"pool:{pool}"] if pool else []
    return [cluster, f"node:{node}", *of_pool, f"framework:{framework_of(cluster)}", ALL]


def framework_of(cluster: str) -> str:
    """The framework of a cluster."""
    return cluster.partition("/")[0]


def strictest(switches: Mapping[str, Switch], of: Iterable[str]) -> tuple[str, Switch]:
    """The strictest switch of these scopes, and its scope; of equally strict ones the first. Without any it lends."""
    found = [(scope, switches[scope]) for scope in of if scope in switches]
    return max(found, key=lambda each: STRICTNESS.index(each[1].state), default=("", Switch()))


def restored(switches: Mapping[str, Switch]) -> frozenset[str]:
    """The clusters that were restored, whatever else applies to them."""
    return frozenset(scope for scope, switch in switches.items() if switch.state is SwitchState.RESTORED)


def no_longer_restored(switches: Mapping[str, Switch], scope: str) -> list[str]:
    """The restored clusters whose own switch is dropped when this scope is switched: those in a framework, or all.

    The switch of a pool or a node cannot end it, since a cluster is restored on all of its nodes.
    """
    return sorted(name for name in restored(switches) if scope in (f"framework:{framework_of(name)}", ALL))


def known_scopes(clusters: Iterable[str], nodes: Iterable[str], pools: Iterable[str]) -> list[str]:
    """All scopes that a switch may be set for."""
    names = sorted(clusters)
    frameworks = sorted({framework_of(name) for name in names})
    return [
        *names,
        *(f"framework:{name}" for name in frameworks),
        *(f"pool:{name}" for name in pools),
        *(f"node:{name}" for name in nodes),
        ALL,
    ]


def meant(asked: object, known: Iterable[str]) -> list[str]:
    """The scopes that somebody may mean: one by its whole name, or a cluster by its name alone."""
    scopes_known = list(known)
    if asked in scopes_known:
        return [str(asked)]
    return [scope for scope in scopes_known if "/" in scope and ":" not in scope and asked == scope.partition("/")[2]]
