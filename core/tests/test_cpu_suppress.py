from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.ledger.entries import NodeLedger
from fallow_core.ledger.node_ledger import NodeInputs, node_ledger
from fallow_core.model.policy import NodePolicy, ResourcePolicy
from fallow_core.model.qos_policy import CpuSuppressPolicy, StrategyMode
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.qos.cpu_suppress import CpuLimits, CpuSuppressState, GroupUse, decide
from fallow_core.qos.need import NodeView

NOW = 1000.0
POLICY = CpuSuppressPolicy(mode=StrategyMode.ENFORCE, minimum_percent=2, step_percent=10)
ONE = {"yarn": GroupUse(used=0, requested=4000)}


def view(
    online: int,
    batch: int = 0,
    *,
    at: float = NOW,
    cores: int = 8,
    watermark: int = 100,
    reserved: int = 0,
    now: float | None = None,
    known: bool = True,
) -> NodeView:
    usage = Usage(measured_at=at, capacity=cores * 1000, used=online + batch, batch_used=batch)
    policy = NodePolicy(cpu=ResourcePolicy(watermark_percent=watermark, reserved=reserved))
    ledger: NodeLedger = node_ledger(
        NodeInputs(node="n1", now=at, sample=NodeSample(cpu=usage), policy=policy, rows=(), accounts={})
    )
    sample = NodeSample(cpu=usage)
    return NodeView(
        node="n1", now=at if now is None else now, sample=sample, ledger=ledger, tasks=(), tasks_complete=known
    )


def limit(seen: NodeView, policy: CpuSuppressPolicy = POLICY, groups: Mapping[str, GroupUse] = ONE) -> dict[str, int]:
    _, limits = decide(seen, groups, policy, CpuSuppressState())
    return dict(limits.groups)


def after(*views: NodeView) -> list[int]:
    """The limits one after the other."""
    state, found = CpuSuppressState(), []
    for seen in views:
        state, limits = decide(seen, ONE, POLICY, state)
        found.append(limits.groups["yarn"])
    return found


def test_batch_gets_what_online_services_leave_below_the_watermark() -> None:
    assert limit(view(3000)) == {"yarn": 5000}
    assert limit(view(2000, 4000, cores=16, watermark=80), groups={"yarn": GroupUse(used=4000, requested=1)}) == {
        "yarn": 10_800
    }


def test_what_batch_itself_uses_changes_nothing() -> None:
    uses = [GroupUse(used=used, requested=1) for used in (0, 2500, 5000)]
    assert {limit(view(3000, use.used), groups={"yarn": use})["yarn"] for use in uses} == {5000}


def test_what_is_reserved_is_left_although_nobody_uses_it() -> None:
    assert limit(view(500, reserved=2000)) == {"yarn": 6000}


def test_batch_outside_of_groups_lives_on_the_same_allowance() -> None:
    assert limit(view(3000, 1500), groups={"yarn": GroupUse(used=1000, requested=1)}) == {"yarn": 4500}


@pytest.mark.parametrize("cores", [2, 8, 96])
def test_the_minimum_is_a_share_of_the_node_also_when_online_uses_more_than_the_watermark(cores: int) -> None:
    policy = replace(POLICY, minimum_percent=5)
    assert limit(view(cores * 1000, cores=cores, watermark=65), policy) == {"yarn": cores * 50}


def test_no_limit_is_smaller_than_the_kernel_takes() -> None:
    assert limit(view(2000, cores=2), replace(POLICY, minimum_percent=0)) == {"yarn": 10}


def test_a_limit_shrinks_at_once_and_grows_step_by_step() -> None:
    seen = [view(online, at=NOW + n) for n, online in enumerate((1000, 7500, 1000, 1000, 5900, 5900, 5900))]
    assert after(*seen) == [7000, 500, 1300, 2100, 2100, 2100, 2100]


def test_it_grows_from_next_to_nothing_as_well() -> None:
    seen = [view(online, at=NOW + n, cores=80) for n, online in enumerate((80_000, 0, 0))]
    assert after(*seen) == [1600, 9600, 17_600]


def test_it_does_not_grow_faster_for_being_asked_more_often() -> None:
    assert after(view(7000), view(1000, at=NOW + 1), *[view(1000, at=NOW + 1)] * 5) == [1000, *[1800] * 6]


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (view(8000, now=NOW + 60), "CPU use is not known"),
        (replace(view(8000), sample=NodeSample()), "CPU use is not known"),
        (view(8000, at=NOW + 1, known=False), "not known what on this host is batch"),
    ],
)
def test_limits_stay_while_what_they_depend_on_is_not_known(seen: NodeView, why: str) -> None:
    state, first = decide(view(3000), ONE, POLICY, CpuSuppressState())
    state, held = decide(seen, ONE | {"new": GroupUse(used=1, requested=1)}, POLICY, state)
    assert held.groups == first.groups == {"yarn": 5000}
    assert why in held.why
    _, again = decide(view(4000, at=NOW + 61), ONE, POLICY, state)
    assert (again.groups, again.why) == ({"yarn": 4000}, "")


def test_a_group_that_has_gone_has_no_limit_any_more_while_nothing_is_known() -> None:
    state, _ = decide(view(3000), ONE, POLICY, CpuSuppressState())
    assert decide(view(1, known=False), {}, POLICY, state)[1].groups == {}


def test_groups_share_by_request_and_what_one_does_not_use_goes_to_the_other() -> None:
    both = {"a": GroupUse(used=2000, requested=1000), "b": GroupUse(used=3000, requested=3000)}
    assert limit(view(0, 5000), groups=both) == {"a": 2000, "b": 6000}
    idle = {"a": GroupUse(used=100, requested=3000), "b": GroupUse(used=5000, requested=1000)}
    shares = limit(view(2000, 5100), groups=idle)
    assert sum(shares.values()) == 6000
    assert shares["b"] >= 5000


@given(
    st.integers(1, 256),
    st.integers(0, 300_000),
    st.integers(1, 100),
    st.dictionaries(
        st.text("abc", min_size=1, max_size=2),
        st.builds(GroupUse, used=st.integers(0, 50_000), requested=st.integers(0, 10**6)),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 100),
)
def test_limits_are_at_least_the_smallest_and_together_no_more_than_allowed(
    cores: int, online: int, watermark: int, groups: dict[str, GroupUse], minimum: int
) -> None:
    batch = min(sum(group.used for group in groups.values()), cores * 1000)
    online = min(online, cores * 1000 - batch)
    policy = replace(POLICY, minimum_percent=minimum)
    limits: CpuLimits = decide(
        view(online, batch, cores=cores, watermark=watermark), groups, policy, CpuSuppressState()
    )[1]
    assert limits.groups.keys() == groups.keys()
    assert all(amount >= 10 for amount in limits.groups.values())
    floor = max(cores * 10 * minimum, 10 * len(groups), 10)
    assert sum(limits.groups.values()) <= max(limits.terms["allowed"], floor)


def test_a_group_without_a_request_does_not_starve_beside_one_that_has_one() -> None:
    """Before, 8 cores were shared as 10 milli-cores and 7990."""
    both = {"a": GroupUse(used=4000, requested=0), "b": GroupUse(used=4000, requested=8000)}
    assert limit(view(0, 8000), groups=both) == {"a": 4000, "b": 4000}


def test_without_requests_tasks_count_as_much_as_those_with_one_do_on_average() -> None:
    both = {"a": GroupUse(used=4000, requested=0, tasks=1), "b": GroupUse(used=4000, requested=6000, tasks=3)}
    assert limit(view(0, 8000), groups=both) == {"a": 2000, "b": 6000}
    none = {"a": GroupUse(used=4000, requested=0, tasks=1), "b": GroupUse(used=4000, requested=0, tasks=3)}
    assert limit(view(0, 8000), groups=none) == {"a": 2000, "b": 6000}
