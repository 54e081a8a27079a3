"""All sizes changed: with HA and with Kerberos, against a single ResourceManager that believes whoever calls.

The plain one and the one with HA are two instances of the plugin for the same ResourceManagers, in turn. With Kerberos
it is another ResourceManager: `authentication` there has no protection of messages, `privacy` encrypts each.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from random import Random
from statistics import median

import pytest
from tests.benchmarks.fleet import sending, table
from tests.benchmarks.fleet.cluster import Fleet, instance
from tests.benchmarks.fleet.sending import HOST, TIMEOUT_SECONDS
from tests.e2e.yarn.jars import Jars
from tests.e2e.yarn_ha.pair import Pair
from tests.e2e.yarn_kerberos.realm import Realm, missing_tools
from tests.e2e.yarn_kerberos.secure import SecureCluster
from tests.e2e.yarn_kerberos.spec import kerberos_spec

from fallow_hookspecs import Node
from fallow_yarn.plugin import YarnInstance

MOST_RATIO = 1.5
PLAIN = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds until the call was answered and until the scheduler's total was right; CPU seconds of the plugin for the
    call, and of the ResourceManager until then."""

    answered: float
    right: float
    ours: float
    theirs: float


def run(jars: Jars, folder: Path, nodes: int, rounds: int) -> list[str]:
    """Print the medians of each way and its ratios to the plain one; the ratios that are too large."""
    found: dict[str, list[Cost]] = {}
    with Fleet(jars, folder / "pair", nodes, containers_each=0, make=Pair) as fleet:
        pair = {"hadoopConfDir": f"{fleet.cluster.folder}/client", "user": fleet.spec()["user"]}
        found |= _in_turn(fleet, {PLAIN: fleet.spec(), "HA": pair | {"nodeManagers": list(fleet.ids)}}, rounds)
    missing = missing_tools() + ([] if find_spec("gssapi") else ["the package gssapi: tox -e bench-kerberos"])
    if missing:
        print(f"without Kerberos: not found: {', '.join(missing)}")
    else:
        with _secured(jars, folder, nodes) as (fleet, secured):
            specs = {
                f"Kerberos, {protection}": kerberos_spec(secured, protection=[protection])
                | {"nodeManagers": list(fleet.ids)}
                for protection in ("authentication", "privacy")
            }
            found |= _in_turn(fleet, specs, rounds)
    return _show(f"All {nodes} sizes changed, medians of {rounds}", found)


@contextmanager
def _secured(jars: Jars, folder: Path, nodes: int) -> Iterator[tuple[Fleet, SecureCluster]]:
    with ExitStack() as stack:
        realm = stack.enter_context(Realm(folder / "realm"))
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("KRB5_CONFIG", str(realm.config))
        keytab = realm.keytab("nm/localhost")
        options = ["fleet.principal=nm/localhost", f"fleet.keytab={keytab}", f"java.security.krb5.conf={realm.config}"]
        make = partial(SecureCluster, realm=realm)
        fleet = Fleet(
            jars, folder / "secured", nodes, containers_each=0, make=make, options=[f"-D{option}" for option in options]
        )
        assert isinstance(fleet.cluster, SecureCluster)
        yield stack.enter_context(fleet), fleet.cluster


def _in_turn(fleet: Fleet, specs: Mapping[str, Mapping[str, object]], rounds: int) -> dict[str, list[Cost]]:
    rng = Random(1)
    with ExitStack() as stack:
        plugins = {name: instance(spec) for name, spec in specs.items()}
        for plugin in plugins.values():
            stack.callback(plugin.close)
            plugin.report_capacity((Node(name=HOST),), (), TIMEOUT_SECONDS)
            _change(fleet, plugin, rng)  # the first time the ResourceManager is slower: the order is new to it
        found: dict[str, list[Cost]] = {name: [] for name in plugins}
        for _ in range(rounds):
            for name, plugin in plugins.items():
                found[name].append(_change(fleet, plugin, rng))
    return found


def _change(fleet: Fleet, plugin: YarnInstance, rng: Random) -> Cost:
    sizes = sending.varied(fleet.ids, rng)
    act = sending.by_plugin(plugin, sizes)
    began, ours, theirs = time.monotonic(), time.process_time(), fleet.cpu_seconds()
    act()
    answered, ours = time.monotonic() - began, time.process_time() - ours
    fleet.wait_until_right(sending.total_of(sizes))
    right = time.monotonic() - began
    return Cost(answered=answered, right=right, ours=ours, theirs=fleet.cpu_seconds() - theirs)


def _show(title: str, found: Mapping[str, list[Cost]]) -> list[str]:
    middle = {
        name: Cost(**{field: median(getattr(cost, field) for cost in costs) for field in Cost.__slots__})
        for name, costs in found.items()
    }
    plain = middle[PLAIN]
    rows = [
        [
            name,
            f"{cost.answered:.2f} s",
            f"{cost.right:.2f} s",
            f"{_ratio(cost, plain):.2f} x",
            f"{1000 * cost.ours:.0f} ms",
            f"{cost.theirs:.2f} s",
        ]
        for name, cost in middle.items()
    ]
    table.show(title, ["", "answered", "in force", "of plain", "CPU of the plugin", "of the ResourceManager"], rows)
    return [
        f"with {name} sizes are in force after {_ratio(cost, plain):.2f} x of plain, expected {MOST_RATIO} at most"
        for name, cost in middle.items()
        if _ratio(cost, plain) > MOST_RATIO
    ]


def _ratio(cost: Cost, plain: Cost) -> float:
    return cost.right / plain.right
