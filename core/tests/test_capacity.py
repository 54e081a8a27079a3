from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.ledger.capacity import BatchCapacity, batch_capacity
from fallow_core.ledger.online_use import counted
from fallow_core.model.policy import OnlineRule, ResourcePolicy
from fallow_core.model.sample import Usage, Zone
from fallow_core.model.workload import Workload
from fallow_hookspecs import RESOURCE_NAMES, ResourceName, Resources

GIB = 1 << 30


def lent(
    capacity: int, used: int, *, batch_used: int = 0, watermark: int = 100, reserved: int = 0, cap: int = 100
) -> int:
    usage = Usage(measured_at=0, capacity=capacity, used=used, batch_used=batch_used)
    policy = ResourcePolicy(watermark_percent=watermark, reserved=reserved, cap_percent=cap)
    return batch_capacity(usage, policy).batch


def test_what_is_lent_is_what_neither_margin_nor_other_use_needs() -> None:
    assert lent(100, 20, watermark=60) == 40


def test_the_cap_counts_where_the_formula_says_more() -> None:
    assert lent(100_000, 5_000, watermark=60, cap=40) == 40_000


def test_a_percentage_is_the_same_for_memory_as_for_cpu() -> None:
    assert lent(64 * GIB, 30 * GIB, watermark=90) == int(27.6 * GIB)


@pytest.mark.parametrize(
    ("capacity", "watermark", "batch"), [(107_374_182, 65, 69_793_218), (333, 100, 333), (999, 33, 329)]
)
def test_whole_units_are_lent_rounded_down(capacity: int, watermark: int, batch: int) -> None:
    assert lent(capacity, 0, watermark=watermark) == batch


def test_what_batch_itself_uses_does_not_lower_the_offer() -> None:
    assert lent(10, 6, batch_used=6, watermark=60) == lent(10, 0, watermark=60) == 6


def test_the_reservation_counts_until_more_is_used() -> None:
    assert lent(10, 1, reserved=3) == 7
    assert lent(10, 4, reserved=3) == 6


def test_more_use_than_there_is_lends_nothing() -> None:
    assert lent(10, 12) == 0


def test_batch_use_above_all_use_is_no_gain() -> None:
    assert lent(10, 2, batch_used=5) == 10


@given(
    st.builds(
        Usage,
        measured_at=st.just(0.0),
        capacity=st.integers(1, 10**12),
        used=st.integers(0, 10**12),
        batch_used=st.integers(0, 10**12),
    ),
    st.builds(
        ResourcePolicy,
        watermark_percent=st.integers(0, 100),
        reserved=st.integers(0, 10**12),
        cap_percent=st.integers(0, 100),
    ),
)
def test_batch_recomputes_from_what_is_shown(usage: Usage, policy: ResourcePolicy) -> None:
    shown: BatchCapacity = batch_capacity(usage, policy)
    assert shown.margin * 100 >= shown.capacity * (100 - shown.watermark_percent)
    assert shown.system == max(shown.used - shown.batch_used, shown.reserved)
    assert shown.cap * 100 <= usage.capacity * policy.cap_percent
    assert shown.batch == max(0, min(shown.capacity - shown.margin - shown.system, shown.cap))


# Pods and host applications


def work(name: str = "p", request: int = 0, used: int | None = None, age: float = 1000.0, **more: Any) -> Workload:
    measured: dict[ResourceName, int] = {} if used is None else {"cpu": used, "memory": used}
    return Workload(name=name, request=Resources(request, request), used=measured, age_seconds=age, **more)


def capacity_with(
    *workloads: Workload,
    capacity: int = 100,
    used: int = 0,
    batch_used: int = 0,
    resource: ResourceName = "cpu",
    rule: OnlineRule = OnlineRule.USAGE,
    zones: tuple[Zone, ...] = (),
    allocatable: int | None = None,
    daemons: int = 0,
    **policy: int,
) -> BatchCapacity:
    usage = Usage(
        measured_at=0, capacity=capacity, used=used, batch_used=batch_used, zones=zones, allocatable=allocatable
    )
    found = counted(workloads, resource, rule, window_seconds=60.0)
    given = {"watermark_percent": 100, **policy}
    return batch_capacity(usage, ResourcePolicy(rule=rule, **given), found, daemons)


RULES = [(OnlineRule.USAGE, 33), (OnlineRule.REQUEST, 13), (OnlineRule.MAX, 13)]


@pytest.mark.parametrize(("rule", "batch"), RULES)
def test_online_work_counts_by_the_rule_of_the_resource(rule: OnlineRule, batch: int) -> None:
    """100 cores of which kubelet gives 98; the system uses 7, an online pod 20 of the 40 it asked for, batch 10."""
    pods = (work("online", 40, 20), work("batch", 30, 10, batch=True))
    found = capacity_with(*pods, used=37, rule=rule, allocatable=98, watermark_percent=60)
    assert (found.system, found.reserved, found.batch) == (7, 2, batch)


def test_what_the_system_uses_is_a_number_of_its_own() -> None:
    found = capacity_with(work("pod", 9, 7), work("application", 2, 2), used=10)
    assert (found.system, found.online) == (1, 9)


def test_a_batch_pod_that_just_ended_is_no_use_of_the_system() -> None:
    ended = work("ended", 1000, 1000, batch=True, ended=True)
    found = capacity_with(work("running", 1000, 1000, batch=True), ended, capacity=4000, used=2500)
    assert (found.system, found.batch) == (500, 3500)


def test_an_online_pod_that_just_ended_counts_no_more() -> None:
    found = capacity_with(work("ended", 50, 20, ended=True), used=30)
    assert (found.system, found.online, found.batch) == (10, 0, 90)


@pytest.mark.parametrize("rule", OnlineRule)
def test_a_pod_without_metrics_counts_with_its_request(rule: OnlineRule) -> None:
    assert capacity_with(work(request=30), used=5, rule=rule).batch == 65


def test_a_new_pod_keeps_its_request_until_its_use_was_watched_for_a_while() -> None:
    assert [capacity_with(work("p", 30, 1, age), used=1).online for age in (0.0, 59.9, 60.0)] == [30, 30, 1]
    assert capacity_with(work("p", 30, 40, 0.0), used=40).online == 40


def test_a_pinned_pod_counts_cpu_by_request_and_memory_by_use() -> None:
    pinned = work("p", 30, 5, pinned=True)
    assert [capacity_with(pinned, used=5, resource=name).online for name in RESOURCE_NAMES] == [30, 5]


def test_host_applications_of_batch_are_neither_online_nor_system() -> None:
    assert capacity_with(work("tasks", 0, 8, batch=True), used=10).batch == 98
    assert capacity_with(used=10, batch_used=8).batch == 98


def test_the_metric_of_an_older_pod_of_the_same_name_is_not_the_one_of_the_new_pod() -> None:
    found = capacity_with(work("uid-2", 3), work("uid-1", 3, 5, ended=True), used=5)
    assert [(each.name, each.online) for each in found.counted] == [("uid-1", 0), ("uid-2", 3)]
    assert found.batch == 97


# Reservations


def test_the_largest_reservation_counts_and_each_is_shown() -> None:
    found = capacity_with(allocatable=95, reserved=7, reserved_percent=9, reserved_per_daemon=3, daemons=4)
    assert found.reserved == 12
    assert dict(found.reservations) == {"allocatable": 5, "fixed": 7, "percent": 9, "daemons": 12}
    assert capacity_with(allocatable=95, reserved_per_daemon=3).reserved == 5


def test_a_share_that_is_reserved_is_rounded_up() -> None:
    assert capacity_with(capacity=101, reserved_percent=10).reserved == 11


def test_what_is_reserved_is_no_margin_on_top_of_what_the_system_uses() -> None:
    assert capacity_with(capacity=10, used=2, allocatable=8).batch == 8


def test_an_allocatable_above_the_capacity_reserves_nothing() -> None:
    assert capacity_with(allocatable=120).reserved == 0


# Overcommit


def test_the_ratio_is_on_what_is_promised_and_not_on_what_is_there() -> None:
    found = capacity_with(capacity=101, used=0, overcommit_percent=150)
    assert (found.batch_real, found.batch) == (101, 151)


def test_the_cap_is_on_what_is_there() -> None:
    assert capacity_with(cap_percent=40, overcommit_percent=150).batch == 60


# Zones


def zone(name: str, capacity: int, used: int = 0, batch_used: int = 0) -> Zone:
    return Zone(name=name, capacity=capacity, used=used, batch_used=batch_used)


def test_a_zone_lends_what_is_idle_there_and_not_an_average() -> None:
    found = capacity_with(work("p", 20, 20), capacity=64, used=20, zones=(zone("0", 32, 20), zone("1", 32)))
    assert [z.batch_real for z in found.zones] == [12, 32]
    assert found.batch == 44


def test_a_pod_that_is_bound_to_a_zone_counts_there() -> None:
    found = capacity_with(work("p", 20, zones=("1",)), capacity=64, zones=(zone("0", 32), zone("1", 32)))
    assert [z.online for z in found.zones] == [0, 20]


def test_work_that_may_be_in_every_zone_is_spread_evenly_where_nothing_is_used() -> None:
    found = capacity_with(work("p", 15), capacity=64, zones=(zone("0", 32), zone("1", 32)))
    assert [z.online for z in found.zones] == [8, 8]
    assert found.batch == 48


def test_the_node_lends_no_more_than_its_zones() -> None:
    found = capacity_with(capacity=64, used=0, zones=(zone("0", 32, 40), zone("1", 32)))
    assert (found.batch, [z.batch_real for z in found.zones]) == (32, [0, 32])


WORK = st.builds(
    work,
    st.sampled_from("abcdef"),
    st.integers(0, 50),
    st.none() | st.integers(0, 50),
    st.sampled_from([0.0, 100.0]),
    batch=st.booleans(),
    pinned=st.booleans(),
    ended=st.booleans(),
    zones=st.sampled_from([(), ("0",), ("1",), ("0", "1"), ("elsewhere",)]),
)
ZONES = st.lists(
    st.builds(zone, st.sampled_from("01"), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60)), max_size=3
)


@given(
    st.lists(WORK, max_size=6), ZONES, st.integers(0, 200), st.integers(0, 200), st.sampled_from(OnlineRule), st.data()
)
def test_whatever_runs_there_what_is_lent_lies_within_the_node_and_its_zones(
    workloads: list[Workload], zones: list[Zone], capacity: int, used: int, rule: OnlineRule, data: st.DataObject
) -> None:
    given_ = {"capacity": capacity, "used": used, "rule": rule, "zones": tuple(zones)}
    found = capacity_with(*workloads, **given_)  # type: ignore[arg-type] # a mapping of several types
    assert 0 <= found.batch_real <= capacity
    assert not zones or found.batch_real <= sum(z.batch_real for z in found.zones)
    assert found.system >= 0
    shuffled = data.draw(st.permutations(workloads))
    if len({each.name for each in workloads}) == len(workloads):
        assert capacity_with(*shuffled, **given_) == found  # type: ignore[arg-type]
    more = work("more", 5, age=0.0)
    assert capacity_with(*workloads, more, **given_).batch_real <= found.batch_real  # type: ignore[arg-type]
    if rule is OnlineRule.USAGE:
        by_max = {**given_, "rule": OnlineRule.MAX}
        assert capacity_with(*workloads, **by_max).batch_real <= found.batch_real  # type: ignore[arg-type]


def test_stolen_cpu_time_and_memory_behind_watermarks_are_not_lent() -> None:
    """8 CPUs: half of the time is in use, and half is stolen."""
    policy = ResourcePolicy(watermark_percent=90)
    before = Usage(measured_at=0, capacity=8000, used=4000, batch_used=0)
    assert batch_capacity(before, policy).batch == 3200
    assert batch_capacity(replace(before, unusable={"stolen": 1000}), policy).batch == 2200
    assert batch_capacity(replace(before, unusable={"stolen": 4000}), policy).batch == 0
