from dataclasses import replace
from pathlib import Path

import pytest
from core.tests.fake_agent import CLUSTER, POLICY, Host, child, identity, key, messages, task
from core.tests.qos_values import GIB

from fallow_core.ledger.rows import RowKey
from fallow_core.model.qos_policy import StrategyMode
from fallow_core.planner.observations import task_sums
from fallow_core.qos.relief import NodeRelief
from fallow_core.state import durable
from fallow_core.state.terminations_file import FILE_NAME, TerminationsFile
from fallow_hookspecs import Application, Gang, KillResult, Process, Resources, TaskState

ROW = RowKey("n1", CLUSTER, "nm")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Host:
    """A node with 100 GiB of memory, whose mark is at 90 % and whose lower threshold is at 85 %."""
    caplog.set_level("INFO", "fallow.agent")
    host = Host(tmp_path, monkeypatch)
    host.add("small", gib=1)
    host.add("big", gib=8)
    return host


def on_disk(host: Host) -> dict[str, str]:
    """The terminations as another process would find them."""
    terminations, lost = TerminationsFile(host.state_dir, boot_id=host.boot_id).load(host.now)
    assert lost == ""
    return {termination.key.task_id: str(termination.phase) for termination in terminations.active}


# What is seen


def test_what_tasks_use_is_measured_by_their_processes(host: Host) -> None:
    host.tick()
    used = {task.task.id: task.usage.memory_bytes for task in host.evictor.tasks if task.usage is not None}
    assert used == {"small": GIB, "big": 8 * GIB}
    assert {key: sums.requested for key, sums in task_sums(host.evictor.tasks).items()} == {
        ROW: Resources(2000, 2 * GIB)
    }


def test_with_an_incomplete_list_a_task_counts_as_long_as_a_process_of_it_lives(host: Host) -> None:
    host.tasks["localizing"] = task("localizing", state=TaskState.STARTING)
    host.complete = False
    host.tick()
    assert {task.task.id for task in host.evictor.tasks} == {"small", "big", "localizing"}
    assert host.evictor.incomplete == {CLUSTER: "the NodeManager does not answer"}
    host.exits("big")
    host.tick(1)
    assert {task.task.id for task in host.evictor.tasks} == {"small", "localizing"}
    assert {key: sums.requested for key, sums in task_sums(host.evictor.tasks).items()} == {
        ROW: Resources(2000, 2 * GIB)
    }
    host.complete = True
    host.tick(1)
    assert {task.task.id for task in host.evictor.tasks} == {"small", "big", "localizing"}


# Pressure, from the need to the end


def test_pressure_chooses_orders_forces_after_the_grace_and_the_task_is_seen_gone(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.fill(89)
    host.run(3)
    assert host.killer.orders == []
    host.fill(91)
    host.tick(1)
    assert host.killer.given == [(("big",), False)]
    assert host.phases() == {"big": "graceful"}
    host.run(29)
    assert host.killer.given == [(("big",), False)]
    host.tick(1)
    assert host.killer.given == [(("big",), False), (("big",), True)]
    assert host.phases() == {"big": "forced"}
    host.remove("big")
    host.tick(1)
    assert host.phases() == {}
    assert host.evictor.terminated == {(CLUSTER, "memory_evict"): 1}
    ((at, termination),) = host.evictor.finished
    assert (at, termination.key) == (host.now, key("big"))
    assert messages(caplog.records, "task_gone") == [f"task_gone cluster={CLUSTER} task=big"]
    host.run(60)
    assert len(host.killer.orders) == 2


def test_a_task_that_heeds_the_order_is_not_forced(host: Host) -> None:
    host.fill(91)
    host.tick()
    host.remove("big")
    host.run(60)
    assert host.killer.given == [(("big",), False)]


def test_a_task_that_outlives_force_is_told_and_another_one_is_terminated(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.add("next", gib=8, age=5000.0)
    host.fill(91)
    host.run(41)
    assert host.phases() == {"big": "failed", "next": "graceful"}
    assert messages(caplog.records, "task_not_terminated")[0].startswith(
        f"task_not_terminated cluster={CLUSTER} task=big"
    )


def test_gone_means_that_no_process_is_left_although_it_is_not_listed(host: Host) -> None:
    host.fill(91)
    host.tick()
    orphan = host.tasks["big"].processes
    del host.tasks["big"]
    host.tick(1)
    assert host.phases() == {"big": "graceful"}
    host.stats.pop(orphan[0].pid)
    host.tick(1)
    assert host.phases() == {}


def test_nothing_is_concluded_to_be_gone_from_an_incomplete_list(host: Host) -> None:
    host.fill(91)
    host.tick()
    host.complete = False
    host.remove("big")
    host.tick(1)
    assert host.phases() == {"big": "graceful"}
    host.complete = True
    host.tick(1)
    assert host.phases() == {}


def test_a_plugin_that_does_not_answer_does_not_keep_a_task_alive(host: Host) -> None:
    with child() as process:
        who = identity(process)
        host.add("bigger", gib=20, process=who, age=1.0)
        host.remove("big")
        host.hold()
        host.complete = False
        host.fill(91)
        host.tick()
        assert process.poll() is None
        host.run(5)
        assert process.wait(5) == -15


def test_a_process_that_its_stopped_parent_does_not_wait_for_keeps_no_task_alive(host: Host) -> None:
    host.fill(91)
    host.tick()
    (leader,) = host.tasks.pop("big").processes
    host.stats[leader.pid] = replace(host.stats[leader.pid], ended=True)
    host.tick(1)
    assert host.phases() == {}


def test_who_has_no_access_is_told_and_not_asked_for_ever(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.killer.result, host.killer.reason = KillResult.NO_ACCESS, "it runs as another user"
    host.tasks.pop("small")
    host.fill(91)
    host.run(50)
    assert host.killer.given == [(("big",), False)]
    assert host.phases() == {"big": "failed"}
    (told,) = messages(caplog.records, "task_not_terminated")
    assert "it runs as another user" in told


def test_a_task_that_could_not_be_terminated_is_tried_again_after_the_back_off(host: Host) -> None:
    host.killer.result = KillResult.NO_ACCESS
    host.tasks.pop("small")
    host.fill(91)
    host.run(75)
    assert host.killer.given == [(("big",), False)] * 2
    (termination,) = host.evictor.terminations.active
    assert termination.attempts == 2


def test_an_order_without_an_answer_is_given_again(host: Host) -> None:
    host.killer.result = KillResult.FAILED
    host.fill(91)
    host.run(11)
    assert host.killer.given == [(("big",), False)] * 3


def test_a_second_task_is_terminated_only_for_what_the_first_does_not_free(host: Host) -> None:
    host.fill(91)
    host.run(10)
    assert host.killer.given == [(("big",), False)]
    host.fill(94)
    host.tick(1)
    assert host.killer.given == [(("big",), False), (("small",), False)]


# The file


def test_an_order_does_not_wait_for_the_disk_and_its_termination_is_written_right_after_it(host: Host) -> None:
    found: list[dict[str, str]] = []
    host.killer.seen = lambda order: found.append(on_disk(host))
    host.fill(91)
    host.tick()
    assert on_disk(host) == {"big": "graceful"}
    host.run(32)
    assert found == [{}, {"big": "graceful"}]
    assert on_disk(host) == {"big": "forced"}


def test_a_task_whose_order_was_not_written_before_a_kill_loses_nothing_of_its_grace(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.fill(91)
    monkeypatch.setattr(host.evictor, "save", lambda: None)
    host.tick()
    host.start()  # killed between the order and the write
    host.run(29)
    assert set(host.killer.given) == {(("big",), False)}
    host.run(2)
    assert host.killer.given[-1] == (("big",), True)


def test_what_has_gone_is_forgotten_on_the_disk_as_well(host: Host) -> None:
    host.fill(91)
    host.tick()
    host.remove("big")
    host.tick(1)
    assert on_disk(host) == {}


def test_an_answer_survives_too(host: Host) -> None:
    host.fill(91)
    host.run(2)
    host.start()
    host.run(20)
    assert host.killer.given == [(("big",), False)]


def test_nothing_is_written_while_nothing_changes(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.fill(91)
    host.run(3)

    def fail(*_: object) -> None:
        raise AssertionError("nothing has changed")

    monkeypatch.setattr(durable, "write", fail)
    host.run(10)


def test_a_disk_that_cannot_be_written_is_told_once_and_the_node_is_protected_all_the_same(
    host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    host.fill(91)
    with monkeypatch.context() as patch:
        patch.setattr(durable, "write", full)
        host.run(5)
    assert host.killer.given == [(("big",), False)]
    assert host.evictor.save_error == f"cannot write {host.state_dir / FILE_NAME}: No space left on device"
    assert len(messages(caplog.records, "terminations_not_saved")) == 1
    host.tick(1)
    assert host.evictor.save_error == ""
    assert on_disk(host) == {"big": "graceful"}


# A kill of Fallow in the middle


def test_after_a_kill_the_grace_goes_on(host: Host) -> None:
    host.fill(91)
    host.run(20)
    host.start()
    host.run(10)
    assert host.killer.given == [(("big",), False)]
    host.tick(1)
    assert host.killer.given == [(("big",), False), (("big",), True)]


def test_a_grace_that_passed_meanwhile_is_over_although_the_plugin_takes_time_to_come(host: Host) -> None:
    host.fill(91)
    host.run(3)
    host.now += 60
    host.start()
    built, host.instances = host.instances, {}
    host.run(3)
    assert host.phases() == {"big": "forced"}
    host.instances = built
    host.run(5)
    assert host.killer.given == [(("big",), False), (("big",), True)]


def test_after_a_restart_of_the_host_nothing_is_followed(host: Host) -> None:
    host.fill(91)
    host.tick()
    host.boot_id = "another"
    agent = host.start()
    assert (agent.terminations.active, agent.load_error) == ((), "")


def test_a_corrupt_file_is_told_and_forgotten(host: Host) -> None:
    (host.state_dir / FILE_NAME).write_text("{")
    agent = host.start()
    assert agent.terminations.active == ()
    assert "terminations under way are forgotten" in agent.load_error
    host.fill(91)
    host.tick()
    assert on_disk(host) == {"big": "graceful"}


# A cluster that was restored

RESTORED = frozenset({CLUSTER})


def test_nothing_of_a_restored_cluster_is_terminated_under_any_pressure_and_it_is_said_why(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.add("am", gib=2, master=True)
    host.restored = RESTORED
    for percent in (91, 96, 100):
        host.fill(percent)
        host.run(45)
    assert host.killer.orders == []
    assert host.phases() == on_disk(host) == {}
    assert host.evictor.chosen == {"memory_evict": 0}
    assert host.evictor.shortfalls["memory_evict"].spared() == {"alpha/a is restored": 3}
    (told,) = messages(caplog.records, "pressure_not_relieved")
    assert 'spared="3 tasks: alpha/a is restored"' in told
    assert messages(caplog.records, "tasks_terminate") == []
    host.fill(80)
    host.tick(1)
    assert host.evictor.shortfalls == {}


def test_switched_to_anything_else_its_tasks_are_terminated_at_once(host: Host) -> None:
    host.restored = RESTORED
    host.fill(91)
    host.run(10)
    host.restored = frozenset()
    host.tick(0.1)
    assert host.killer.given == [(("big",), False)]
    assert host.evictor.shortfalls == {}


def test_a_restore_during_a_grace_forces_nothing_and_the_task_may_go_on(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.fill(91)
    host.run(10)
    host.restored = RESTORED
    host.run(5)
    assert host.phases() == {"big": "graceful"}  # it may still end: nobody else has to
    host.run(100)
    assert host.killer.given == [(("big",), False)]
    assert host.phases() == {"big": "failed"}
    assert messages(caplog.records, "termination_withdrawn") == [f"termination_withdrawn cluster={CLUSTER} task=big"]


def test_after_a_restart_a_restored_cluster_gets_no_order_that_an_earlier_process_decided(host: Host) -> None:
    host.killer.result = KillResult.FAILED  # each order would be repeated
    host.fill(91)
    host.run(2)
    orders = len(host.killer.orders)
    host.start()
    host.restored = RESTORED
    host.run(20)
    host.start()
    host.run(100)
    assert len(host.killer.orders) == orders


def test_a_task_that_was_to_end_before_a_restore_has_its_whole_grace_again_after_it(host: Host) -> None:
    host.fill(91)
    host.run(10)
    host.restored = RESTORED
    host.run(25)
    host.restored = frozenset()
    host.run(30)
    assert host.killer.given == [(("big",), False)] * 2
    host.run(2)
    assert host.killer.given[2:] == [(("big",), True)]


def test_core_signals_nobody_for_a_plugin_that_hangs_once_its_cluster_is_restored(host: Host) -> None:
    with child() as process:
        host.add("bigger", gib=20, process=identity(process), age=1.0)
        host.remove("big")
        host.hold()
        host.fill(91)
        host.run(2)
        host.restored = RESTORED
        host.run(20)
        assert process.poll() is None
        host.killer.fails = ConnectionError("the NodeManager is gone")
        host.release()
        host.run(5)
        assert process.poll() is None


# After a start


def test_until_throttling_had_its_time_only_the_critical_threshold_terminates(host: Host) -> None:
    host.evictor.relief = NodeRelief()
    host.fill(94)
    host.run(60)
    assert host.killer.orders == []
    host.evictor.relief = NodeRelief(enforced_since=host.now)
    host.run(4)
    assert host.killer.orders == []
    host.run(1)
    assert [force for _, force in host.killer.given] == [False]


def test_the_critical_threshold_terminates_at_once_after_a_start(host: Host) -> None:
    host.evictor.relief = NodeRelief()
    host.fill(95)
    host.tick()
    assert len(host.killer.orders) == 1


def test_masters_are_left_until_the_critical_threshold_when_all_together_are_too_small(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.add("am", gib=0.5, master=True)
    host.remove("small")
    host.fill(94)  # 9 GiB are to be freed, and all tasks have 8.5
    host.run(3)
    assert host.killer.given == [(("big",), False)]
    assert host.evictor.shortfalls["memory_evict"].shortfall > 0
    host.run(40)
    assert {name for ids, _ in host.killer.given for name in ids} == {"big"}
    assert len(messages(caplog.records, "pressure_not_relieved")) == 1
    host.fill(95)
    host.run(5)
    assert host.phases()["am"] == "graceful"


# Observing


def test_an_observing_strategy_gives_no_orders_and_tells_each_termination_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "fallow.agent")
    observes = replace(POLICY.memory_evict, mode=StrategyMode.OBSERVE)
    host = Host(tmp_path, monkeypatch, replace(POLICY, memory_evict=observes))
    for name in ("t1", "t2"):
        host.add(name, gib=5)
    host.fill(91)
    host.run(60)
    assert host.killer.orders == []
    assert host.phases() == on_disk(host) == {}
    told = messages(caplog.records, "tasks_would_terminate")
    assert len(told) == 1
    assert "tasks=t1,t2" in told[0]
    ((decided,),) = [host.evictor.decisions]
    assert not decided.choice.need.enforce


def test_a_need_that_nobody_can_meet_is_told_once_and_leaves_the_older_decisions_to_be_seen(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.fill(99)
    host.run(40)
    victims = [[victim.task.task.id for victim in decided.choice.victims] for decided in host.evictor.decisions]
    assert sorted(victims[0]) == ["big", "small"]
    assert victims[1:] == [[]]
    assert host.evictor.decisions[-1].at > host.evictor.decisions[0].at + 20
    assert len(messages(caplog.records, "tasks_terminate")) == 1
    (told,) = messages(caplog.records, "pressure_not_relieved")
    assert f"short_of={5 * GIB}" in told


# The harm that is shown


def test_a_task_that_comes_while_memory_is_short_is_terminated_at_once_although_nobody_could_before(host: Host) -> None:
    host.remove("big")
    host.remove("small")
    host.fill(95)
    host.tick()
    host.add("late", gib=2)
    host.tick(0.1)  # far less than the cool-down
    assert list(host.phases()) == ["late"]


def test_the_harm_shown_is_that_used_for_the_choice(host: Host) -> None:
    host.applications = (Application(id="vip", name="v", user="u", queue="q", kind="x", priority=9),)
    host.add("important", application_id="vip", gib=8)
    host.add("unknown", gib=1, age=None)
    host.add(
        "on its way",
        age=100_000.0,
        application_id="old",
        state=TaskState.TERMINATING,
        gang=Gang(id="g", minimum=2, members=3),
    )
    for name in ("left 1", "left 2"):
        host.add(name, application_id="old", gang=Gang(id="g", minimum=2, members=3))
    host.tick()
    shown = host.evictor.harms(host.now)
    host.fill(91)
    host.tick()
    (decided,) = host.evictor.decisions
    chosen = {c.task.key: c.harm for c in (*decided.choice.victims, *decided.choice.runners_up)}
    assert set(chosen) == {key(name) for name in ("small", "big", "important", "unknown", "left 1", "left 2")}
    assert {name: shown[name] for name in chosen} == chosen
    assert key("on its way") in shown


def test_an_earlier_termination_of_its_application_makes_the_next_one_dearer(host: Host) -> None:
    host.tick()
    before = host.evictor.harms(host.now)[key("small")].charge
    host.fill(91)
    host.tick()
    assert host.evictor.harms(host.now)[key("small")].charge == 2 * before


def test_members_are_the_processes_of_the_newest_pass(host: Host) -> None:
    leader = host.tasks["big"].processes[0]
    host.stats[9_000_000] = replace(host.stats[leader.pid], pid=9_000_000, parent_pid=leader.pid)
    host.tick()
    members = {name: set(found) for name, found in host.evictor.members.items()}
    assert members == {
        key("big"): {leader, Process(9_000_000, leader.start_ticks)},
        key("small"): {*host.tasks["small"].processes},
    }
