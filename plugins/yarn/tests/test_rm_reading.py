"""The sizes in force, as read from an imitated ResourceManager that applies size changes late."""

import json
from collections import deque
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from fallow_yarn.ipc.protos import yarn_pb2
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import NodeUpdate
from fallow_yarn.rm.client import FEW_NODES, ResourceManager
from fallow_yarn.rm.history import SizeHistory
from fallow_yarn.rm.readings import Reading

LATER = Deadline(0.0, clock=lambda: 0.0)
START, USED = Size(4096, 4), Size(1024, 1)


class Imitation:
    """Size changes pass a queue to the ResourceManager's record, and another one to the scheduler, one at a time."""

    def __init__(self, *names: str, used: Size = USED) -> None:
        self.records = dict.fromkeys(names, START)
        self.scheduler: dict[str, Size | None] = {**self.records}
        self.states = dict.fromkeys(names, "RUNNING")
        self.used = dict.fromkeys(names, used)
        self.to_record: deque[tuple[str, Size]] = deque()
        self.to_scheduler: deque[tuple[str, Size]] = deque()
        self.pages: list[str] = []
        self.has_totals = True
        self.before_page: Callable[[str], None] = lambda path: None

    def record_next(self) -> None:
        if self.to_record:
            name, size = self.to_record.popleft()
            self.records[name] = size
            self.to_scheduler.append((name, size))

    def schedule_next(self) -> None:
        if self.to_scheduler:
            name, size = self.to_scheduler.popleft()
            self.scheduler[name] = size

    def settle(self) -> None:
        while self.to_record or self.to_scheduler:
            self.record_next()
            self.schedule_next()

    def update(self, method: str, argument: bytes, deadline: Deadline) -> bytes:
        request = yarn_pb2.UpdateNodeResourceRequest()
        request.ParseFromString(argument)
        for entry in request.nodes:
            resource = entry.option.resource
            name = f"{entry.node_id.host.decode()}:{entry.node_id.port}"
            self.to_record.append((name, Size(resource.memory_mb, resource.virtual_cores)))
        return b""

    def list_nodes(self, method: str, argument: bytes, deadline: Deadline) -> bytes:
        reply = yarn_pb2.GetClusterNodesResponse()
        for name, record in self.records.items():
            host, _, port = name.rpartition(":")
            used = self.used[name] if self.scheduler[name] else Size(0, 0)
            reply.reports.append(
                yarn_pb2.NodeReport(
                    node_id=yarn_pb2.NodeId(host=host.encode(), port=int(port)),
                    state=self.states[name],
                    capability=yarn_pb2.Resource(memory_mb=record.memory_mb, virtual_cores=record.vcores),
                    used=yarn_pb2.Resource(memory_mb=used.memory_mb, virtual_cores=used.vcores),
                )
            )
        return reply.SerializeToString()

    def page(self, path: str, deadline: Deadline) -> bytes:
        self.pages.append(path)
        self.before_page(path)
        return json.dumps(self._answer(path)).encode()

    def _answer(self, path: str) -> object:
        if path == "/ws/v1/cluster/metrics":
            held = [size for size in self.scheduler.values() if size]
            total = {"memory": sum(size.memory_mb for size in held), "vCores": sum(size.vcores for size in held)}
            return {"clusterMetrics": {"totalClusterResourcesAcrossPartition": total} if self.has_totals else {}}
        if "?" in path:
            return {"nodes": {"node": [self._entry(name) for name in self.records]}}
        return {"node": self._entry(path.rpartition("/")[2])}

    def _entry(self, name: str) -> object:
        size = self.scheduler[name]
        used = self.used[name] if size else Size(0, 0)
        size = size or Size(0, 0)
        return {
            "id": name,
            "usedMemoryMB": used.memory_mb,
            "usedVirtualCores": used.vcores,
            "availMemoryMB": size.memory_mb - used.memory_mb,
            "availableVirtualCores": size.vcores - used.vcores,
        }


def joined(imitation: Imitation, history: SizeHistory | None = None) -> ResourceManager:
    rm = ResourceManager.at(client="h:1", admin="h:2", web="h:3", user="u", history=history)
    rm._client.call = imitation.list_nodes  # type: ignore[method-assign]
    rm._admin.call = imitation.update  # type: ignore[method-assign]
    rm._web.page = imitation.page  # type: ignore[method-assign]
    return rm


def send(rm: ResourceManager, **sizes: Size) -> None:
    rm.update([NodeUpdate(node_id=f"{name}:1", size=size) for name, size in sizes.items()], LATER)


def in_force(reading: Reading) -> list[Size | None]:
    return [node.in_force for node in reading.nodes.values()]


@pytest.fixture
def imitation() -> Imitation:
    return Imitation("a:1", "b:1")


@pytest.fixture
def rm(imitation: Imitation) -> Iterator[ResourceManager]:
    """A ResourceManager that was read once, as after a while."""
    made = joined(imitation)
    made.read(LATER)
    imitation.pages.clear()
    yield made
    made.close()


def test_quiet_nodes_cost_one_call_and_one_small_page(imitation: Imitation, rm: ResourceManager) -> None:
    assert in_force(rm.read(LATER)) == [START, START]
    assert imitation.pages == ["/ws/v1/cluster/metrics"]


def test_a_change_that_the_scheduler_has_not_seen_is_not_in_force(imitation: Imitation, rm: ResourceManager) -> None:
    send(rm, a=Size(2048, 2))
    assert in_force(rm.read(LATER)) == [START, START]
    imitation.record_next()
    reading = rm.read(LATER)
    assert in_force(reading) == [START, START]
    assert reading.nodes["a:1"].node.capability == Size(2048, 2)
    imitation.schedule_next()
    assert in_force(rm.read(LATER)) == [Size(2048, 2), START]


def test_a_swap_of_two_sizes_is_not_mistaken_for_done(imitation: Imitation, rm: ResourceManager) -> None:
    send(rm, a=Size(3072, 3), b=Size(5120, 5))
    imitation.record_next()
    imitation.record_next()
    assert in_force(rm.read(LATER)) == [START, START]
    imitation.settle()
    assert in_force(rm.read(LATER)) == [Size(3072, 3), Size(5120, 5)]


def test_after_a_change_that_shrinks_all_the_totals_are_enough(imitation: Imitation, rm: ResourceManager) -> None:
    send(rm, a=Size(3072, 3), b=Size(2048, 2))
    imitation.settle()
    assert in_force(rm.read(LATER)) == [Size(3072, 3), Size(2048, 2)]
    assert imitation.pages == ["/ws/v1/cluster/metrics"]


def test_a_change_by_somebody_else_is_found(imitation: Imitation, rm: ResourceManager) -> None:
    imitation.to_record += [("a:1", Size(3072, 3)), ("b:1", Size(5120, 5))]
    imitation.record_next()
    imitation.record_next()
    assert in_force(rm.read(LATER)) == [START, START]
    imitation.settle()
    assert in_force(rm.read(LATER)) == [Size(3072, 3), Size(5120, 5)]


def shrink_under_the_eyes_of_nobody(imitation: Imitation, rm: ResourceManager) -> None:
    """`a` is sent 2 GiB and then 3, `b` is sent 3. All is in the record, and of the scheduler only the first.

    So `a` lacks 1 GiB there and `b` has 1 GiB too much: the totals are as they will be.
    """
    send(rm, b=Size(3072, 4))
    send(rm, a=Size(3072, 4))
    while imitation.to_record:
        imitation.record_next()
    imitation.schedule_next()


def test_a_size_that_came_and_went_between_two_readings_is_not_forgotten(
    imitation: Imitation, rm: ResourceManager
) -> None:
    send(rm, a=Size(2048, 4))
    shrink_under_the_eyes_of_nobody(imitation, rm)
    assert in_force(rm.read(LATER)) == [Size(2048, 4), START]


def test_what_another_thread_sends_while_we_read_is_not_forgotten(imitation: Imitation) -> None:
    history = SizeHistory()
    reads, acts = joined(imitation, history), joined(imitation, history)
    imitation.before_page = lambda path: send(acts, a=Size(2048, 4)) if len(imitation.pages) == 1 else None
    assert in_force(reads.read(LATER)) == [START, START]
    shrink_under_the_eyes_of_nobody(imitation, acts)
    assert in_force(reads.read(LATER)) == [Size(2048, 4), START]


def test_a_node_that_the_scheduler_has_out_of_its_table_is_unknown_and_not_empty(
    imitation: Imitation, rm: ResourceManager
) -> None:
    send(rm, a=Size(2048, 2))
    imitation.record_next()
    imitation.scheduler["a:1"] = None
    reading = rm.read(LATER)
    assert (reading.nodes["a:1"].in_force, reading.nodes["a:1"].used) == (None, None)
    assert (reading.nodes["b:1"].in_force, reading.nodes["b:1"].used) == (START, USED)


def test_a_node_that_is_back_when_asked_again_is_read(imitation: Imitation, rm: ResourceManager) -> None:
    send(rm, a=Size(2048, 2))
    imitation.record_next()
    imitation.scheduler["a:1"] = None

    def back_at_second_look(path: str) -> None:
        if sum("nodes/a" in page for page in imitation.pages) == 2:
            imitation.scheduler["a:1"] = Size(2048, 2)

    imitation.before_page = back_at_second_look
    assert rm.read(LATER).nodes["a:1"].in_force == Size(2048, 2)


def test_a_sum_made_wrong_by_a_container_that_starts_meanwhile_does_not_count(
    imitation: Imitation, rm: ResourceManager
) -> None:
    send(rm, a=Size(2048, 2))
    imitation.record_next()
    imitation.has_totals = False

    def torn(path: str) -> None:
        looks = sum("nodes/a" in page for page in imitation.pages)
        imitation.scheduler["a:1"] = Size(3584, 3) if looks == 1 else START

    imitation.before_page = torn
    assert rm.read(LATER).nodes["a:1"].in_force == START


def test_a_size_of_nothing_is_in_force_when_the_record_and_two_looks_say_so() -> None:
    imitation = Imitation("a:1", used=Size(0, 0))
    rm = joined(imitation)
    send(rm, a=Size(0, 0))
    imitation.scheduler["a:1"] = None  # out of the table for another reason: the record does not say it yet
    assert rm.read(LATER).nodes["a:1"].in_force is None
    imitation.record_next()
    imitation.scheduler["a:1"] = START

    def gone_for_a_moment(path: str) -> None:
        looks = sum("nodes/a" in page for page in imitation.pages)
        imitation.scheduler["a:1"] = None if looks == 1 else START

    imitation.before_page = gone_for_a_moment
    assert rm.read(LATER).nodes["a:1"].in_force == START
    imitation.before_page = lambda path: None
    imitation.schedule_next()
    reading = rm.read(LATER).nodes["a:1"]
    assert (reading.in_force, reading.used) == (Size(0, 0), Size(0, 0))
    imitation.pages.clear()
    assert in_force(rm.read(LATER)) == [Size(0, 0)]
    assert imitation.pages == ["/ws/v1/cluster/metrics"]  # it is a quiet node like others


def test_a_size_of_nothing_on_a_node_with_a_task_is_in_force(imitation: Imitation, rm: ResourceManager) -> None:
    send(rm, a=Size(0, 0))
    imitation.settle()
    reading = rm.read(LATER).nodes["a:1"]
    assert (reading.in_force, reading.used) == (Size(0, 0), USED)


def test_an_idle_node_is_told_from_one_out_of_the_table() -> None:
    imitation = Imitation("a:1", used=Size(0, 0))
    assert joined(imitation).read(LATER).nodes["a:1"].used == Size(0, 0)


@pytest.mark.parametrize("state", ["UNHEALTHY", "LOST", "SHUTDOWN", "DECOMMISSIONED", "NEW"])
def test_a_node_that_is_not_in_the_scheduler_has_no_numbers(
    imitation: Imitation, rm: ResourceManager, state: str
) -> None:
    imitation.states["a:1"], imitation.scheduler["a:1"] = state, None
    reading = rm.read(LATER).nodes["a:1"]
    assert (reading.in_force, reading.used, reading.node.state) == (None, None, state)


def test_a_node_that_comes_back_is_read_anew(imitation: Imitation, rm: ResourceManager) -> None:
    imitation.states["a:1"], imitation.scheduler["a:1"] = "UNHEALTHY", None
    rm.read(LATER)
    imitation.states["a:1"] = "RUNNING"
    assert rm.read(LATER).nodes["a:1"].in_force is None
    imitation.scheduler["a:1"] = START
    assert rm.read(LATER).nodes["a:1"].in_force == START


def test_without_totals_changed_nodes_are_read_one_by_one(imitation: Imitation, rm: ResourceManager) -> None:
    imitation.has_totals = False
    send(rm, a=Size(2048, 2))
    imitation.record_next()
    imitation.pages.clear()
    assert in_force(rm.read(LATER)) == [START, START]
    assert [page for page in imitation.pages if "nodes" in page] == ["/ws/v1/cluster/nodes/a:1"]


def test_many_changed_nodes_are_read_in_one_page() -> None:
    names = [f"n{number}:1" for number in range(FEW_NODES + 1)]
    imitation = Imitation(*names)
    assert in_force(joined(imitation).read(LATER)) == [START] * len(names)
    assert [page for page in imitation.pages if "nodes" in page] == [
        "/ws/v1/cluster/nodes?states=RUNNING,DECOMMISSIONING"
    ]


class Model(RuleBasedStateMachine):
    """Two of our threads send and read in any order, while the two queues move on: what is read is always so."""

    @initialize()
    def begin(self) -> None:
        self.imitation = Imitation("0:1", "1:1", "2:1")
        history = SizeHistory()
        self.threads = [joined(self.imitation, history) for _ in range(2)]
        self.sent: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}

    @rule(thread=st.integers(0, 1), steps=st.dictionaries(st.integers(0, 2), st.integers(-4, 4), min_size=1))
    def send(self, thread: int, steps: dict[int, int]) -> None:
        """No size is sent twice to one node, as core promises for sizes in flight."""
        new = {node: step for node, step in steps.items() if step not in self.sent[node] | {0}}
        for node, step in new.items():
            self.sent[node].add(step)
        updates = [
            NodeUpdate(node_id=f"{node}:1", size=Size(4096 + 1024 * step, 4)) for node, step in sorted(new.items())
        ]
        self.threads[thread].update(updates, LATER)

    @rule()
    def record(self) -> None:
        self.imitation.record_next()

    @rule()
    def schedule(self) -> None:
        self.imitation.schedule_next()

    @rule(thread=st.integers(0, 1))
    def read(self, thread: int) -> None:
        reading = self.threads[thread].read(LATER)
        assert {name: node.in_force for name, node in reading.nodes.items()} == self.imitation.scheduler


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
