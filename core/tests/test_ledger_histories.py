"""Histories of a node whose frameworks promise what they were ever told, with calls and reports that go wrong.

Thousands of drawn ones, with one node or several; some more with taking back; and those of hypothesis, which makes
short what it finds. How many were tried, and what was exposed in them, is printed at the end.
"""

import pytest
from core.tests.history_counts import Counts
from core.tests.history_frameworks import NOTHING
from core.tests.history_happenings import CAPACITY, FLOOR, UNIT, Layout, Step
from core.tests.history_many import lived as lived_alone
from core.tests.history_one import History
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from fallow_core.ledger.max_min import Bounds, level
from fallow_core.model.policy import PublishingPolicy
from fallow_hookspecs import RESOURCE_NAMES

POLICY = PublishingPolicy(growth_delay_seconds=6.0)
HURRIED = PublishingPolicy(
    growth_delay_seconds=3.0, in_flight_seconds=30.0, degrade_after_seconds=30.0, withdraw_after_seconds=50.0
)
"""Short histories see as much with shorter times."""
AT_ONCE = 1000


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_histories_lend_nothing_twice(histories: Counts, part: int) -> None:
    for seed in range(part * AT_ONCE, (part + 1) * AT_ONCE):
        histories.merge(lived_alone(seed, HURRIED).counted("histories"))


@pytest.mark.timeout(300)
def test_what_is_taken_back_stays_within_the_blast_radius(histories: Counts) -> None:
    for seed in range(100):
        histories.merge(lived_alone(seed, HURRIED, full=True).counted("histories with taking back"))
    assert histories.tried["rows of which Fallow had tasks ended"] > 10


def test_a_node_without_news_is_computed_again_just_when_time_changes_its_result() -> None:
    """Rounds that compute every node send the same sizes at the same times."""
    for seed in range(150):
        full = seed % 3 == 0
        assert lived_alone(seed, HURRIED, full=full).sent == lived_alone(seed, HURRIED, full=full, dense=True).sent


LAYOUTS = st.builds(
    Layout,
    rows=st.sampled_from([(("a", 1), ("b", 1)), (("a", 1), ("b", 2)), (("a", 1), ("b", 1), ("c", 1))]),
    floor=st.sampled_from([FLOOR, NOTHING]),
    says_pending=st.booleans(),
    limit_percent=st.sampled_from([None, 60]),
)
HAPPENS = [
    "nothing",
    *("promise",) * 6,
    *("end",) * 3,
    *("load",) * 4,
    *("calls",) * 8,
    *("reports",) * 3,
    *("samples", "register", "register", "restart", "lose", "resize", "switch", "kill", "clock", "ages", "repeats"),
]
STEP = st.builds(
    Step,
    what=st.sampled_from(HAPPENS),
    which=st.integers(0, 3),
    much=st.integers(0, 100),
    seconds=st.integers(0, 15),
)


# Sizes on their way that random steps seldom bring together. Cluster a: at half load 1500, at a quarter 2200.
TWO_CLUSTERS = Layout(rows=(("a", 1), ("b", 1)), floor=NOTHING, says_pending=False, limit_percent=None)
AT_HALF_LOAD = Step("load", 0, 50, 60)
LOST_BUT_CARRIED_OUT_51_SECONDS_LATER = Step("calls", 0, 88, 0)
LOST_BUT_CARRIED_OUT_5_SECONDS_LATER = Step("calls", 0, 10, 0)
ONE_APPLIED_56_SECONDS_LATER = Step("calls", 0, 98, 0)
TWO_APPLIED_53_SECONDS_LATER = Step("calls", 0, 92, 0)
GROWTH_AND_ITS_UNDOING = [AT_HALF_LOAD, TWO_APPLIED_53_SECONDS_LATER, Step("load", 0, 25, 20), Step("load", 0, 50, 60)]
BACK_TO_A_SIZE_OF_A_LOST_CALL = [
    AT_HALF_LOAD,
    LOST_BUT_CARRIED_OUT_5_SECONDS_LATER,
    Step("reports", 0, 90, 0),
    Step("load", 0, 25, 12),
    TWO_APPLIED_53_SECONDS_LATER,
    Step("load", 0, 10, 9),
    ONE_APPLIED_56_SECONDS_LATER,
    Step("load", 0, 25, 3),
    Step("reports", 0, 0, 60),
]
LOST_GROWTH = [AT_HALF_LOAD, LOST_BUT_CARRIED_OUT_51_SECONDS_LATER, Step("load", 0, 25, 10), Step("load", 0, 50, 0)]
KILLED_AFTER_LOST_GROWTH = [*LOST_GROWTH, Step("kill", 0, 0, 60)]
GONE_AFTER_LOST_GROWTH = [*LOST_GROWTH, Step("lose", 0, 0, 5), Step("register", 0, 0, 60)]


def lived(layout: Layout, steps: list[Step]) -> History:
    """The history of these steps."""
    note("\n".join(["In short:", *(str(step) for step in steps if step != Step("nothing", 0, 0, 0))]))
    history = History([layout], POLICY)
    history.live([steps])
    return history


@pytest.mark.timeout(300)
@example(layout=TWO_CLUSTERS, steps=GROWTH_AND_ITS_UNDOING)
@example(layout=TWO_CLUSTERS, steps=BACK_TO_A_SIZE_OF_A_LOST_CALL)
@example(layout=TWO_CLUSTERS, steps=KILLED_AFTER_LOST_GROWTH)
@example(layout=TWO_CLUSTERS, steps=GONE_AFTER_LOST_GROWTH)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(layout=LAYOUTS, steps=st.lists(STEP, min_size=15, max_size=40))
def test_nothing_is_lent_twice(histories: Counts, layout: Layout, steps: list[Step]) -> None:
    histories.merge(lived(layout, steps).counted("histories of hypothesis"))


@pytest.mark.timeout(300)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    layout=LAYOUTS,
    steps=st.lists(STEP, min_size=20, max_size=40),
    used_percent=st.integers(0, 95),
    first=st.integers(0, 2),
    busy=st.tuples(*(st.booleans(),) * 3),
)
def test_then_everybody_gets_a_fair_share_and_comes_to_rest(
    histories: Counts,
    layout: Layout,
    steps: list[Step],
    used_percent: int,
    first: int,
    busy: tuple[bool, bool, bool],
) -> None:
    """At first one cluster alone has work and may take everything, then all that are busy."""
    history = lived(layout, steps)
    world = history.world
    alone = world.clusters[first % len(world.clusters)]
    history.calm_down(used_percent, {cluster: cluster == alone for cluster in world.clusters})
    history.pass_time(200)
    world.greedy = dict(zip(world.clusters, busy, strict=False))
    history.pass_time(700)
    published_at = {cluster: network.published_at for cluster, network in world.networks.items()}
    ledger = history.state.nodes[world.node].ledger
    assert ledger is not None
    for name in RESOURCE_NAMES:
        of = ledger.of(name)
        assert of.capacity is not None
        room = -(-CAPACITY.amount(name) * POLICY.drain_step_percent // 100 // UNIT.amount(name)) * UNIT.amount(name)
        bounds = []
        for account in of.accounts:
            idle = 0 if layout.says_pending else max(room, account.floor)
            wants = of.capacity.capacity if world.greedy[account.cluster] else idle
            limit = (layout.limit_percent or 100) * of.capacity.batch // 100
            bounds.append(Bounds(weight=account.weight, lower=account.floor, upper=min(wants, limit)))
        for account, fair in zip(of.accounts, level(of.capacity.batch, bounds), strict=True):
            # What an account cannot use for want of the other resource it need not have.
            if world.greedy[account.cluster] and account.cut_by is None:
                short = POLICY.dead_band_percent * fair // 100 + 2 * UNIT.amount(name)
                assert account.allocated >= fair - short, f"{account.cluster} starves of {name}: fair is {fair}"
    history.pass_time(200)
    assert published_at == {cluster: network.published_at for cluster, network in world.networks.items()}
    histories.merge(history.counted("histories of hypothesis that come to rest"))
