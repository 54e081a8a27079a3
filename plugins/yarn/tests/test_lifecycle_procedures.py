from collections.abc import Callable
from pathlib import Path

import pytest
from plugins.yarn.tests.lifecycle_fakes import FakeManager
from plugins.yarn.tests.yarn_fakes import Clock

from fallow_yarn.errors import AccessDeniedError, UnreachableError
from fallow_yarn.lifecycle.decommissioning import MOST_IGNORED, Decommissioning
from fallow_yarn.lifecycle.host_lookup import hosts_of
from fallow_yarn.lifecycle.list_file import ListFile, ListFileError
from fallow_yarn.lifecycle.lists import HostLists, LifecycleError
from fallow_yarn.lifecycle.recommissioning import recommission
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.nodes import State

GRACE_SECONDS = 600


TEXT = "# ours\nold\n"


@pytest.fixture
def file(tmp_path: Path) -> ListFile:
    path = tmp_path / "exclude"
    path.write_text(TEXT)
    return ListFile(path)


@pytest.fixture
def manager(file: ListFile) -> FakeManager:
    return FakeManager(file, n1=State.RUNNING, n2=State.RUNNING)


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.now = 0.0
    return clock


@pytest.fixture
def out(manager: FakeManager, file: ListFile, clock: Clock) -> Decommissioning:
    return Decommissioning(manager, HostLists((file,)), ["n1"], GRACE_SECONDS, clock)


def test_the_host_is_in_the_file_only_while_the_resource_manager_reads_it(
    out: Decommissioning, manager: FakeManager, file: ListFile
) -> None:
    out.begin()
    assert (manager.hosts["n1"], manager.graces["n1"]) == (State.DECOMMISSIONING, GRACE_SECONDS)
    assert manager.hosts["n2"] is State.RUNNING
    assert file.read() == TEXT
    assert not out.poll().done
    manager.hosts["n1"] = State.DECOMMISSIONED
    assert out.poll().done
    out.finish()
    assert file.read() == TEXT + "n1\n"


def test_a_node_that_is_smaller_than_what_runs_there_gets_that_size_first(
    out: Decommissioning, manager: FakeManager
) -> None:
    manager.used = {"n1": Size(0, 3), "n2": Size(5, 5)}
    out.begin()
    assert manager.updates == [("n1:1", Size(1, 3))]
    assert manager.hosts["n1"] is State.DECOMMISSIONING


def test_one_that_became_active_meanwhile_is_told_what_is_left(
    out: Decommissioning, manager: FakeManager, file: ListFile, clock: Clock
) -> None:
    out.begin()
    clock.now = 250.5
    manager.hosts["n1"] = State.RUNNING
    progress = out.poll()
    assert progress.told_again
    assert not progress.done
    assert manager.refreshed == [GRACE_SECONDS, 350]
    assert file.read() == TEXT
    clock.now = 1000
    manager.hosts["n1"] = State.RUNNING
    out.poll()
    assert manager.refreshed[-1] == 0


def test_a_host_that_was_excluded_before_stays_so(out: Decommissioning, file: ListFile) -> None:
    file.path.write_text(TEXT + "n1 # broken\n")
    out.begin()
    out.finish()
    assert file.read() == TEXT + "n1 # broken\n"


def test_a_refusal_leaves_the_file_as_it_was(out: Decommissioning, manager: FakeManager, file: ListFile) -> None:
    manager.errors = [None, None, AccessDeniedError("no")]
    with pytest.raises(AccessDeniedError):
        out.begin()
    assert file.read() == TEXT
    assert manager.refreshed == []


def test_who_has_no_right_changes_nothing(out: Decommissioning, manager: FakeManager, file: ListFile) -> None:
    before = file.path.stat().st_ino
    manager.errors = [AccessDeniedError("no")]
    with pytest.raises(AccessDeniedError):
        out.begin()
    assert file.path.stat().st_ino == before


def test_of_two_files_both_are_as_before_if_one_cannot_be_written(
    manager: FakeManager, file: ListFile, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ListFile(tmp_path / "other")
    other.path.write_text("n1\n")
    out = Decommissioning(manager, HostLists((file, other)), ["n1", "n2"], GRACE_SECONDS, clock)

    def full(_edit: Callable[[str], str]) -> bool:
        raise ListFileError("no space")

    monkeypatch.setattr(other, "change", full)
    with pytest.raises(ListFileError):
        out.begin()
    assert file.read() == TEXT
    monkeypatch.undo()
    out.begin()
    assert (file.read(), other.read()) == (TEXT, "n1\n")
    out.finish()
    assert (file.read(), other.read()) == (TEXT + "n1\nn2\n", "n1\nn2\n")


def test_a_resource_manager_that_is_away_is_waited_for(out: Decommissioning, manager: FakeManager) -> None:
    out.begin()
    manager.errors = [UnreachableError("away")]
    assert out.poll().unreachable == "away"
    manager.hosts["n1"] = State.RUNNING
    manager.errors = [None, UnreachableError("away again")]
    assert out.poll().unreachable == "away again"
    assert out.poll().told_again


def test_one_that_reads_another_file_is_told_with_both(
    out: Decommissioning, manager: FakeManager, file: ListFile
) -> None:
    manager.reads_file = False
    out.begin()
    for _ in range(MOST_IGNORED):
        assert out.poll().told_again
    with pytest.raises(LifecycleError, match=rf"it reads exclude file '/etc/hadoop/exclude', and {file} was written"):
        out.poll()
    assert file.read() == TEXT


def test_a_node_that_is_not_registered_may_come_until_the_grace_is_over(
    out: Decommissioning, manager: FakeManager, clock: Clock
) -> None:
    out.begin()
    manager.hosts.clear()
    assert not out.poll().done
    clock.now = GRACE_SECONDS
    assert out.poll().done


def test_a_host_of_the_exclude_file_that_is_listed_as_a_node_is_not_the_node_manager_that_is_to_end(
    out: Decommissioning, manager: FakeManager
) -> None:
    out.begin()
    manager.port, manager.hosts["n1"] = -1, State.DECOMMISSIONED  # as the one lists it that has just become active
    assert not out.poll().done
    assert out.poll().nodes == ()
    manager.port, manager.hosts["n1"] = 1, State.RUNNING
    assert out.poll().told_again
    manager.hosts["n1"] = State.DECOMMISSIONED
    assert out.poll().done


@pytest.mark.parametrize("state", [State.LOST, State.SHUTDOWN, State.DECOMMISSIONED])
def test_a_node_that_is_gone_is_only_kept_out(
    out: Decommissioning, manager: FakeManager, file: ListFile, state: State
) -> None:
    manager.hosts["n1"] = state
    out.begin()
    assert out.poll().done
    out.finish()
    assert file.read() == TEXT + "n1\n"


@pytest.mark.parametrize(
    ("listed", "grace", "why"),
    [
        ("n2\n", 60, "with a grace of 60 s, which would be 600 s then"),
        ("n2\n", -1, "with a grace of -1 s"),
        ("", GRACE_SECONDS, "and is not in .*: it would be in use again"),
    ],
)
def test_what_somebody_else_takes_out_is_left_alone(
    out: Decommissioning, manager: FakeManager, file: ListFile, listed: str, grace: int, why: str
) -> None:
    file.path.write_text(listed)
    manager.hosts["n2"], manager.graces["n2"] = State.DECOMMISSIONING, grace
    with pytest.raises(LifecycleError, match=rf"node n2:1 .*{why}"):
        out.begin()
    assert manager.refreshed == []
    assert file.read() == listed


def test_others_with_the_same_grace_or_one_of_their_own_are_no_hindrance(
    manager: FakeManager, file: ListFile, tmp_path: Path, clock: Clock
) -> None:
    manager.hosts["n2"], manager.graces["n2"] = State.DECOMMISSIONING, GRACE_SECONDS
    file.path.write_text("n2\n")
    Decommissioning(manager, HostLists((file,)), ["n1"], GRACE_SECONDS, clock).begin()
    assert manager.hosts["n2"] is State.DECOMMISSIONING
    manager.file = xml = ListFile(tmp_path / "exclude.xml")
    xml.path.write_text("<hosts><host><name>n2</name><timeout>60</timeout></host></hosts>")
    Decommissioning(manager, HostLists((xml,)), ["n1"], 5, clock).begin()
    assert manager.graces == {"n1": 5, "n2": 60}


def test_recommissioning_takes_out_of_one_list_and_into_the_other(
    manager: FakeManager, file: ListFile, tmp_path: Path
) -> None:
    include = ListFile(tmp_path / "include")
    include.path.write_text("n2\n")
    file.path.write_text(TEXT + "n1\nn2\n")
    manager.hosts |= {"n1": State.DECOMMISSIONED, "n2": State.DECOMMISSIONING}
    manager.graces["n2"] = 77
    recommission(manager, HostLists((file,), (include,)), ["n1"])
    assert file.read() == TEXT + "n2\n"
    assert include.read() == "n2\nn1\n"
    assert manager.refreshed == [77]
    assert manager.hosts == {"n1": State.DECOMMISSIONED, "n2": State.DECOMMISSIONING}
    recommission(manager, HostLists((file,), (include,)), ["n2"])
    assert manager.hosts == {"n1": State.DECOMMISSIONED, "n2": State.RUNNING}
    assert include.read() == "n2\nn1\n"


@pytest.mark.parametrize(
    ("address", "entry"), [("10.0.0.6", "10.0.0.6"), ("2001:db8::6", "2001:db8:0:0:0:0:0:6"), ("10.0.0.6", "n2")]
)
def test_a_node_that_a_file_names_by_its_address_is_in_the_file(
    manager: FakeManager, file: ListFile, clock: Clock, address: str, entry: str
) -> None:
    file.path.write_text(f"{entry}\n")
    manager.resolved = {"n2": entry}
    manager.hosts["n2"], manager.graces["n2"] = State.DECOMMISSIONING, GRACE_SECONDS
    lists = HostLists((file,), addresses_of=lambda host: [address] if host == "n2" else ["10.0.0.5"])
    Decommissioning(manager, lists, ["n1"], GRACE_SECONDS, clock).begin()
    assert manager.hosts == {"n1": State.DECOMMISSIONING, "n2": State.DECOMMISSIONING}
    assert file.read() == f"{entry}\n"
    manager.hosts["n1"] = State.RUNNING
    recommission(manager, lists, ["n2"])
    assert manager.hosts == {"n1": State.RUNNING, "n2": State.RUNNING}
    assert file.read() == ""


def test_a_host_that_was_excluded_by_its_address_before_stays_so(
    manager: FakeManager, file: ListFile, clock: Clock
) -> None:
    file.path.write_text("10.0.0.5\n")
    Decommissioning(manager, HostLists((file,), addresses_of=lambda _: ["10.0.0.5"]), ["n1"], 9, clock).begin()
    assert file.read() == "10.0.0.5\n"


def test_a_host_that_is_included_by_its_address_is_not_included_twice(
    manager: FakeManager, file: ListFile, tmp_path: Path
) -> None:
    include = ListFile(tmp_path / "include")
    include.path.write_text("10.0.0.5\n")
    manager.hosts["n1"] = State.DECOMMISSIONED
    lists = HostLists((file,), (include,), lambda host: ["10.0.0.5"] if host == "n1" else [])
    recommission(manager, lists, ["n1", "n3"])
    assert include.read() == "10.0.0.5\nn3\n"


def test_an_empty_list_of_included_hosts_takes_all_and_stays_empty(
    manager: FakeManager, file: ListFile, tmp_path: Path
) -> None:
    include = ListFile(tmp_path / "include")
    include.path.write_text("# all\n")
    manager.hosts["n1"] = State.DECOMMISSIONED
    recommission(manager, HostLists((file,), (include,)), ["n1"])
    assert include.read() == "# all\n"


def test_nodes_are_said_by_id_or_host_and_a_wrong_one_gets_a_hint(manager: FakeManager) -> None:
    nodes = manager.nodes(Deadline.after(1))
    assert hosts_of(["n1:1", "n2", "n1"], nodes) == ["n1", "n2"]
    assert hosts_of(["gone"], nodes, ["gone"]) == ["gone"]
    with pytest.raises(LifecycleError, match=r"'n1:2'; did you mean 'n1:1'\?"):
        hosts_of(["n1:2"], nodes)
    with pytest.raises(LifecycleError, match="`yarn node -list -all` shows"):
        hosts_of(["elsewhere"], nodes)


def names_of(name: str) -> list[str]:
    return {
        "www": ["n1.", "10.0.0.5"],
        "10.0.0.6": ["other", "N2"],
        "all": ["n1", "n2"],
        "here": ["localhost", "127.0.0.1"],
    }.get(name, [])


@pytest.mark.parametrize(
    ("name", "host"),
    [("N1", "n1"), ("n1.", "n1"), ("N2:1", "n2"), ("www", "n1"), ("10.0.0.6", "n2"), ("10.0.0.9", "10.0.0.9")],
)
def test_a_node_is_found_by_each_spelling_alias_and_address_of_its_host(
    manager: FakeManager, name: str, host: str
) -> None:
    assert hosts_of([name], manager.nodes(Deadline.after(1)), ["10.0.0.6", "10.0.0.9"], names_of) == [host]


def test_a_node_with_an_ipv6_address_is_found_by_each_spelling_of_it(manager: FakeManager) -> None:
    manager.hosts = {"2001:db8:0:0:0:0:0:6": State.RUNNING}
    nodes = manager.nodes(Deadline.after(1))
    for name in ("2001:db8::6", "[2001:DB8::6]", "2001:db8:0:0:0:0:0:6:1", "[2001:db8::6]:1"):
        assert hosts_of([name], nodes, (), names_of) == ["2001:db8:0:0:0:0:0:6"]


def test_a_name_of_several_nodes_or_only_of_the_loopback_is_of_none(manager: FakeManager) -> None:
    manager.hosts["localhost"] = State.RUNNING
    nodes = manager.nodes(Deadline.after(1))
    with pytest.raises(LifecycleError, match="'all' is a name of several nodes: n1, n2; name one of them"):
        hosts_of(["all"], nodes, (), names_of)
    with pytest.raises(LifecycleError, match="does not know node 'here'"):
        hosts_of(["here"], nodes, (), names_of)
