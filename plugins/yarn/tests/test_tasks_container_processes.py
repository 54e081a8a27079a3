from pathlib import Path

import pytest
from plugins.yarn.tests.proc_fakes import (
    NM,
    NM_PID,
    NODE_ID,
    NOW_TICKS,
    YOUNG_TICKS,
    FakeProc,
    container,
    environment_of,
)

from fallow_hookspecs import Process
from fallow_yarn.nm.procfs import read_environment
from fallow_yarn.tasks import container_processes
from fallow_yarn.tasks.container_processes import ContainerProcesses

ONE, TWO = container(1), container(2)
ALICE, BOB = 1001, 1002
OLD_TICKS = NOW_TICKS - 100_000


class Host:
    """A /proc, and what is found in it."""

    def __init__(self, root: Path) -> None:
        self.proc = FakeProc(root)
        self.containers = ContainerProcesses(root, lambda: NOW_TICKS)

    def members(self, *daemons: Process) -> dict[str, list[int]]:
        found = self.containers.find(daemons or (NM,))
        return {container_id: [stat.pid for stat in entry.members] for container_id, entry in found.items()}

    def roots(self) -> dict[str, list[int]]:
        return {i: [stat.pid for stat in entry.roots] for i, entry in self.containers.find((NM,)).items()}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_all_below_a_launched_root_and_all_of_its_session_are_the_containers(host: Host) -> None:
    host.proc.launch(601, ONE)
    host.proc.add(602, parent=601, session=601)
    host.proc.add(603, parent=602, session=601)  # without an environment: `env -i`
    host.proc.add(604, parent=1, session=601)  # its parent has ended
    host.proc.add(605, parent=603, start=YOUNG_TICKS + 1)  # in a session of its own
    host.proc.add(606, parent=605, session=605, start=YOUNG_TICKS + 2)
    assert host.members() == {ONE: [601, 602, 603, 604, 605, 606]}
    assert host.roots() == {ONE: [601, 604]}


def test_a_launcher_and_the_node_manager_are_no_part_of_a_container(host: Host) -> None:
    host.proc.launch(601, ONE)
    host.proc.launch(611, TWO)
    assert host.members() == {ONE: [601], TWO: [611]}


@pytest.mark.parametrize(
    "command",
    [
        ["bash", f"/local/nmPrivate/app/{ONE}/default_container_executor.sh"],
        [
            "/opt/container-executor",
            "al",
            "yarn",
            "1",
            "application_1700000000000_0001",
            ONE,
            f"/work/{ONE}",
            "cgroups=none",
        ],
        ["nice", "-n", "5", "/opt/container-executor", "al", "yarn", "1", "app", ONE],
    ],
)
def test_a_root_is_known_by_its_launcher_alone(host: Host, command: list[str]) -> None:
    host.proc.add(600, parent=NM_PID, session=NM_PID, command=command)
    host.proc.add(601, parent=600, user=ALICE)  # its environment cannot be read, or names nothing yet
    assert host.members() == {ONE: [601]}


@pytest.mark.parametrize(
    "command", [["bash", "/work/x.sh"], ["docker", "inspect", ONE, TWO], ["bash", f"/logs/{ONE}x/a", f"/logs/x{ONE}/a"]]
)
def test_a_child_of_the_node_manager_that_names_no_container_or_two_is_no_launcher(
    host: Host, command: list[str]
) -> None:
    host.proc.add(600, parent=NM_PID, session=NM_PID, command=command)
    host.proc.add(601, parent=600)
    assert host.members() == {}


@pytest.mark.parametrize(
    "cgroups",
    [
        [f"4:memory:/hadoop-yarn/{ONE}", f"1:cpu,cpuacct:/hadoop-yarn/{ONE}", "0::/"],
        [f"0::/kubepods/besteffort/hadoop-yarn/{ONE}"],
        [f"0::/hadoop-yarn/{ONE}/docker-abc"],
        [f"0::/../../hadoop-yarn/{ONE}"],
    ],
)
def test_a_root_is_known_by_its_cgroup_wherever_it_is(host: Host, cgroups: list[str]) -> None:
    host.proc.add(700, parent=400, cgroups=cgroups)
    host.proc.add(701, parent=700, session=700)
    assert host.members() == {ONE: [700, 701]}


@pytest.mark.parametrize(
    "cgroup", ["0::/", f"0::/hadoop-yarn/x{ONE}", f"0::/hadoop-yarn/{ONE}.scope", "0::/container_1"]
)
def test_a_cgroup_that_is_not_named_by_a_container_says_nothing(host: Host, cgroup: str) -> None:
    host.proc.add(700, parent=400, cgroups=[cgroup])
    assert host.members() == {}


def test_an_orphan_is_known_by_its_environment(host: Host) -> None:
    host.proc.add(700, parent=1, environment=environment_of(ONE))
    host.proc.add(701, parent=700, session=700)
    assert host.members() == {ONE: [700, 701]}


def test_a_root_below_the_orphaned_launcher_of_a_dead_node_manager_is_known_by_its_environment(host: Host) -> None:
    host.proc.launch(601, ONE)
    host.proc.end(NM_PID)
    host.proc.orphan(600)
    assert host.members() == {ONE: [601]}


def test_launchers_of_a_dead_node_manager_are_told_apart_although_they_share_its_session(host: Host) -> None:
    host.proc.launch(601, ONE)
    host.proc.launch(611, TWO)
    host.proc.end(NM_PID)
    host.proc.orphan(600)
    host.proc.orphan(610)
    assert host.members() == {ONE: [601], TWO: [611]}


def test_a_launcher_of_a_node_manager_that_ended_meanwhile_is_no_part_of_its_container(host: Host) -> None:
    host.proc.launch(601, ONE)
    host.members()
    host.proc.end(NM_PID)
    host.proc.orphan(600)
    assert host.members() == {ONE: [601]}


@pytest.mark.parametrize(
    "proof",
    [{"environment": environment_of(ONE)}, {"cgroups": [f"0::/hadoop-yarn/{ONE}"]}],
    ids=["environment", "cgroup"],
)
def test_what_forks_twice_in_a_session_whose_leader_ended_is_still_its_containers(
    host: Host, proof: dict[str, object]
) -> None:
    host.proc.add(702, parent=1, session=701, **proof)  # type: ignore[arg-type]
    host.proc.add(703, parent=702, session=701, start=YOUNG_TICKS + 1)
    assert host.members() == {ONE: [702, 703]}


def test_what_an_engine_runs_with_a_containers_environment_is_the_containers(host: Host) -> None:
    host.proc.launch(601, ONE, user=ALICE)
    host.proc.add(800, parent=1, name="containerd-shim")
    host.proc.add(801, parent=800, environment=environment_of(ONE), user=BOB)
    assert host.members() == {ONE: [601, 801]}


def test_what_another_users_orphan_runs_with_a_containers_environment_is_not(host: Host) -> None:
    host.proc.launch(601, ONE, user=ALICE)
    host.proc.add(800, parent=1, user=BOB, name="containerd-shim")
    host.proc.add(801, parent=800, environment=environment_of(ONE), user=BOB)
    assert host.members() == {ONE: [601]}


def test_a_process_left_by_a_service_is_no_containers(host: Host) -> None:
    host.proc.add(702, parent=1, session=701)
    assert host.members() == {}


def test_a_daemon_of_a_container_that_its_node_manager_adopted_is_found(host: Host) -> None:
    host.proc.add(700, parent=NM_PID, environment=environment_of(ONE))
    assert host.members() == {ONE: [700]}


def test_an_orphan_may_be_adopted_by_an_ancestor_of_its_node_manager(host: Host) -> None:
    host.proc.add(450, start=950)
    host.proc.orphan(NM_PID, parent=450)
    host.proc.add(700, parent=450, environment=environment_of(ONE))
    assert host.members() == {ONE: [700]}


def test_somebody_who_looks_at_a_container_is_no_part_of_it(host: Host) -> None:
    host.proc.add(700, parent=400, session=400, command=["tail", "-f", f"/logs/{ONE}/stdout"])
    host.proc.add(701, parent=400, command=["tail", "-f", f"/logs/{ONE}/stdout"])
    host.proc.add(702, parent=1, command=["nohup", "tail", "-f", f"/logs/{ONE}/stdout"])
    host.proc.add(703, parent=400, environment=environment_of(ONE))  # a shell with the environment of a container
    host.proc.add(704, parent=1, session=400, environment=environment_of(ONE))
    host.proc.add(705, parent=703, session=703)
    assert host.members() == {}


@pytest.mark.parametrize("value", ["", "x", f"{ONE}x", f"x{ONE}", "container_1_1_1_1", f"{ONE}\n"])
def test_an_environment_that_names_no_container_says_nothing(host: Host, value: str) -> None:
    host.proc.add(700, parent=1, environment={"CONTAINER_ID": value, "XCONTAINER_ID": ONE})
    assert host.members() == {}


def test_a_process_below_a_container_cannot_say_that_it_is_anothers(host: Host) -> None:
    host.proc.launch(601, ONE)
    host.proc.add(602, parent=601, start=YOUNG_TICKS + 1, environment=environment_of(TWO))
    host.proc.add(603, parent=1, session=601, environment=environment_of(TWO))
    assert host.members() == {ONE: [601, 603, 602]}


def test_another_users_process_cannot_write_itself_into_a_container(host: Host) -> None:
    host.proc.launch(601, ONE, user=BOB)
    host.members()
    host.proc.add(700, parent=1, user=ALICE, environment=environment_of(ONE))
    host.proc.add(701, parent=1, user=ALICE, cgroups=[f"0::/user.slice/{ONE}"])
    host.proc.add(702, parent=1, user=BOB, environment=environment_of(ONE))
    assert host.members() == {ONE: [601, 702]}


def test_who_passed_for_a_container_that_was_not_there_yet_is_unmasked_when_it_is_launched(host: Host) -> None:
    host.proc.add(700, parent=1, user=ALICE, environment=environment_of(ONE))
    host.proc.add(701, parent=700, session=700, user=ALICE)
    assert host.members() == {ONE: [700, 701]}
    host.proc.launch(801, ONE, user=BOB)
    assert host.members() == {ONE: [801]}
    assert host.members() == {ONE: [801]}


def test_a_second_root_by_a_launcher_does_not_put_the_first_in_doubt(host: Host) -> None:
    """A container that is launched again; its root changes its user only when it has been seen."""
    host.proc.launch(601, ONE, user=BOB)
    host.members()
    host.proc.launch(801, ONE, user=0)
    assert host.members() == {ONE: [601, 801]}


def test_what_was_shown_stays_when_all_evidence_is_gone(host: Host) -> None:
    host.proc.launch(601, ONE)
    host.proc.add(602, parent=601, session=601)
    host.proc.add(603, parent=602, session=601)
    assert host.members() == {ONE: [601, 602, 603]}
    host.proc.end(NM_PID, 600, 601)
    for pid in (602, 603):
        host.proc.orphan(pid)
    assert host.members() == {ONE: [602, 603]}
    host.proc.add(604, parent=603, session=601)
    assert host.members() == {ONE: [602, 603, 604]}


def test_a_pid_that_was_reused_is_another_process(host: Host) -> None:
    host.proc.launch(601, ONE)
    host.proc.add(602, parent=601, session=601)
    assert host.members() == {ONE: [601, 602]}
    host.proc.end(600, 601)
    host.proc.orphan(602)
    host.proc.add(601, parent=400, start=YOUNG_TICKS + 50)  # somebody else, with the number of the session
    host.proc.add(603, parent=601, session=601, start=YOUNG_TICKS + 51)
    assert host.members() == {ONE: [602]}


def test_a_child_that_is_older_than_its_parent_is_not_its_child(host: Host) -> None:
    host.proc.launch(601, ONE)
    host.proc.add(602, parent=601, start=OLD_TICKS)  # read when pid 601 was still another's
    assert host.members() == {ONE: [601]}


def test_processes_that_have_ended_and_wait_for_their_parents_are_none(host: Host) -> None:
    host.proc.launch(601, ONE)
    host.proc.add(602, parent=601, session=601)
    assert host.members() == {ONE: [601, 602]}
    host.proc.add(601, parent=600, state="Z")
    assert host.members() == {ONE: [602]}
    assert host.roots() == {ONE: [602]}
    host.proc.add(602, parent=1, session=601, state="X")
    assert host.members() == {}


def test_sessions_of_another_namespace_bind_nobody(host: Host) -> None:
    host.proc.launch(601, ONE)
    host.proc.add(602, parent=601, session=0)
    host.proc.add(603, parent=1, session=0)
    assert host.members() == {ONE: [601, 602]}


def test_a_node_manager_that_a_container_started_is_no_part_of_it_nor_are_its_launchers(host: Host) -> None:
    host.proc.add(450, parent=1, start=950, environment=environment_of(ONE))
    host.proc.add(NM_PID, parent=450, session=450, start=NM.start_ticks, command=["java"])
    host.proc.add(600, parent=NM_PID, session=450, command=["bash", f"/{TWO}/x"])
    host.proc.add(601, parent=600)
    assert host.members() == {ONE: [450], TWO: [601]}


def test_a_daemon_that_the_node_manager_adopted_launches_nothing(host: Host) -> None:
    host.proc.add(700, parent=NM_PID, environment=environment_of(ONE), command=["tail", f"/logs/{TWO}"])
    host.proc.add(701, parent=700, start=YOUNG_TICKS + 1)
    assert host.members() == {ONE: [700, 701]}


def test_a_launcher_that_is_younger_than_the_root_is_not_its_launcher(host: Host) -> None:
    host.proc.add(600, parent=NM_PID, session=NM_PID, command=["bash", f"/{ONE}/x"])
    host.proc.add(601, parent=600, start=YOUNG_TICKS - 1)  # read when pid 600 was still another's
    assert host.members() == {}


def test_two_node_managers_have_their_own_launchers(host: Host) -> None:
    second = host.proc.add(550, parent=1, start=1100)
    host.proc.launch(601, ONE)
    host.proc.add(610, parent=550, session=550, command=["bash", f"/{TWO}/x"])
    host.proc.add(611, parent=610)
    assert host.members(NM, second) == {ONE: [601], TWO: [611]}


def test_what_is_proven_or_settled_is_not_read_again(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.proc.launch(601, ONE)
    host.proc.add(700, parent=1, start=OLD_TICKS)
    host.proc.add(701, parent=1)
    read: list[int] = []

    def reading(root: Path, pid: int) -> object:
        read.append(pid)
        return read_environment(root, pid)

    monkeypatch.setattr(container_processes, "read_environment", reading)
    host.members()
    assert {700, 701} <= set(read)
    assert 601 not in read
    read.clear()
    host.members()
    assert read == [701]  # young: it may still become another program


def test_the_same_processes_give_the_same_result_until_one_changes(host: Host) -> None:
    host.proc.launch(601, ONE)
    host.proc.end(400)
    host.proc.add(400, start=OLD_TICKS)
    host.proc.add(1, parent=0, start=1)
    first = host.containers.find((NM,))
    assert host.containers.find((NM,)) is first
    assert host.containers.found is first
    host.proc.add(602, parent=601, session=601)
    assert host.members() == {ONE: [601, 602]}


def test_a_settled_stranger_is_looked_at_again_when_there_is_another_node_manager(host: Host) -> None:
    host.proc.add(600, parent=NM_PID, session=NM_PID, command=["bash", f"/{ONE}/x"], start=OLD_TICKS)
    host.proc.add(601, parent=600, start=OLD_TICKS)
    assert host.containers.find(()) == {}
    assert host.members() == {ONE: [601]}


def test_a_very_deep_tree_is_no_trouble(host: Host) -> None:
    host.proc.launch(601, ONE)
    for pid in range(1000, 3000):
        host.proc.add(pid, parent=pid - 1 if pid > 1000 else 601, session=601)
    assert len(host.members()[ONE]) == 2001


def test_processes_that_are_garbled_or_gone_are_passed_over(host: Host) -> None:
    host.proc.launch(601, ONE)
    for pid, stat in ((700, ""), (701, "701 (sh) S 1"), (702, "702 sh")):
        host.proc.add(pid)
        (host.proc.root / str(pid) / "stat").write_text(stat)
    (host.proc.root / "703").mkdir()
    (host.proc.root / "self").mkdir()
    assert host.members() == {ONE: [601]}


def test_the_node_manager_of_a_container_is_told_by_its_environment(host: Host) -> None:
    host.proc.add(700, parent=1, environment=environment_of(ONE))
    found = read_environment(host.proc.root, 700)
    assert found is not None
    assert (found.container_id, found.node_id) == (ONE, NODE_ID)
    host.proc.add(701, parent=1, environment={"CONTAINER_ID": ONE, "NM_PORT": "1"})
    found = read_environment(host.proc.root, 701)
    assert found is not None
    assert found.node_id == ""
