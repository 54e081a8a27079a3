from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.model.policy import SwitchState
from fallow_core.planner.switches import (
    STRICTNESS,
    Switch,
    known_scopes,
    meant,
    no_longer_restored,
    restored,
    scopes,
    strictest,
)

HERE = scopes("yarn/etl", "n1", "night")
KNOWN = known_scopes(["yarn/etl", "yarn/adhoc", "spark/etl", "spark/all"], ["n1"], ["night"])


def test_a_cluster_on_a_node_lies_in_all_these_scopes() -> None:
    assert HERE == ["yarn/etl", "node:n1", "pool:night", "framework:yarn", "all"]
    assert scopes("yarn/etl", "n1", "") == ["yarn/etl", "node:n1", "framework:yarn", "all"]


@pytest.mark.parametrize("scope", HERE)
def test_a_switch_counts_for_what_lies_in_its_scope(scope: str) -> None:
    assert strictest({scope: Switch(state=SwitchState.DRAIN)}, HERE) == (scope, Switch(state=SwitchState.DRAIN))


@pytest.mark.parametrize("scope", ["yarn/adhoc", "node:n2", "pool:day", "framework:spark"])
def test_a_switch_of_something_else_counts_for_nothing(scope: str) -> None:
    assert strictest({scope: Switch(state=SwitchState.DRAIN)}, HERE) == ("", Switch())


def test_the_strictest_counts_whatever_its_scope() -> None:
    for narrow, wide in permutations(SwitchState, 2):
        _, found = strictest({"yarn/etl": Switch(state=narrow), "all": Switch(state=wide)}, HERE)
        assert found.state is max(narrow, wide, key=STRICTNESS.index)


OTHERS = [scope for scope in HERE if scope != "pool:night"]


@given(st.dictionaries(st.sampled_from([*OTHERS, "node:n2"]), st.builds(Switch, state=st.sampled_from(SwitchState))))
def test_one_more_switch_never_lends_more(switches: dict[str, Switch]) -> None:
    _, before = strictest(switches, HERE)
    for state in SwitchState:
        _, after = strictest({**switches, "pool:night": Switch(state=state)}, HERE)
        assert after.state is max(before.state, state, key=STRICTNESS.index)


RESTORED = {name: Switch(state=SwitchState.RESTORED) for name in ("yarn/etl", "yarn/adhoc", "spark/etl")}


def test_a_cluster_is_restored_whatever_else_applies_to_it() -> None:
    switches = {**RESTORED, "all": Switch(state=SwitchState.STOP), "yarn/other": Switch(state=SwitchState.DRAIN)}
    assert restored(switches) == RESTORED.keys()


@pytest.mark.parametrize(
    ("scope", "lifted"),
    [
        ("all", ["spark/etl", "yarn/adhoc", "yarn/etl"]),
        ("framework:yarn", ["yarn/adhoc", "yarn/etl"]),
        ("yarn/etl", []),  # its own switch is replaced
        ("node:n1", []),
        ("pool:night", []),
    ],
)
def test_a_switch_of_its_framework_or_of_all_ends_that_a_cluster_is_restored(scope: str, lifted: list[str]) -> None:
    assert no_longer_restored(RESTORED, scope) == lifted


def test_every_state_has_its_place() -> None:
    assert set(STRICTNESS) == set(SwitchState)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("yarn/etl", ["yarn/etl"]),
        ("adhoc", ["yarn/adhoc"]),
        ("etl", ["spark/etl", "yarn/etl"]),
        ("all", ["all"]),
        ("pool:night", ["pool:night"]),
        ("framework:yarn", ["framework:yarn"]),
        ("night", []),
        ("yarn", []),
        ("pool:day", []),
        (None, []),
        (5, []),
    ],
)
def test_what_is_meant_is_a_whole_name_or_a_clusters_own(asked: object, found: list[str]) -> None:
    assert meant(asked, KNOWN) == found
