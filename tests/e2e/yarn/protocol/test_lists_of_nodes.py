"""Nodes taken out of the cluster and in again by its list of excluded hosts, on the embedded and the real YARN."""

import getpass
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.yarn import rest
from tests.e2e.yarn.protocol.clusters import MASTER_MB, Manager, Shape, Yarn
from tests.e2e.yarn.protocol.conftest import StartYarn
from tests.e2e.yarn.rest import wait_for

from fallow_yarn.errors import AccessDeniedError, StandbyError, UnknownNodeError
from fallow_yarn.ipc.protos import yarn_pb2
from fallow_yarn.lifecycle.decommissioning import Decommissioning
from fallow_yarn.lifecycle.list_entries import addresses_of, counted
from fallow_yarn.lifecycle.list_file import ListFile
from fallow_yarn.lifecycle.lists import HostLists
from fallow_yarn.lifecycle.recommissioning import recommission
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import ADMIN_PROTOCOL, NodeUpdate
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.rm.nodes import Node, State
from fallow_yarn.security.access import Access
from fallow_yarn.settings.hadoop_conf import EXCLUDE_KEY
from fallow_yarn.settings.rm_addresses import Server, server

EMPTY = "<?xml version='1.0'?>\n<!-- ours -->\n<hosts>\n</hosts>\n"
FULL = Size(4096, 4)
USED = Size(MASTER_MB + 512, 2)
WAIT_SECONDS = 30.0


def soon() -> Deadline:
    return Deadline.after(10)


@pytest.fixture(scope="module")
def exclude(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lists") / "exclude.xml"


@pytest.fixture(scope="module")
def include(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lists") / "include"


@pytest.fixture(scope="module")
def cluster(start_yarn: StartYarn, exclude: Path, include: Path) -> Yarn:
    exclude.write_text(EMPTY)
    include.write_text("")
    shape = Shape(memory_mb=FULL.memory_mb, vcores=FULL.vcores, admin="nobody-else", exclude=exclude, include=include)
    return start_yarn(shape)


@pytest.fixture
def rm(cluster: Yarn, exclude: Path, include: Path) -> Iterator[ResourceManager]:
    """A client of a cluster whose node is in use and idle."""
    exclude.write_text(EMPTY)
    include.write_text("")
    made = client(cluster.rm)
    made.refresh_nodes(0, soon())
    if node(made).state is not State.RUNNING:
        cluster.kill("nm1")
        cluster.start("nm1")
    wait_for(lambda: not unfinished(cluster), WAIT_SECONDS, "the end of what an earlier test has left")
    yield made
    made.close()


def client(rm: Manager, user: str | None = None) -> ResourceManager:
    """A client as a user, by default the daemon's own, who is always an administrator."""
    return ResourceManager.at(client=rm.client, admin=rm.admin, web=rm.web, user=user or getpass.getuser())


def unfinished(cluster: Yarn) -> list[str]:
    apps = (rest.call(cluster.rm.web, "/ws/v1/cluster/apps").get("apps") or {}).get("app") or []
    return [app["id"] for app in apps if app["state"] not in ("FINISHED", "FAILED")]


def node(rm: ResourceManager) -> Node:
    (found,) = rm.nodes(soon())
    return found


def wait_state(rm: ResourceManager, state: State) -> None:
    wait_for(lambda: node(rm).state is state, WAIT_SECONDS, f"a node {state}")


def host(name: str, grace_seconds: int | None = None) -> str:
    grace = "" if grace_seconds is None else f"<timeout>{grace_seconds}</timeout>"
    return EMPTY.replace("</hosts>", f"<host><name>{name}</name>{grace}</host></hosts>")


def test_a_node_that_is_leaving_keeps_what_runs_and_shrinks_to_it(
    cluster: Yarn, rm: ResourceManager, exclude: Path, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    app = cluster.submit(1, 512, 1, f"while ! test -e {end}; do sleep 0.1; done")
    wait_for(lambda: len(app.running()) == 1, WAIT_SECONDS, "the container")
    before = node(rm)
    assert (before.state, before.capability, before.grace_seconds) == (State.RUNNING, FULL, None)
    exclude.write_text(host(before.host))
    rm.refresh_nodes(600, soon())
    wait_state(rm, State.DECOMMISSIONING)
    assert node(rm).grace_seconds == 600
    wait_for(lambda: node(rm).capability == USED, WAIT_SECONDS, "the size that is allocated")
    rm.refresh_nodes(700, soon())
    wait_for(lambda: node(rm).grace_seconds == 700, WAIT_SECONDS, "the other grace")
    exclude.write_text(host(before.host, 800))
    rm.refresh_nodes(700, soon())
    wait_for(lambda: node(rm).grace_seconds == 800, WAIT_SECONDS, "the grace of the host's own")
    assert [answer.error for answer in rm.update([NodeUpdate(node_id=before.node_id, size=FULL)], soon())] == [None]
    wait_for(lambda: node(rm).capability == USED, WAIT_SECONDS, "the size that is allocated, whatever it was told")
    shown = rest.nodes(cluster.rm.web)[before.node_id]
    assert (shown.state, shown.used_mb, shown.total_mb) == ("DECOMMISSIONING", USED.memory_mb, USED.memory_mb)
    exclude.write_text(EMPTY)
    rm.refresh_nodes(0, soon())
    wait_state(rm, State.RUNNING)
    wait_for(lambda: node(rm).capability == FULL, WAIT_SECONDS, "the size of before")
    assert node(rm).grace_seconds == 800  # it is never taken away
    assert app.exits() == {}
    exclude.write_text(host(before.host))
    rm.refresh_nodes(600, soon())
    wait_state(rm, State.DECOMMISSIONING)
    end.touch()
    wait_state(rm, State.DECOMMISSIONED)
    assert set(app.exits().values()) == {0}


def test_a_grace_of_nothing_ends_what_runs_and_the_node_manager(
    cluster: Yarn, rm: ResourceManager, exclude: Path, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    app = cluster.submit(1, 512, 1, f"while ! test -e {end}; do sleep 0.1; done")
    wait_for(lambda: len(app.running()) == 1, WAIT_SECONDS, "the container")
    exclude.write_text(host(node(rm).host))
    rm.refresh_nodes(0, soon())
    wait_state(rm, State.DECOMMISSIONED)
    end.touch()  # where it is begun anew
    # The scheduler drops the node in an event of its own, after the state has changed.
    wait_for(lambda: node(rm).containers == 0, WAIT_SECONDS, "the end of its containers")
    (answer,) = rm.update([NodeUpdate(node_id=node(rm).node_id, size=FULL)], soon())
    assert isinstance(answer.error, UnknownNodeError)
    metrics = rest.call(cluster.rm.web, "/ws/v1/cluster/metrics")["clusterMetrics"]
    assert (metrics["activeNodes"], metrics["decommissioningNodes"], metrics["decommissionedNodes"]) == (0, 0, 1)


@pytest.mark.parametrize("kind", [yarn_pb2.NORMAL, yarn_pb2.FORCEFUL])
def test_the_other_kinds_of_refresh_end_what_has_a_grace(
    cluster: Yarn, rm: ResourceManager, exclude: Path, tmp_path: Path, kind: yarn_pb2.DecommissionType
) -> None:
    end = tmp_path / "end"
    app = cluster.submit(1, 512, 1, f"while ! test -e {end}; do sleep 0.1; done")
    wait_for(lambda: len(app.running()) == 1, WAIT_SECONDS, "the container")
    exclude.write_text(host(node(rm).host))
    rm.refresh_nodes(600, soon())
    wait_state(rm, State.DECOMMISSIONING)
    admin = Access.simple(getpass.getuser()).connection(server(Server.ADMIN, cluster.rm.admin, "here"), ADMIN_PROTOCOL)
    with closing(admin):
        admin.call("refreshNodes", yarn_pb2.RefreshNodesRequest(kind=kind).SerializeToString(), soon())
    wait_state(rm, State.DECOMMISSIONED)
    end.touch()  # where it is begun anew


def test_a_host_that_is_not_included_is_out_and_recommissioning_includes_it(
    rm: ResourceManager, cluster: Yarn, exclude: Path, include: Path
) -> None:
    include.write_text("elsewhere\n")
    rm.refresh_nodes(0, soon())
    wait_state(rm, State.DECOMMISSIONED)
    recommission(rm, HostLists((ListFile(exclude),), (ListFile(include),)), [node(rm).host])
    assert include.read_text() == f"elsewhere\n{node(rm).host}\n"
    cluster.kill("nm1")
    cluster.start("nm1")
    assert node(rm).state is State.RUNNING


def test_the_procedure_takes_an_idle_node_out_and_in_again(rm: ResourceManager, cluster: Yarn, exclude: Path) -> None:
    assert rm.setting(EXCLUDE_KEY, soon()) == str(exclude)
    lists = HostLists((ListFile(exclude),))
    out = Decommissioning(rm, lists, [node(rm).host], 600, lambda: 0.0)
    out.begin()
    assert exclude.read_text() == EMPTY
    wait_for(lambda: out.poll().done, WAIT_SECONDS, "the end")
    out.finish()
    assert ListFile(exclude).hosts() == {node(rm).host: 600}
    assert exclude.read_text().startswith(EMPTY.partition("</hosts>")[0])
    assert node(rm).state is State.DECOMMISSIONED
    recommission(rm, lists, [node(rm).host])
    assert exclude.read_text() == EMPTY
    cluster.kill("nm1")
    cluster.start("nm1")
    assert {found.state for found in rm.nodes(soon())} == {State.RUNNING}


def test_an_entry_is_the_registered_name_of_a_host_or_its_address(
    rm: ResourceManager, cluster: Yarn, exclude: Path
) -> None:
    name = node(rm).host
    others = [name.upper(), f"{name}.", "127.0.0.2"]
    exclude.write_text(host(",".join(others)))
    rm.refresh_nodes(600, soon())
    assert node(rm).state is State.RUNNING
    assert counted(name, others, addresses_of) == []
    exclude.write_text(host("127.0.0.1"))
    rm.refresh_nodes(600, soon())
    wait_state(rm, State.DECOMMISSIONED)
    assert counted(name, ["127.0.0.1"], addresses_of) == ["127.0.0.1"]
    recommission(rm, HostLists((ListFile(exclude),)), [name])
    assert ListFile(exclude).hosts() == {}
    cluster.kill("nm1")
    cluster.start("nm1")
    assert State.RUNNING in {found.state for found in rm.nodes(soon())}


def test_a_user_without_the_right_is_told_so(rm: ResourceManager, cluster: Yarn) -> None:
    other = client(cluster.rm, "alice")
    with pytest.raises(AccessDeniedError, match="refreshNodes"):
        other.refresh_nodes(0, soon())
    other.close()


def test_one_that_stands_by_reads_no_lists(standby: Manager) -> None:
    rm = client(standby)
    with pytest.raises(StandbyError):
        rm.refresh_nodes(0, soon())
    rm.close()
