"""Reads the memory pressure of the online groups, and logs when it begins and ends to slow batch down."""

import logging
from collections.abc import Mapping

from fallow_core.errors import CgroupError
from fallow_core.log import event
from fallow_core.model.qos_policy import OnlinePressurePolicy, StrategyMode
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.cgroups.pressure import NO_GROUP, memory_stall_percent
from fallow_core.qos import online_pressure
from fallow_core.qos.online_pressure import OnlinePressureState

log = logging.getLogger("fallow.agent")


class OnlinePressure:
    """Belongs to the thread of the loop. `unavailable`: why the pressure of a group is not known."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.state = OnlinePressureState(stalls={})
        self.unavailable: dict[str, str] = {}
        self._hierarchy = hierarchy

    def step(self, policy: OnlinePressurePolicy, now: float) -> bool:
        """Read the groups; whether batch has to be slowed down now."""
        if policy.mode is StrategyMode.OFF or not policy.groups:
            self.state, self.unavailable = OnlinePressureState(stalls={}), {}
            return False
        before = self.state.pressed_at
        unknown = self.unavailable
        self.state = online_pressure.decide(self._stalls(policy), policy, self.state, now)
        for group in sorted(self.unavailable.keys() - unknown.keys()):
            event(log, logging.WARNING, "online_group_not_protected", group=f"/{group}", why=self.unavailable[group])
        enforced = policy.mode is StrategyMode.ENFORCE
        if (before is None) != (self.state.pressed_at is None):
            name = "online_pressed" if before is None else "online_relieved"
            stalls = {group: f"{percent:.0f}%" for group, percent in self.state.stalls.items()}
            event(log, logging.INFO, name, stalls=stalls, enforced=enforced)
        return enforced and self.state.pressed_at is not None

    def _stalls(self, policy: OnlinePressurePolicy) -> Mapping[str, float]:
        self.unavailable, found = {}, {}
        for group in policy.groups:
            try:
                percent = memory_stall_percent(self._hierarchy, group)
            except (OSError, CgroupError) as error:
                self.unavailable[group] = str(error)
                continue
            if percent is None:
                self.unavailable[group] = NO_GROUP
            found[group] = percent or 0.0
        return found
