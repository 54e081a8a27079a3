import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core.tests import live_values as values
from core.tests.fake_framework import ENFORCE, Framework, World, size
from core.tests.fake_standalone import FakeHost, config, serving, standalone, until
from core.tests.live_values import GIB, cluster, decision, explanation, moment, node, over, row, status, task

from fallow_core.api.control_socket import ControlServer
from fallow_core.api.encoding import from_json, to_json
from fallow_core.api.status import ProcessStatus, Status, run_status
from fallow_core.cli.live.record import GONE, record
from fallow_core.cli.live.snapshot import Account, Snapshot
from fallow_core.cli.live.view_state import Kind, Ref
from fallow_core.cli.top import source_of
from fallow_core.errors import ControlError, NotRunningError
from fallow_core.ledger.take_back import Started
from fallow_core.model.policy import PublishingMode, PublishingPolicy


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path short enough for a socket."""
    return tmp_path_factory.mktemp("f")


@pytest.fixture
def real(folder: Path) -> Iterator[Snapshot]:
    """What a Fallow says that has lent, and has one cluster that cannot be built."""

    def fail(_: object) -> Any:
        raise FileNotFoundError("/etc/ops.token")

    framework = Framework(time.monotonic, a1=size(8))
    framework.nodes["a1"].allocated = size(2, 1)
    framework.delay_seconds = 0.01
    host = FakeHost()
    host.used = size(4)
    often = replace(ENFORCE, report_interval_seconds=0.1)
    fallow = standalone(config(folder, {"etl": framework, "ops": fail}, publishing=often), host)

    def told() -> bool:
        in_force = [each.in_force for each in fallow.controller.rows]
        return bool(fallow.builds.failed) and in_force == [size(6)]

    until(fallow, told)
    with serving(fallow):
        yield source_of(folder / "control")()
    fallow.close()


# From a real Fallow


def test_a_real_fallow_is_shown_with_its_node_its_account_and_its_problems(real: Snapshot) -> None:
    assert real.mode == "enforce"
    (found,) = real.nodes
    assert found.name == "n1"
    cpu = found.amounts["cpu"]
    assert (cpu.capacity, cpu.online, cpu.batch, cpu.offer, cpu.in_force, cpu.allocated) == (
        10_000,
        4000,
        6000,
        6000,
        6000,
        2000,
    )
    assert found.amounts["memory"].allocated == GIB
    (account,) = real.accounts
    assert (account.name, account.switch, account.state) == ("alpha/etl", "lend", "running")
    assert (account.amounts["cpu"].target, account.amounts["cpu"].in_force) == (6000, 6000)
    assert any("FileNotFoundError: /etc/ops.token" in problem for problem in real.problems)
    assert real.tasks == ()


def test_the_record_of_a_real_node_is_what_explain_says(real: Snapshot) -> None:
    lines = record(real, Ref(Kind.NODE, "n1"))
    assert lines[0].startswith("node n1, publishing mode enforce")
    assert any(line.startswith("  batch   6.00 = 10.00") for line in lines)


def test_the_record_of_a_real_cluster_is_what_status_says_of_it(real: Snapshot) -> None:
    lines = record(real, Ref(Kind.ACCOUNT, "alpha/etl"))
    assert any(line.startswith("cluster alpha/etl   fallow-alpha 1.2   switch lend") for line in lines)
    assert not any(line.startswith("node n1") for line in lines)


def test_in_observe_mode_what_would_be_told_is_a_decision(folder: Path) -> None:
    host = FakeHost()
    host.used = size(4)
    observe = PublishingPolicy(mode=PublishingMode.OBSERVE)
    framework = Framework(time.monotonic, a1=size(8))
    fallow = standalone(config(folder, {"etl": framework}, publishing=observe), host)
    until(fallow, lambda: fallow.controller.state.due)
    with serving(fallow):
        found = source_of(folder / "control")()
    fallow.close()
    assert found.events[0].text.startswith("alpha/etl a1: would be told 6.00 cores, 6.00 GiB: ")
    lines = record(found, Ref(Kind.EVENT, found.events[0].key))
    assert lines[0].startswith("due at once: alpha/etl a1 to CPU, cores: 6.00")


def test_nobody_there_and_another_version_are_clear_errors(folder: Path) -> None:
    with pytest.raises(NotRunningError, match="no Fallow is running"):
        source_of(folder / "control")()
    server = ControlServer(folder / "control", None, lambda peer, question: {"mode": "enforce"})
    with pytest.raises(ControlError, match="of another version: Object missing required field"):
        source_of(folder / "control")()
    server.close()


# What is not known


def test_what_is_not_known_stays_unknown() -> None:
    blind = values.resource(1000, capacity=None, used=None, batch_used=None, batch=None, sample_age_seconds=None)
    found = moment(
        status(node("n1", cpu=blind), clusters=(cluster("yarn/etl", report_age_seconds=None),)), tasks=(task("c1"),)
    )
    (one,) = found.nodes
    assert (one.amounts["cpu"].capacity, one.amounts["cpu"].online, one.amounts["cpu"].offer) == (None, None, None)
    (account,) = found.accounts
    amounts = account.amounts["cpu"]
    assert (amounts.target, amounts.in_force, amounts.allocated, amounts.demand) == (None, None, None, None)
    assert account.state == "no report"


def test_a_sum_with_something_unknown_is_unknown_and_a_node_that_is_gone_does_not_count() -> None:
    rows = (row("n1"), row("n1", in_force=None))
    found = moment(status(node("n1"), clusters=(cluster("a/a", *rows), cluster("b/b", row("n2", state="gone")))))
    amounts = found.nodes[0].amounts["cpu"]
    assert (amounts.offer, amounts.in_force) == (10_000, None)
    assert found.accounts[1].amounts["cpu"].in_force is None
    assert [account.state for account in found.accounts] == ["2 running", "gone"]


# Accounts and tasks


def account_of(demand: int | None, **changes: Any) -> Account:
    explained = explanation("n1", "yarn/etl")
    for name in ("cpu", "memory"):
        explained["resources"][name]["accounts"][0]["demand"] = demand
    found = moment(status(node("n1"), clusters=(cluster("yarn/etl", row("n1"), **changes),)), explained)
    return found.accounts[0]


def test_an_account_without_a_bound_wants_everything() -> None:
    assert account_of(None).amounts["cpu"].demand == math.inf
    assert account_of(700).amounts["cpu"].demand == 700


def test_a_failing_call_is_the_state_of_a_cluster_and_a_problem() -> None:
    failing = cluster("yarn/etl", failing={"report": "refused"})
    found = moment(status(node("n1"), clusters=(failing,)))
    assert found.accounts[0].state == "failing"
    assert found.problems == ("yarn/etl: report failed: refused",)


def test_a_task_on_its_way_out_has_the_phase_as_its_state_and_its_record_says_why() -> None:
    termination = {"phase": "forced", "why": "memory_evict: full", "note": "busy"}
    found = moment(tasks=(task("c1", termination=termination), task("c2", name="", used=None)))
    assert [one.phase for one in found.tasks] == ["forced", "running"]
    assert found.tasks[1].label == "application_1"
    assert found.tasks[1].used is None
    lines = record(found, Ref(Kind.TASK, "yarn/etl c1"))
    assert lines[0] == "task c1 of yarn/etl on n1:45454, application application_1"
    assert lines[-2:] == [
        "cost: 330 core-s = 90 s of work",
        "it is being terminated (forced): memory_evict: full; busy",
    ]


def test_every_kind_of_problem_is_told() -> None:
    found = moment(
        status(
            config_problems=["a.yaml:3: bad"],
            failed={"yarn/ops": "cluster yarn/ops: no such host", "yarn/x": "gone"},
            building=["yarn/b"],
            sample_problems={"cpu": "went backwards"},
            switches=[
                {"scope": scope, "state": "stop", "who": "ada", "when": 0.0, "why": "audit"}
                for scope in ("pool:night", "yarn/etl")
            ],
            restoring=True,
            journal_error="disk full",
            clusters=(cluster("yarn/etl", row("n1", refusal="not leader")),),
        ),
        incomplete={"yarn/etl": "no answer"},
        terminations_lost="unreadable",
    )
    assert found.problems == (
        "a.yaml:3: bad",
        "cluster yarn/ops: no such host",
        "yarn/x: gone",
        "yarn/b: still being built",
        "cpu: went backwards",
        "pool:night is switched to stop by ada: audit",
        "the original sizes are being put back",
        "disk full",
        "yarn/etl n1:45454: refused: not leader",
        "yarn/etl: not all tasks are known: no answer",
        "unreadable",
    )


# Decisions


def test_what_holds_now_comes_first_and_then_the_newest() -> None:
    explained = explanation(
        "n1", decisions=[decision("c2", ago=3.0), decision("c1", ago=60.0)], take_backs=[over("n1")]
    )
    taken = {"cluster": "yarn/etl", "resource": "memory", "amount": 2 * GIB, "ago_seconds": 20.0}
    found = moment(status(node("n1"), take_backs=[taken]), explained)
    assert [(event.ago_seconds, event.text) for event in found.events] == [
        (None, "yarn/etl n1:45454: 0.50 cores above the offer: it is adopted"),
        (3.0, "memory_evict terminated c2: 91 % of the node's memory is used"),
        (20.0, "take-back from yarn/etl began: at most 2.00 GiB"),
        (60.0, "memory_evict terminated c1: 91 % of the node's memory is used"),
    ]
    assert record(found, Ref(Kind.EVENT, found.events[0].key))[0].startswith("yarn/etl n1:45454: CPU, cores above the")
    assert record(found, Ref(Kind.EVENT, found.events[1].key)) == [
        "3 s ago memory_evict terminated 1 task",
        "  terminates c2: frees 3 GiB",
    ]
    assert record(found, Ref(Kind.EVENT, found.events[2].key)) == [found.events[2].text]


def test_a_decision_keeps_its_key_when_newer_ones_come() -> None:
    before = moment(status(node("n1")), explanation("n1", decisions=[decision("c1", ago=3.0)]))
    newer = [decision("c1", ago=1.0), decision("c2", ago=2.0), decision("c1", ago=13.0)]
    after = moment(status(node("n1")), explanation("n1", decisions=newer))
    assert before.events[0].key == after.events[2].key
    assert len({event.key for event in after.events}) == 3


def test_in_observe_mode_a_decision_says_that_nothing_ended() -> None:
    explained = explanation("n1", decisions=[decision(enforced=False)])
    found = moment(status(node("n1"), mode="observe"), explained)
    assert found.events[0].text.startswith("memory_evict would have terminated no task: 91 %")


@pytest.mark.parametrize("kind", list(Kind))
def test_of_what_is_gone_the_record_says_so(kind: Kind) -> None:
    assert record(moment(), Ref(kind, "nowhere")) == GONE


def test_a_snapshot_needs_every_part_of_the_answers() -> None:
    found = status(node("n1"))
    del found["nodes"]
    with pytest.raises(ControlError, match="nodes"):
        from_json(Status, found)


def test_the_take_backs_of_a_controller_are_told_with_their_age(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(8)})
    world.controller.state.take_backs.started["alpha/a", "cpu"] = (Started(world.now - 7.0, 500),)
    process = ProcessStatus(uptime_seconds=1.0, config_file="f")
    assert to_json(run_status(world.controller, process, world.now))["take_backs"] == [
        {"cluster": "alpha/a", "resource": "cpu", "amount": 500, "ago_seconds": 7.0}
    ]
