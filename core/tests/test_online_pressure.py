"""Memory stalls online services while the node's use is below every line."""

from dataclasses import replace
from pathlib import Path

import pytest
from core.tests.fake_cgroups import FakeCgroups
from core.tests.test_cpu_suppress import ONE, POLICY, view
from core.tests.test_throttle import ENFORCE, OFF, Batch, made

from fallow_core.api.throttling import ThrottlingStatus, pressure
from fallow_core.cli.render_throttling import throttled
from fallow_core.model.qos_policy import OnlinePressurePolicy, StrategyMode
from fallow_core.node.cgroups.pressure import NO_GROUP, NO_PRESSURE
from fallow_core.qos.cpu_suppress import CpuSuppressState
from fallow_core.qos.cpu_suppress import decide as suppress
from fallow_core.qos.online_pressure import OnlinePressureState, decide

PRESSURE = OnlinePressurePolicy(mode=ENFORCE, groups=("online",))
UNPRESSED = OnlinePressureState(stalls={})
FILE = "/sys/fs/cgroup/online/memory.pressure"


def said(percent: float) -> str:
    rest = "avg60=0.00 avg300=0.00 total=1"
    return f"some avg10={percent:.2f} {rest}\nfull avg10=99.00 {rest}\n"


def pressed(*worst: float) -> list[bool]:
    """Whether it is, after one reading after the other."""
    state, found = UNPRESSED, []
    for at, percent in enumerate(worst):
        state = decide({"a": 0.0, "online": percent}, PRESSURE, state, at)
        found.append(state.pressed_at is not None)
    return found


def test_it_begins_at_the_threshold_and_ends_below_the_lower_one() -> None:
    assert pressed(9.9, 10.0, 5.0, 4.9, 9.9) == [False, True, True, False, False]


def test_without_a_reading_it_stays_as_it_is() -> None:
    state = decide({"online": 20.0}, PRESSURE, UNPRESSED, 7.0)
    assert decide({}, PRESSURE, state, 8.0).pressed_at == 7.0
    assert decide({}, PRESSURE, UNPRESSED, 8.0).pressed_at is None


def test_while_it_lasts_batch_gets_a_step_less_each_second_than_it_uses_and_no_less_than_the_minimum() -> None:
    state, found = CpuSuppressState(), list[int]()
    for at in range(8):
        used = found[-1] if found else 3000
        state, limits = suppress(view(1000, used, at=1000.0 + at), ONE, POLICY, state, pressed=True)
        found.append(limits.terms["allowed"])
    assert found == [3000, 2200, 1400, 600, 160, 160, 160, 160]


def test_probes_that_come_sooner_do_not_give_back_what_was_taken() -> None:
    state, found = CpuSuppressState(), list[int]()
    for tenth in range(20):
        state, limits = suppress(view(1000, 4000, at=1000.0 + tenth / 10), ONE, POLICY, state, pressed=True)
        found.append(limits.terms["allowed"])
    assert found == sorted(found, reverse=True)
    assert 2400 <= found[-1] <= 2500


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Batch:
    """A node of 8 cores, of which online services use 2 and batch 2, with groups of v2."""
    batch = Batch(FakeCgroups(2), tmp_path, monkeypatch)
    made(batch, "c1", "c2")
    batch.fake.add("online")
    batch.fake.garbage[FILE] = said(0.0)
    batch.modes(ENFORCE, ENFORCE, online_pressure=PRESSURE)
    batch.run(3)
    return batch


def test_batch_is_slowed_by_the_memory_pressure_of_online_services_while_use_is_far_below_the_line(
    batch: Batch,
) -> None:
    assert batch.quota("hadoop-yarn") == 600_000
    batch.fake.garbage[FILE] = said(20.0)
    batch.tick()
    assert batch.quota("hadoop-yarn") == 120_000  # a step of the node less than the two cores that it uses
    batch.run(3)
    assert batch.quota("hadoop-yarn") == 16_000
    batch.fake.garbage[FILE] = said(4.0)
    batch.run(2)
    assert batch.quota("hadoop-yarn") == 176_000


@pytest.mark.parametrize(
    "policy", [replace(PRESSURE, mode=StrategyMode.OBSERVE), replace(PRESSURE, mode=OFF), replace(PRESSURE, groups=())]
)
def test_it_slows_nobody_unless_it_is_to(batch: Batch, policy: OnlinePressurePolicy) -> None:
    batch.modes(ENFORCE, ENFORCE, online_pressure=policy)
    batch.fake.garbage[FILE] = said(20.0)
    batch.run(3)
    assert batch.quota("hadoop-yarn") == 600_000


def test_a_group_that_is_gone_waits_for_nothing(batch: Batch) -> None:
    batch.fake.garbage[FILE] = said(20.0)
    batch.tick()
    del batch.fake.garbage[FILE]
    batch.fake.vanish("online")
    batch.run(2)
    assert batch.limiter.pressure.state.pressed_at is None
    assert batch.limiter.pressure.unavailable == {"online": NO_GROUP}


@pytest.mark.parametrize("text", ["", "some avg10=x", "full avg10=1.00 avg60=0.00"])
def test_what_no_kernel_writes_is_no_reading_and_is_said(batch: Batch, text: str) -> None:
    batch.fake.garbage[FILE] = text
    batch.tick()
    assert batch.limiter.pressure.state.stalls == {}
    assert FILE in batch.limiter.pressure.unavailable["online"]


def test_groups_of_v1_do_not_tell_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    batch = Batch(FakeCgroups(1), tmp_path, monkeypatch)
    made(batch, "c1")
    batch.modes(ENFORCE, ENFORCE, online_pressure=PRESSURE)
    batch.run(2)
    assert batch.limiter.pressure.unavailable == {"online": NO_PRESSURE}
    assert [record.getMessage() for record in caplog.records if "online" in record.getMessage()] == [
        f'online_group_not_protected group=/online why="{NO_PRESSURE}"'
    ]


def test_explain_says_who_waits_and_what_batch_gets(batch: Batch) -> None:
    def explained(policy: OnlinePressurePolicy) -> str:
        batch.modes(ENFORCE, ENFORCE, online_pressure=policy)
        batch.tick()
        shown = pressure(batch.limiter, policy, batch.now)
        status = ThrottlingStatus(
            cpu_suppress=StrategyMode.ENFORCE,
            cgroup_reconcile=StrategyMode.ENFORCE,
            identity=StrategyMode.OFF,
            memory_reclaim=StrategyMode.OFF,
            online_pressure=shown,
            missing="",
            problems=(),
            unavailable={},
        )
        return " ".join(" ".join(throttled(status)).split())

    assert "/online waits for memory 0 %; threshold 10 %" in explained(PRESSURE)
    batch.fake.garbage[FILE] = said(20.0)
    batch.tick()
    assert "waits for memory 20 %; for 1 s batch gets a step less CPU than it uses, until below 5 %" in explained(
        PRESSURE
    )
    assert "batch would get a step less" in explained(replace(PRESSURE, mode=StrategyMode.OBSERVE))
