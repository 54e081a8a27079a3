"""Two embedded ResourceManagers, of which one is active."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from plugins.yarn.tests.yarn_fakes import Clock

from fallow_hookspecs import CapacityReport, ClusterConfig, Node, Offer, PluginError, Resources, Role, TryLater
from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.errors import StandbyError, UnreachableError
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.rm import active
from fallow_yarn.rm.active import ActiveIndex, ActiveManager
from fallow_yarn.rm.admin import NodeUpdate
from fallow_yarn.rm.batches import update_in_batches
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.security.access import Access
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.rm_addresses import rm_addresses

HERE = Node(name="here", addresses=("localhost", "127.0.0.1"))
MIB = 1 << 20


def soon(seconds: float = 10) -> Deadline:
    return Deadline.after(seconds)


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedYarn]:
    settings = Settings(ha=True, nodes=2, heartbeat_seconds=0.05, starting_seconds=0.0, version="3.2.4")
    with EmbeddedYarn(tmp_path_factory.mktemp("ha"), settings) as yarn:
        yield yarn


@pytest.fixture
def pair(yarn: EmbeddedYarn) -> Iterator[EmbeddedYarn]:
    """The first one is active, and is so again afterwards."""
    yield yarn
    for rm in yarn.rms.values():
        rm.stop()
        rm.start(standby=rm.name != "rm1")
    yarn.wait_ready()


def spec_of(yarn: EmbeddedYarn, **replaced: dict[str, str]) -> YarnSpec:
    given = {
        name: {"host": "127.0.0.1", "client": rm.client_address, "admin": rm.admin_address, "web": rm.web_address}
        for name, rm in yarn.rms.items()
    }
    return YarnSpec.model_validate({"resourceManagers": given | replaced})


def manager_of(yarn: EmbeddedYarn, clock: Callable[[], float] = time.monotonic, user: str = "me") -> ActiveManager:
    access = Access.simple(user)
    return ActiveManager(
        [ResourceManager(place, access) for place in rm_addresses(spec_of(yarn))], ActiveIndex(), clock
    )


@pytest.fixture
def manager(pair: EmbeddedYarn) -> Iterator[ActiveManager]:
    with closing(manager_of(pair)) as manager:
        yield manager


def report(instance: YarnInstance) -> CapacityReport:
    return instance.report_capacity((HERE,), (), 10.0)


def instance_of(spec: YarnSpec) -> YarnInstance:
    return YarnInstance(ClusterConfig(name="etl", roles=frozenset(Role), spec=spec))


def test_the_first_call_after_a_failover_finds_the_other_one_and_keeps_it(
    pair: EmbeddedYarn, manager: ActiveManager
) -> None:
    assert (manager.facts(soon()).identity.active, manager.addresses.name) == (True, "rm1")
    pair.fail_over()
    assert len(manager.read(soon()).nodes) == 2
    assert manager.addresses.name == "rm2"
    manager.check_rights(soon())
    assert manager.addresses.name == "rm2"


def test_portions_go_to_the_other_one_after_a_failover(pair: EmbeddedYarn, manager: ActiveManager) -> None:
    ids = sorted(nm.node_id for nm in pair.nodes.values())
    for memory_mb in (1024, 2048):
        portions = [[NodeUpdate(node_id=node_id, size=Size(memory_mb, 1))] for node_id in ids]
        answers = list(update_in_batches(manager, portions, soon()))
        assert {answer.node_id: answer.error for answer in answers} == dict.fromkeys(ids)
        assert {node.node_id: node.capability for node in manager.nodes(soon())} == dict.fromkeys(
            ids, Size(memory_mb, 1)
        )
        pair.fail_over()
    assert manager.addresses.name == "rm2"


def test_the_active_one_is_found_when_the_first_is_killed(pair: EmbeddedYarn, manager: ActiveManager) -> None:
    assert manager.facts(soon()).identity.active
    first, second = pair.rms.values()
    first.stop()
    second.become_active()
    pair.wait_ready()
    assert manager.facts(soon()).identity.active
    assert (manager.addresses.name, len(manager.nodes(soon()))) == ("rm2", 2)


def test_of_two_that_stand_by_each_is_named_and_a_later_call_finds_the_active_one(
    pair: EmbeddedYarn, manager: ActiveManager
) -> None:
    pair.rm.become_standby()
    with pytest.raises(StandbyError, match=r"no ResourceManager is active: rm1 at .*: standby; rm2 at .*: standby"):
        manager.facts(soon())
    pair.rms["rm2"].become_active()
    pair.wait_ready()
    assert manager.facts(soon()).identity.active


def test_of_two_that_are_down_each_is_named_with_its_address(pair: EmbeddedYarn, manager: ActiveManager) -> None:
    for rm in pair.rms.values():
        rm.stop()
    with pytest.raises(UnreachableError, match=r"(?s)no ResourceManager answers: rm1 .*rm1\.admin.*rm2 .*rm2\.admin"):
        manager.facts(soon())


def test_the_words_of_the_contract_tell_standbys_from_what_is_down(pair: EmbeddedYarn) -> None:
    with closing(instance_of(spec_of(pair))) as instance:
        pair.rm.become_standby()
        with pytest.raises(TryLater):
            report(instance)
        for rm in pair.rms.values():
            rm.stop()
        with pytest.raises(PluginError) as caught:
            report(instance)
        assert not isinstance(caught.value, TryLater)


def test_one_that_became_active_later_replaces_one_that_does_not_know_yet(pair: EmbeddedYarn) -> None:
    clock = Clock()
    with closing(manager_of(pair, clock)) as manager:
        pair.rms["rm2"].become_active()  # and rm1 still says that it is active
        assert (manager.facts(soon()).identity.active, manager.addresses.name) == (True, "rm1")
        clock.now += active.CHECK_PAUSE_SECONDS
        assert (manager.facts(soon()).identity.active, manager.addresses.name) == (True, "rm2")
        clock.now += active.CHECK_PAUSE_SECONDS
        assert (manager.facts(soon()).identity.active, manager.addresses.name) == (True, "rm2")


def test_one_that_takes_connections_and_never_answers_is_left_for_the_active_one(
    pair: EmbeddedYarn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(active, "FACTS_SECONDS", 0.1)
    monkeypatch.setattr(active, "ASK_SECONDS", 0.1)
    pair.fail_over()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        rm1 = {"host": "127.0.0.1", "client": address, "admin": address, "web": address}
        with closing(instance_of(spec_of(pair, rm1=rm1))) as instance:
            assert "rm2 at" in report(instance).detail


def test_a_name_that_stands_for_another_address_after_a_failover_is_looked_up_again(
    pair: EmbeddedYarn, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = {rm.name: [rm.client_address, rm.admin_address, rm.web_address] for rm in pair.rms.values()}
    serves = "rm1"
    known = socket.getaddrinfo

    def look_up(host: str | bytes, port: int, **how: Any) -> Any:
        if host not in ("rm.test", b"rm.test"):
            return known(host, port, **how)
        return known("127.0.0.1", int(ports[serves][port - 1].rpartition(":")[2]), **how)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    moved = {"host": "rm.test", "client": "rm.test:1", "admin": "rm.test:2", "web": "rm.test:3"}
    away = {"host": "127.0.0.1", "client": "127.0.0.1:1", "admin": "127.0.0.1:1", "web": "127.0.0.1:1"}
    found = rm_addresses(YarnSpec.model_validate({"resourceManagers": {"moved": moved, "away": away}}))
    access = Access.simple("me")
    with closing(
        ActiveManager([ResourceManager(place, access) for place in found], ActiveIndex(), time.monotonic)
    ) as manager:
        manager.check_rights(soon())
        assert len(manager.nodes(soon())) == 2
        pair.fail_over()
        serves = "rm2"
        manager.check_rights(soon())
        assert len(manager.nodes(soon())) == 2


def test_after_a_failover_the_sizes_are_sent_again_in_one_call(pair: EmbeddedYarn) -> None:
    with closing(instance_of(spec_of(pair))) as instance:
        rows = report(instance).rows
        sizes = [Resources(cpu_milli=2000, memory_bytes=memory * MIB) for memory in (1024, 2048)]
        offers = tuple(
            Offer(node="here", framework_node=row.framework_node, total=size, take_back={})
            for row, size in zip(rows, sizes, strict=True)
        )
        for _ in range(2):
            answers = instance.report_capacity((HERE,), offers, 10.0).answers
            assert [answer.accepted for answer in answers] == sizes
            wait_for(lambda: [row.in_force for row in report(instance).rows] == sizes)
            pair.fail_over()  # this release forgets what it was told
            assert [row.in_force for row in report(instance).rows] == [row.in_force for row in rows]


def test_a_user_without_admin_rights_is_told_by_the_page(tmp_path: Path) -> None:
    settings = Settings(ha=True, nodes=0, starting_seconds=0.0, admins=frozenset())
    with EmbeddedYarn(tmp_path, settings) as yarn, closing(manager_of(yarn, user="stranger")) as manager:
        yarn.fail_over()
        assert manager.facts(soon()).identity.active
        assert [str(standing.status) for standing in manager.states(soon())] == ["STANDBY", "ACTIVE"]


def test_doctor_shows_what_each_says_of_itself_also_while_none_is_active(pair: EmbeddedYarn) -> None:
    with closing(instance_of(spec_of(pair))) as instance:

        def shown() -> dict[str, tuple[bool | None, str]]:
            found = instance.diagnose((HERE,), 10.0)
            return {finding.subject: (finding.ok, finding.detail.rpartition(": ")[2]) for finding in found}

        found = shown()
        assert (found["ResourceManager rm1"], found["ResourceManager rm2"]) == ((True, "active"), (True, "standby"))
        pair.rms["rm2"].become_active()
        assert [shown()[f"ResourceManager {name}"][0] for name in pair.rms] == [None, None], "one does not know yet"
        for rm in pair.rms.values():
            rm.become_standby()
        found = shown()
        assert (found["ResourceManager"][0], found["ResourceManager rm1"]) == (False, (True, "standby"))
        pair.rms["rm2"].stop()
        assert shown()["ResourceManager rm2"][0] is False


def test_what_may_have_been_done_by_the_first_is_said_of_an_error_of_the_second(
    pair: EmbeddedYarn, manager: ActiveManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    managers = iter([UnreachableError("gone", maybe_sent=True), UnreachableError("also gone")])

    def fail(_self: ResourceManager, _deadline: Deadline) -> None:
        raise next(managers)

    pair.fail_over()
    monkeypatch.setattr(ResourceManager, "check_rights", fail)
    with pytest.raises(UnreachableError, match="also gone") as caught:
        manager.check_rights(soon())
    assert caught.value.maybe_sent


def wait_for(test: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not test():
        assert time.monotonic() < end
        time.sleep(0.02)
