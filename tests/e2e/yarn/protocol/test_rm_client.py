"""The ResourceManager client against the embedded and the real one."""

import getpass
from collections.abc import Iterator, Mapping

import pytest
from tests.e2e.yarn import rest
from tests.e2e.yarn.protocol.clusters import FAIR, MASTER_MB, VERSION, Manager, Shape, Yarn
from tests.e2e.yarn.protocol.conftest import StartYarn
from tests.e2e.yarn.rest import wait_for

from fallow_yarn.errors import (
    AccessDeniedError,
    AuthenticationRefusedError,
    NoSuchCallError,
    ProtocolError,
    RemoteError,
    StandbyError,
    UnknownNodeError,
    UnreachableError,
)
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import NodeUpdate
from fallow_yarn.rm.batches import update_in_batches
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.rm.facts import Calculator
from fallow_yarn.rm.nodes import CustomResource
from fallow_yarn.rm.scheduler import read_metrics

OWN_USER = getpass.getuser()  # the daemon's own user is always an administrator
LICENCES = 5
SHAPE = Shape(nodes=2, memory_mb=4096, vcores=4, admin="nobody-else", licences=LICENCES)
FULL = Size(4096, 4)
Custom = Mapping[str, tuple[CustomResource, ...]]


def soon() -> Deadline:
    return Deadline.after(10)


@pytest.fixture(scope="module")
def cluster(start_yarn: StartYarn) -> Yarn:
    return start_yarn(SHAPE)


def client_of(
    rm: Manager, *, user: str = OWN_USER, client: str | None = None, web: str | None = None
) -> ResourceManager:
    return ResourceManager.at(client=client or rm.client, admin=rm.admin, web=web or rm.web, user=user)


@pytest.fixture(scope="module")
def custom(cluster: Yarn) -> Iterator[Custom]:
    """The further resources of each node, as they were at the beginning."""
    rm = client_of(cluster.rm)
    yield customs(rm)
    rm.close()


@pytest.fixture
def rm(cluster: Yarn, custom: Custom) -> Iterator[ResourceManager]:
    """A client; in the end the nodes have their configured sizes again."""
    made = client_of(cluster.rm)
    yield made
    full = dict.fromkeys(node_ids(cluster), FULL)
    resize(made, full, custom)
    wait_in_force(made, full)
    made.close()


def node_ids(cluster: Yarn) -> list[str]:
    return [nm.node_id for nm in cluster.nodes.values()]


def shown(cluster: Yarn) -> dict[str, rest.Node]:
    return rest.nodes(cluster.rm.web)


def in_force(rm: ResourceManager) -> dict[str, Size | None]:
    return {node_id: reading.in_force for node_id, reading in rm.read(soon()).nodes.items()}


def customs(rm: ResourceManager) -> Custom:
    return {node.node_id: node.custom for node in rm.nodes(soon())}


def resize(rm: ResourceManager, sizes: dict[str, Size], custom: Custom) -> None:
    updates = [
        NodeUpdate(node_id=node_id, size=size, custom=custom.get(node_id, ())) for node_id, size in sizes.items()
    ]
    assert [answer.error for answer in rm.update(updates, soon())] == [None] * len(sizes)


def wait_in_force(rm: ResourceManager, sizes: Mapping[str, Size]) -> None:
    wait_for(lambda: sizes.items() <= in_force(rm).items(), 20, f"the sizes {sizes}")


def test_nodes_totals_and_settings_are_read(cluster: Yarn, rm: ResourceManager) -> None:
    for _ in range(2):
        reading = rm.read(soon())
        assert {node_id: node.in_force for node_id, node in reading.nodes.items()} == dict.fromkeys(
            node_ids(cluster), FULL
        )
        assert {node.used for node in reading.nodes.values()} == {Size(0, 0)}
        assert reading.metrics.total == Size(8192, 8)
    facts = rm.facts(soon())
    assert facts.identity.active
    assert facts.identity.version == VERSION
    assert reading.metrics.pending == (Size(0, 0) if facts.identity.release >= (3, 3) else None)
    assert facts.setup is not None
    assert facts.setup.scheduler == ("fairScheduler" if FAIR else "capacityScheduler")
    assert facts.setup.minimum == Size(SHAPE.minimum_mb, 1)
    assert facts.setup.maximum == Size(8192, 4)
    if not FAIR:
        assert facts.setup.calculator is Calculator.DOMINANT
        assert facts.setup.asynchronous is (facts.identity.release >= (3, 5))


def test_new_sizes_come_into_force_and_an_unknown_node_spoils_nothing(
    cluster: Yarn, rm: ResourceManager, custom: Custom
) -> None:
    first, second = node_ids(cluster)
    wanted = {first: Size(2048, 2), second: Size(3000, 3)}
    sizes = {"nowhere:1": FULL, first: wanted[first], "nowhere:2": FULL, second: wanted[second]}
    updates = [NodeUpdate(node_id=name, size=size, custom=custom.get(name, ())) for name, size in sizes.items()]
    answers = rm.update(updates, soon())
    assert [answer.accepted for answer in answers] == [False, True, False, True]
    assert {type(answer.error) for answer in answers if answer.error} == {UnknownNodeError}
    wait_in_force(rm, wanted)


def test_of_several_calls_under_way_each_is_taken_whole_and_one_with_an_unknown_node_spoils_no_other(
    cluster: Yarn, rm: ResourceManager, custom: Custom
) -> None:
    first, second = node_ids(cluster)
    for sizes in ([Size(2048, 2), Size(3000, 3)], [Size(1024, 1), Size(2000, 2)]):
        wanted = dict(zip((first, second), sizes, strict=True))
        portions = [
            [NodeUpdate(node_id=name, size=wanted.get(name, FULL), custom=custom.get(name, ())) for name in names]
            for names in ([first], ["nowhere:1", second], ["nowhere:2"])
        ]
        answers = list(update_in_batches(rm, portions, soon()))
        assert {answer.node_id: answer.accepted for answer in answers} == {
            first: True,
            second: True,
            "nowhere:1": False,
            "nowhere:2": False,
        }
        assert {type(answer.error) for answer in answers if answer.error} == {UnknownNodeError}
        wait_in_force(rm, wanted)


@pytest.mark.parametrize("count", [1, 2])
def test_nodes_of_no_size_are_read_as_that_and_as_often_as_asked(
    cluster: Yarn, rm: ResourceManager, custom: Custom, count: int
) -> None:
    nothing = dict.fromkeys(node_ids(cluster)[:count], Size(0, 0))
    resize(rm, nothing, custom)
    wait_in_force(rm, nothing)
    for _ in range(3):
        nodes = rm.read(soon()).nodes
        assert {(nodes[name].in_force, nodes[name].used) for name in nothing} == {(Size(0, 0), Size(0, 0))}


def test_further_resources_stay_when_they_are_sent_back_and_vanish_when_not(
    cluster: Yarn, rm: ResourceManager, custom: Custom
) -> None:
    first = cluster.nodes["nm1"].node_id
    for size, sent, shown in ((Size(2048, 2), custom, LICENCES), (Size(2000, 2), {}, 0), (Size(2001, 2), custom, 5)):
        resize(rm, {first: size}, sent)
        wait_in_force(rm, {first: size})
        assert [(entry.name, entry.value) for entry in customs(rm)[first]] == [("licence", shown)]


def test_while_sizes_change_all_the_time_nothing_false_is_read_and_nothing_is_ended(
    cluster: Yarn, rm: ResourceManager, custom: Custom
) -> None:
    """A node is out of the scheduler's table for a moment at each change, and must not look idle then."""
    app = cluster.submit(2, 512, 1, "exec sleep 600")
    wait_for(lambda: len(app.running()) == 2, 60, "the containers")
    used_mb = MASTER_MB + 2 * 512
    wait_for(lambda: sum(n.used_mb for n in shown(cluster).values()) == used_mb, 20, "what they use")
    used = {node_id: Size(node.used_mb, node.used_vcores) for node_id, node in shown(cluster).items()}
    first, second = node_ids(cluster)
    rm.read(soon())
    sent = {first: {FULL}, second: {FULL}}
    for number in range(1, 200):
        pair = {first: Size(1024 + number, 1), second: Size(2048 - number, 3)}  # what one gains the other loses
        for node_id, size in pair.items():
            sent[node_id].add(size)
        resize(rm, pair, custom)
        for node_id, reading in rm.read(soon()).nodes.items():
            assert reading.in_force is None or reading.in_force in sent[node_id]
            assert reading.used in (None, used[node_id])
    wait_in_force(rm, pair)
    assert {node_id: reading.used for node_id, reading in rm.read(soon()).nodes.items()} == used
    assert app.exits() == {}


def test_a_user_without_rights_is_told_so_and_may_still_read(cluster: Yarn) -> None:
    stranger = client_of(cluster.rm, user="stranger")
    first = cluster.nodes["nm1"].node_id
    with pytest.raises(AccessDeniedError, match="'stranger' needs the right") as caught:
        stranger.update([NodeUpdate(node_id=first, size=Size(2048, 2))], soon())
    assert not caught.value.maybe_sent
    with pytest.raises(AccessDeniedError):
        stranger.check_rights(soon())
    assert in_force(stranger)[first] == FULL
    stranger.close()


def test_the_daemons_own_user_has_the_right_and_asking_changes_nothing(cluster: Yarn, rm: ResourceManager) -> None:
    rm.check_rights(soon())
    assert in_force(rm) == dict.fromkeys(node_ids(cluster), FULL)


def test_a_wrong_port_is_diagnosed(cluster: Yarn) -> None:
    rm = cluster.rm
    for wrong, expected, words in (
        (client_of(cluster.rm, client=rm.admin), NoSuchCallError, "another port of the ResourceManager"),
        (client_of(cluster.rm, client=rm.web), ProtocolError, "this is a web port"),
        (
            client_of(cluster.rm, client=rm.scheduler),
            AuthenticationRefusedError,
            "SIMPLE authentication is not enabled",
        ),
        (client_of(cluster.rm, web=rm.client), ProtocolError, "this is a Hadoop IPC port"),
        (client_of(cluster.rm, web=cluster.webs["nm1"]), RemoteError, "HTTP 404"),
    ):
        with pytest.raises(expected, match=words):
            wrong.read(soon())
        wrong.close()


def test_after_a_restart_the_same_client_goes_on(cluster: Yarn, rm: ResourceManager) -> None:
    before = rm.facts(soon()).identity
    assert in_force(rm) == dict.fromkeys(node_ids(cluster), FULL)
    cluster.kill("rm")
    with pytest.raises(UnreachableError):
        rm.read(soon())
    cluster.start("rm")
    after = rm.facts(soon()).identity
    assert after.started_on != before.started_on
    rm.check_rights(soon())
    # Which sizes they register with is their affair: a NodeManager is told of a new one with a later heartbeat.
    wait_in_force(rm, {name: Size(node.total_mb, node.total_vcores) for name, node in shown(cluster).items()})


def test_a_standby_is_told_from_a_dead_one(standby: Manager) -> None:
    rm = client_of(standby)
    identity = rm.facts(soon()).identity
    assert (identity.active, identity.ha_state) == (False, "STANDBY")
    with pytest.raises(StandbyError):
        rm.check_rights(soon())
    with pytest.raises(StandbyError):
        read_metrics(rm._web, soon())
    with pytest.raises(UnreachableError):
        rm.nodes(soon())
    rm.close()
