"""New sizes for all nodes, the ways to send them, and what each costs."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random

from tests.benchmarks.fleet.cluster import USER, Fleet

from fallow_hookspecs import Offer, Resources
from fallow_yarn.ipc.connection import Connection, simple
from fallow_yarn.model.size import MIB_BYTES, Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.rm.admin import ADMIN_PROTOCOL, METHOD, NodeUpdate, request_of, send

HOST = "fleet"
TIMEOUT_SECONDS = 300.0

Sizes = Mapping[str, Size]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What it cost to send sizes: until the last call was answered, until the scheduler's total was right (seconds),
    and CPU seconds of the ResourceManager until then, above an idle one."""

    answered: float
    right: float
    cpu: float


def varied(ids: Iterable[str], rng: Random) -> Sizes:
    """Sizes as hosts with different loads have them; each has room for the containers."""
    return {node_id: Size(rng.randint(6000, 15000), rng.randint(6, 28)) for node_id in ids}


def total_of(sizes: Sizes) -> Size:
    """Their sum."""
    return Size(sum(s.memory_mb for s in sizes.values()), sum(s.vcores for s in sizes.values()))


def offers(sizes: Sizes) -> tuple[Offer, ...]:
    """The sizes as core hands them to a plugin, the largest first."""
    return tuple(
        Offer(node=HOST, framework_node=node_id, total=Resources(size.vcores * 1000, size.memory_mb * MIB_BYTES))
        for node_id, size in sorted(sizes.items(), key=lambda item: item[1], reverse=True)
    )


def by_plugin(instance: YarnInstance, sizes: Sizes) -> Callable[[], None]:
    """By one call of the plugin, which makes several of it."""
    due = offers(sizes)

    def act() -> None:
        answers = instance.report_capacity((), due, TIMEOUT_SECONDS).answers
        refused = [answer for answer in answers if answer.accepted is None]
        assert not refused, refused[:3]

    return act


def calls_under_way(connection: Connection, portions: Iterable[Sizes]) -> Callable[[], None]:
    """A message for each portion, all of them made before; the first answer is waited for when all were sent."""
    messages = [request_of(_updates(sizes)) for sizes in portions]

    def act() -> None:
        deadline = Deadline.after(TIMEOUT_SECONDS)
        for finish in [connection.begin(METHOD, message, deadline) for message in messages]:
            finish()

    return act


def call_a_node(admin: str, sizes: Sizes) -> Callable[[], None]:
    """One new connection and call a node, one after the other."""
    updates = _updates(sizes)

    def act() -> None:
        deadline = Deadline.after(TIMEOUT_SECONDS)
        for update in updates:
            connection = connected(admin)
            send(connection.call, [update], deadline)
            connection.close()

    return act


def connected(admin: str) -> Connection:
    """A connection to the admin port, which it makes with its first call."""
    endpoint = Endpoint.parse(admin, setting="admin", purpose="the admin port", hadoop_key="")
    return Connection(endpoint, ADMIN_PROTOCOL, USER, simple(USER))


def _updates(sizes: Sizes) -> list[NodeUpdate]:
    return [NodeUpdate(node_id=node_id, size=size) for node_id, size in sizes.items()]


def cost(fleet: Fleet, idle_share: float, act: Callable[[], None], total: Size) -> Cost:
    """Do it, wait until the scheduler works with `total`, and say what it cost."""
    began, before = time.monotonic(), fleet.cpu_seconds()
    act()
    answered = time.monotonic() - began
    fleet.wait_until_right(total)
    right = time.monotonic() - began
    return Cost(answered=answered, right=right, cpu=fleet.cpu_seconds() - before - idle_share * right)
