"""Nodes with all sorts of inputs, and how a fleet is compared with the plain version."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from types import MappingProxyType

from fallow_core.ledger.due_offers import DueOffer, due_rows
from fallow_core.ledger.entries import NodeInputs, NodeLedger
from fallow_core.ledger.fleet.arrays import Records
from fallow_core.ledger.fleet.block import rules_of
from fallow_core.ledger.fleet.fleet import Fleet
from fallow_core.ledger.fleet.lanes import room
from fallow_core.ledger.fleet.loading import bring
from fallow_core.ledger.fleet.node import compute
from fallow_core.ledger.growth_delay import GrowthDelays
from fallow_core.ledger.node_ledger import node_ledger
from fallow_core.ledger.rows import Row, RowKey, Sent
from fallow_core.ledger.task_shapes import TaskShape
from fallow_core.model.host_limit import HostLimit
from fallow_core.model.policy import (
    AccountPolicy,
    Limit,
    NodePolicy,
    OnlineRule,
    PublishingPolicy,
    ResourcePolicy,
    Sharing,
    SwitchState,
)
from fallow_core.model.sample import NodeSample, Usage, Zone
from fallow_core.model.workload import Workload
from fallow_hookspecs import RESOURCE_NAMES, NodeState, Pending, Resources

LASTS = {"a": 100, "b": None}
CLUSTERS = ("a", "b", "c", "d")
GIB, MIB = 1 << 30, 1 << 20


class Inputs:
    """Draws inputs. With `large` amounts are those of real nodes, else small enough that all bounds meet."""

    def __init__(self, seed: int, *, large: bool) -> None:
        self.random = Random(seed)
        self._scale = Resources(1000, GIB) if large else Resources(10, 10)
        self._units = (Resources(1, 1), Resources(1000, MIB), Resources(1000, GIB)) if large else _SMALL_UNITS

    def publishing(self) -> PublishingPolicy:
        one_of = self.random.choice
        return PublishingPolicy(
            dead_band_percent=one_of([10, 0]),
            growth_delay_seconds=one_of([10.0, 60.0]),
            drain_step_percent=one_of([5, 0, 20]),
            sharing=one_of([Sharing.EXCLUSIVE, Sharing.EXCLUSIVE, Sharing.SHARED]),
        )

    def pending(self) -> dict[str, Pending | None]:
        one_of = self.random.choice
        return {
            cluster: one_of([None, Pending(total=self.size(), largest=one_of([None, self.size()]))])
            for cluster in CLUSTERS
        }

    def shapes(self) -> dict[str, TaskShape]:
        one_of = self.random.choice
        return {
            cluster: TaskShape(
                largest=one_of([Resources(0, 0), self.size(5)]),
                mib_per_core=one_of([None, self.random.randint(0, 4096)]),
                honours_cpu=one_of([True, False]),
            )
            for cluster in CLUSTERS
        }

    def node(
        self,
        node: str,
        now: float,
        pending: Mapping[str, Pending | None],
        shapes: Mapping[str, TaskShape] = MappingProxyType({}),
    ) -> NodeInputs:
        one_of = self.random.choice
        keys = [RowKey(node, cluster, "1") for cluster in self.random.sample(CLUSTERS, self.random.randint(0, 4))]
        if self._seldom():
            keys += [RowKey(node, "a", "2"), RowKey(node, "e", "1")]
        return NodeInputs(
            node=node,
            now=now,
            sample=NodeSample(cpu=self._usage("cpu", now), memory=self._usage("memory", now)),
            rows=tuple(self.row(key, now) for key in keys),
            awaited=(RowKey(node, "e", "9"),) if self._seldom() else (),
            unsure="it is" if self._seldom() else "",
            watched_since=one_of([None, now, now - 900]),
            workloads=tuple(self._workload(name) for name in "xyz"[: one_of([0, 0, 1, 3])]),
            workloads_at=now - 60 if self._seldom() else one_of([None, now]),
            accounts={cluster: self._account() for cluster in CLUSTERS if one_of([True, False])},
            pending=pending,
            shapes=shapes,
            policy=NodePolicy(cpu=self._policy("cpu"), memory=self._policy("memory")),
        )

    def row(self, key: RowKey, now: float) -> Row:
        one_of = self.random.choice
        return Row(
            key=key,
            state=one_of([*NodeState]) if self._seldom() else NodeState.RUNNING,
            unit=one_of(self._units),
            floor=self.size(5) if one_of([True, False, False]) else Resources(0, 0),
            maximum=one_of([None, None, self.size()]),
            limits=tuple(
                HostLimit(resource=name, amount=self.size().amount(name), where="a group")
                for name in RESOURCE_NAMES
                if one_of([True, False, False])
            ),
            allocated=self.size(),
            in_force=None if self._seldom() else self.size(),
            measured_at=one_of([now - 60, now + 1]) if self._seldom() else now,
            in_flight=tuple(Sent(size=self.size(), sent_at=now - 9 + i) for i in range(one_of([0, 0, 1, 2]))),
            resend=one_of([True, False]),
            arrived_sent_at=one_of([now - 100, now - 9]),
            refreshed_at=one_of([None, now, now - 80]),
            refused_at=now - one_of([1, 60]) if self._seldom() else None,
        )

    def size(self, most: int = 20) -> Resources:
        return Resources(*(self._amount(name, most) for name in RESOURCE_NAMES))

    def _amount(self, name: str, most: int) -> int:
        scale = self._scale.cpu_milli if name == "cpu" else self._scale.memory_bytes
        whole = self.random.randint(0, most) * scale
        return whole if self.random.random() < 0.6 else self.random.randint(0, most * scale)

    def _seldom(self) -> bool:
        return self.random.random() < 0.07

    def _usage(self, name: str, now: float) -> Usage | None:
        one_of = self.random.choice
        if self._seldom():
            return None
        zones = tuple(
            Zone(
                name=str(i),
                capacity=self._amount(name, 30),
                used=self._amount(name, 9),
                batch_used=self._amount(name, 5),
            )
            for i in range(one_of([0, 0, 2, 3]))
        )
        return Usage(
            measured_at=now - one_of([1.0, 60.0, 900.0, -1.0, -900.0]) if self._seldom() else now,
            capacity=self._amount(name, 80),
            used=self._amount(name, 30),
            batch_used=self._amount(name, 30),
            allocatable=one_of([None, self._amount(name, 80)]),
            unusable=one_of([{}, {}, {"stolen": self._amount(name, 30)}]),
            zones=zones,
        )

    def _workload(self, name: str) -> Workload:
        one_of = self.random.choice
        return Workload(
            name=name,
            request=self.size(4),
            used={resource: self._amount(resource, 4) for resource in RESOURCE_NAMES if one_of([True, False])},
            age_seconds=one_of([0.0, 100.0]),
            batch=one_of([True, False]),
            pinned=one_of([True, False]),
            ended=one_of([True, False]),
            zones=one_of([(), ("0",), ("1", "2")]),
        )

    def _account(self) -> AccountPolicy:
        return AccountPolicy(
            weight=self.random.randint(1, 4),
            cpu_limit=self._limit("cpu"),
            memory_limit=self._limit("memory"),
            switch=self.random.choice([SwitchState.LEND] * 8 + [*SwitchState]),
        )

    def _limit(self, name: str) -> Limit:
        one_of = self.random.choice
        return one_of([Limit(), Limit(percent=self.random.randint(0, 100)), Limit(amount=self._amount(name, 30))])

    def _policy(self, name: str) -> ResourcePolicy:
        one_of = self.random.choice
        return ResourcePolicy(
            watermark_percent=one_of([100, 100, 65, 0]),
            rule=one_of([*OnlineRule]),
            reserved=one_of([0, self._amount(name, 5)]),
            reserved_percent=one_of([0, 7]),
            reserved_per_daemon=one_of([0, self._amount(name, 1)]),
            cap_percent=one_of([100, 90]),
            overcommit_percent=one_of([100, 130]),
        )


_SMALL_UNITS = (Resources(1, 1), Resources(10, 10), Resources(7, 1))


class Compared:
    """A fleet, and the same nodes computed by the plain version."""

    def __init__(self) -> None:
        self.fleet = Fleet(slots=4, block_nodes=50)
        self.holds: GrowthDelays = {}
        self.inputs: dict[str, NodeInputs] = {}

    def write(self, inputs: NodeInputs) -> None:
        self._forget(inputs)
        self.fleet.write(inputs)

    def check_all(self, policy: PublishingPolicy, now: float) -> int:
        """Compute all nodes at a time both ways; how many rows are due."""
        found = self.fleet.due(policy, policy, now, LASTS)
        rows = {row.key: row for inputs in self.inputs.values() for row in inputs.rows}
        due: list[DueOffer] = []
        for node, inputs in self.inputs.items():
            current = replace(inputs, now=now, publishing=policy)
            ledger = node_ledger(current)
            due += due_rows(ledger, inputs.rows, self.holds, policy, now, LASTS)
            if self.fleet.is_in_columns(node):
                self._check_node(ledger, self.computed(node, policy, now))
        due.sort(key=lambda d: (-d.size.memory_bytes, -d.size.cpu_milli, d.key))
        assert self.fleet.worded(found, rows, policy, now, LASTS) == due
        return len(due)

    def computed(self, node: str, policy: PublishingPolicy, now: float) -> Records:
        """What is computed of a node in columns, by resource: in the first lane."""
        block, at = self.fleet.place(node)
        policies, accounts = block.tables
        own, rules, sides = slice(at, at + 1), rules_of(policy, now), room(4)
        bring(block.nodes[own], block.zones[own], block.rows[own], policies, accounts, rules, 0, 1, sides)
        compute(sides, rules)
        return sides

    @staticmethod
    def _check_node(ledger: NodeLedger, computed: Records) -> None:
        for r, name in enumerate(RESOURCE_NAMES):
            found, side = ledger.of(name), computed[r]
            accounts = {account.cluster: account for account in found.accounts}
            for slot, row in enumerate(found.rows):
                account = accounts[row.key.cluster]
                assert (row.target, row.size) == (side["target"][slot, 0], side["size"][slot, 0])
                assert account.fair == side["fair"][slot, 0]
            drains = any(account.drains_for_others for account in found.accounts)
            assert (found.overcommitted, drains) == (side["overcommitted"][0], side["drains"][0])
            if found.capacity is not None:
                assert found.capacity.batch == side["batch"][0]

    def check_one(self, inputs: NodeInputs) -> None:
        """Compute one node that changed both ways."""
        self._forget(inputs)
        due = self.fleet.changed(inputs, inputs.publishing, LASTS)
        assert due == due_rows(node_ledger(inputs), inputs.rows, self.holds, inputs.publishing, inputs.now, LASTS)

    def _forget(self, inputs: NodeInputs) -> None:
        """Rows that are no longer there are not remembered; as the controller has it."""
        self.inputs[inputs.node] = inputs
        known = {row.key for row in inputs.rows}
        gone = [key for key in self.holds if key[0].node == inputs.node and key[0] not in known]
        for key in gone:
            del self.holds[key]
