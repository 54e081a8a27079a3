"""The scheduling class of batch, on a node with control groups in memory."""

from pathlib import Path

import pytest
from core.tests.fake_cgroups import FakeCgroups
from core.tests.test_throttle import ENFORCE, OBSERVE, OFF, Batch, least, made

from fallow_core.model.qos_policy import IdentityPolicy, StrategyMode


def batch_of(version: int, folder: Path, monkeypatch: pytest.MonkeyPatch, *extras: str) -> Batch:
    batch = Batch(FakeCgroups(version, extras=frozenset(extras)), folder, monkeypatch)
    made(batch, "c1")
    return batch


def modes(batch: Batch, identity: StrategyMode, others: StrategyMode = ENFORCE) -> None:
    batch.modes(others, others, identity=IdentityPolicy(mode=identity))


@pytest.mark.parametrize("version", [1, 2])
def test_batch_idles_where_the_kernel_can_and_weights_come_back_with_its_end(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = batch_of(version, tmp_path, monkeypatch, "cpu.idle")
    batch.fake.add("hadoop-yarn", weight=700)
    before = batch.fake.values()
    modes(batch, ENFORCE)
    batch.run(4)
    group = batch.fake.groups["hadoop-yarn"]
    assert (group.idle, group.quota) == (1, 600_000)
    assert (batch.limiter.cpu.writer.problems, batch.limiter.cpu.writer.resets) == ({}, 0)
    modes(batch, OFF)
    batch.run(2)
    assert (group.idle, group.weight) == (0, least(batch))
    modes(batch, ENFORCE)
    batch.run(2)
    batch.start(OFF, OFF)  # after a kill, with everything off
    batch.tick()
    assert (group.idle, batch.fake.values(), batch.limiter.cpu.writer.problems) == (0, before, {})


def test_a_group_that_somebody_let_idle_gets_no_weight_and_goes_on_idling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = batch_of(2, tmp_path, monkeypatch, "cpu.idle")
    batch.fake.add("hadoop-yarn", idle=1)
    modes(batch, OFF)
    batch.run(3)
    assert (batch.fake.groups["hadoop-yarn"].idle, batch.limiter.cpu.writer.problems) == (1, {})
    assert batch.quota("hadoop-yarn") == 600_000


def test_tasks_in_an_idle_group_keep_their_weights_against_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = batch_of(1, tmp_path, monkeypatch, "cpu.idle")
    batch.add("c2", batch.home)
    modes(batch, ENFORCE)
    batch.run(3)
    assert batch.fake.groups[batch.own].idle == 1
    assert (batch.fake.groups[f"{batch.own}/c2"].idle, batch.fake.groups[f"{batch.own}/c2"].weight) == (0, 1024)


def test_observing_and_kernels_without_it_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of(1, tmp_path, monkeypatch, "cpu.idle")
    modes(batch, OBSERVE, OFF)
    batch.run(3)
    assert batch.fake.writes == []
    old = batch_of(1, tmp_path, monkeypatch)
    modes(old, ENFORCE)
    old.run(3)
    assert (old.fake.groups["hadoop-yarn"].weight, old.limiter.cpu.writer.problems) == (2, {})
