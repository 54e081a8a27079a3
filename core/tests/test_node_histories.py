"""Histories of a node whose measurements, labels, switches and clocks are anything: what must hold at every offer."""

import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_framework import CAPACITY, FLOOR, NODE, WHOLE_NODE, World, key, size
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fallow_core.model.node_policies import Layer, NodeChange, NodePolicies, Pool, ResourceChange, Schedule, Window
from fallow_core.model.policy import PublishingMode, PublishingPolicy, SwitchState
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_hookspecs import RESOURCE_NAMES, CapacityReport, Offer, Resources

PUBLISHING = PublishingPolicy(mode=PublishingMode.ENFORCE, growth_delay_seconds=3.0)
DEGRADE = PUBLISHING.degrade_after_seconds
TICK = 5
HALF = NodeChange(cpu=ResourceChange(watermark_percent=50), memory=ResourceChange(watermark_percent=50))
NIGHT = Window(days=frozenset(range(7)), from_minute=0, to_minute=300, change=HALF)
POLICIES = NodePolicies(
    default=WHOLE_NODE,
    schedule=Schedule(time_zone="Europe/Berlin", windows=(NIGHT,), ramp_seconds=600),
    pools=(Pool(name="p", node_selector={"use": "batch"}, layer=Layer(change=HALF)),),
)
LABELS = ["0.5", "0.29", "nan", "-1", "", "65"]
SCOPES = ["alpha/a", "alpha/b", "framework:alpha", "pool:p", f"node:{NODE.name}", "all"]
STATES = [SwitchState.LEND, SwitchState.LEND, SwitchState.HOLD, SwitchState.DRAIN, SwitchState.STOP]


class History(World):
    """A world that knows when its node was last measured well, and looks at each offer as it is sent."""

    def begin(self) -> None:
        self.measured_well_at = -math.inf
        self.reported_well_at = -math.inf
        self.bad: Any = None
        self.shift = 0.0
        self.wrong: list[str] = []
        self.spoilt = False
        for name, framework in self.frameworks.items():
            framework.seen = lambda offers, name=name: self.look(name, offers)  # type: ignore[misc]
            framework.spoils = self.spoil

    def start(self, *names: str) -> Any:
        controller = super().start(*names)
        controller.configure(POLICIES, PUBLISHING, TakeBackPolicy())
        return controller

    def spoil(self, report: CapacityReport) -> CapacityReport:
        if not self.spoilt:
            self.reported_well_at = self.now
            return report
        return replace(report, rows=tuple(replace(row, allocated=Resources(-1, 0)) for row in report.rows))

    def measure(self) -> NodeSample:
        used = self.used if self.bad is None else Resources(self.bad, self.bad)
        at = self.now + self.shift
        if self.bad is None and self.shift <= 0:
            self.measured_well_at = max(self.measured_well_at, at)
        return NodeSample(
            **{
                name: Usage(measured_at=at, capacity=CAPACITY.amount(name), used=used.amount(name), batch_used=0)
                for name in RESOURCE_NAMES
            }
        )

    def pass_time(self, seconds: int) -> None:
        for _ in range(-(-seconds // TICK)):
            self.now += min(seconds, TICK)
            self.observe(self.measure())
            assert self.wrong == []
            for name in RESOURCE_NAMES:
                capacity = self.controller.ledgers[NODE.name].of(name).capacity
                assert capacity is None or 0 <= capacity.batch <= CAPACITY.amount(name)

    def look(self, name: str, offers: tuple[Offer, ...]) -> None:
        """Nothing grows above its floor but on fresh and true inputs, and where no switch is against it."""
        for offer in offers:
            row = self.row(name, offer.framework_node)
            for resource in RESOURCE_NAMES:
                newest, total = row.newest(resource), offer.total.amount(resource)
                if newest is not None and total <= max(newest, 2 * FLOOR.amount(resource)):
                    continue
                if self.now - self.measured_well_at >= DEGRADE:
                    self.wrong.append("grows on an old measurement")  # an exception would be one of the plugin
                if self.now - self.reported_well_at >= DEGRADE + TICK:  # a report is taken with the next tick
                    self.wrong.append("grows on an old report")
                if self.controller.state.switch_at(f"alpha/{name}", NODE.name)[1].state is not SwitchState.LEND:
                    self.wrong.append("grows although it is switched")

    def step(self, what: str, much: int) -> None:
        """One thing that happens, and then some time."""
        getattr(self, f"do_{what}")(much)
        self.pass_time(1 + much % 90)

    def do_use(self, much: int) -> None:
        self.used, self.bad, self.shift = size(much % 11), None, 0.0

    def do_bad(self, much: int) -> None:
        self.bad = [-1, math.nan, 1 << 70, None, "1 GiB", 0.5][much % 6]

    def do_shift(self, much: int) -> None:
        self.shift = [-1e9, -1000.0, -61.0, -5.0, 0.5, 1e9][much % 6]

    def do_report(self, much: int) -> None:
        self.spoilt = much % 2 == 1

    def do_label(self, much: int) -> None:
        labels = {"node.koordinator.sh/cpu-reclaim-ratio": LABELS[much % 6]} if much % 7 else {}
        self.label(labels | ({"use": "batch"} if much % 3 == 0 else {}))

    def do_switch(self, much: int) -> None:
        self.controller.set_switch(SCOPES[much % 6], STATES[much // 6 % 5], "ada", "")

    def do_toggle(self, _much: int) -> None:
        for state in (SwitchState.DRAIN, SwitchState.LEND):
            self.controller.set_switch("all", state, "ada", "")
            self.pass_time(15)

    def do_wall(self, much: int) -> None:
        self.wall_offset += (much - 50) * 1000

    def do_restart(self, _much: int) -> None:
        self.start()

    def label(self, labels: dict[str, str]) -> None:
        self.controller.set_nodes((replace(NODE, labels=labels),))


WHAT = ["use", "bad", "shift", "report", "label", "switch", "toggle", "wall", "restart"]
STEPS = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 100)), max_size=12)


@settings(max_examples=25, deadline=None)
@example([("bad", 78), ("toggle", 0)])
@example([("report", 77), ("toggle", 0)])
@example([("shift", 77), ("toggle", 0)])
@given(STEPS)
def test_whatever_is_measured_said_and_switched_nothing_grows_without_fresh_and_true_inputs(
    steps: list[tuple[str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        world = History(Path(folder), monkeypatch, a={"a1": size(2)}, b={"b1": size(3)})
        world.begin()
        world.pass_time(10)
        for what, much in steps:
            world.step(what, much)
        # Whatever there was: once all is well again, it lends, and what was refused is forgotten.
        for scope in SCOPES:
            world.controller.set_switch(scope, SwitchState.LEND, "ada", "")
        world.label({})
        world.spoilt = False
        world.wall_offset = 1_700_000_000.0 - 1_700_000_000 % 86_400 + 43_200 - world.now
        world.step("use", 33)
        world.pass_time(60)
        assert world.controller.state.refused.now == {}
        assert all(cluster.refused.now == {} for cluster in world.controller.clusters.values())
        assert sum(each.cpu_milli for each in world.sizes().values()) >= 7_000
        assert world.row("a", "a1").key == key("a", "a1")
