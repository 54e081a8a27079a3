from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_framework import HONOURED, NODE, World, key, size

from fallow_core.api.encoding import from_json, to_json
from fallow_core.api.explain import Explanation, run_explanation
from fallow_core.api.operations import CheckResult, Restored
from fallow_core.api.status import ProcessStatus, Status, run_status
from fallow_core.cli.printable import printable
from fallow_core.cli.render_explain import explanation_lines
from fallow_core.cli.render_operations import findings, restored
from fallow_core.cli.render_status import MOST_IN_FLIGHT, status_lines
from fallow_core.cli.table import WIDTH, amount, paragraph, seconds, table
from fallow_core.errors import ControlError
from fallow_core.ledger.rows import Sent
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import NodePolicy, PublishingMode, PublishingPolicy, ResourcePolicy, SwitchState
from fallow_core.model.sample import NodeSample
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_core.planner.observations import NodeObservation, TaskSums
from fallow_core.runtime import restore
from fallow_hookspecs import (
    Broken,
    Capabilities,
    Finding,
    Pending,
    Refusal,
    ResourceCapability,
    Resources,
    Task,
    TaskState,
)

LONG_NAME = "ip-10-20-30-40.eu-central-1.compute.internal:45454"
LONG_REASON = "resourceManager.admin rm1.example.com:8033: connection refused; " * 7


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch, a={"a1": size(8), LONG_NAME: size(128)}, b={"b1": size(8)})


def status(world: World, **more: Any) -> Status:
    """What a running Fallow would answer, as it comes out of the socket."""
    process = ProcessStatus(uptime_seconds=12_345.0, config_file="/etc/fallow/fallow.yaml")
    answer = to_json(run_status(world.controller, process, world.now))
    return from_json(Status, answer | more)


def explanation(world: World) -> Explanation:
    answer = run_explanation(world.controller, NODE.name, world.now, (), None)
    return from_json(Explanation, to_json(answer))


def task(name: str, *, cores: float, gib: float) -> Task:
    return Task(
        id=name,
        application_id="app",
        framework_node="a1",
        state=TaskState.RUNNING,
        requested=Resources(int(cores * 1000), int(gib * (1 << 30))),
    )


def readable(lines: list[str]) -> str:
    """The text, which fits on a terminal."""
    assert max(len(line) for line in lines) <= WIDTH
    assert all(line == line.rstrip() for line in lines)
    return "\n".join(lines)


# Status


def test_status_before_anything_is_known_says_so(world: World) -> None:
    world.observe(NodeSample())
    text = readable(status_lines(status(world, building=["alpha/c"])))
    assert "publishing mode enforce (offers are sent), up 3 h, /etc/fallow/fallow.yaml" in text
    assert "! alpha/c: still being built" in text
    assert "CPU, cores   ?    ?       ?" in text
    assert "never" in text
    assert text.count("  no report yet\n  no node of this cluster is seen here") == 2


def test_status_says_that_the_watermark_alone_keeps_a_node_from_lending(world: World) -> None:
    policies = NodePolicies(default=NodePolicy(cpu=ResourcePolicy(watermark_percent=60)))
    world.controller.configure(policies, world.policy, TakeBackPolicy())
    world.used = size(6.5)
    world.run(3)
    text = readable(status_lines(status(world)))
    assert "! n1: nothing to lend: 65 % of CPU is in use and the watermark is 60 %" in text


def test_status_in_observe_mode_says_that_nothing_is_sent(world: World) -> None:
    world.policy = PublishingPolicy(mode=PublishingMode.OBSERVE)
    world.start()
    world.run(3)
    text = readable(status_lines(status(world)))
    assert "publishing mode observe (nothing is sent)" in text
    assert "due: cpu: schedulers may promise more than there is" in text


def test_status_shows_a_row_with_all_its_sizes(world: World) -> None:
    world.frameworks["b"].nodes["b1"].allocated = size(1, 0.5)
    world.run(3)
    lines = status_lines(status(world))
    at = lines.index("  b1   running, seen 0 s ago")
    assert [line.split() for line in lines[at - 1 : at + 3]] == [
        ["ALLOCATED", "IN", "FORCE", "IN", "FLIGHT", "BELIEF", "OFFER", "FLOOR", "AT", "FIRST"],
        ["b1", "running,", "seen", "0", "s", "ago"],
        ["CPU,", "cores", "1.00", "8.00", "5.00", "8.00", "5.00", "0.20", "8.00"],
        ["memory,", "GiB", "0.50", "8.00", "5.00", "8.00", "5.00", "0.25", "8.00"],
    ]


def test_status_shows_the_newest_of_many_sizes_in_flight(world: World) -> None:
    world.run(3)
    sent = tuple(Sent(size=size(4 - n / 2), sent_at=float(n)) for n in range(MOST_IN_FLIGHT + 2))
    world.cluster("b").rows[key("b", "b1")] = replace(world.row("b", "b1"), in_flight=sent)
    text = readable(status_lines(status(world)))
    assert "..., 3.00, 2.50, 2.00, 1.50  " in text


def test_status_shows_what_is_wrong_and_stays_readable(world: World) -> None:
    world.run(3)
    world.frameworks["a"].refuses = dict.fromkeys(("a1", LONG_NAME), Refusal.UNKNOWN_NODE)
    world.frameworks["b"].nodes["b1"].in_force = size(9)
    world.used = size(7)
    world.run(15)
    world.frameworks["b"].reports_fail = ConnectionError(LONG_REASON)
    world.run(20)
    world.controller.set_switch("alpha/a", SwitchState.HOLD, "ada", "the end of the quarter " * 10)
    more = {
        "failed": {"alpha/c": LONG_REASON},
        "config_problems": [f"/etc/fallow/clusters.d/d.yaml:3: spec.user: {LONG_REASON}"],
        "sample_problems": {"cpu": "CPU time of the host went backwards"},
        "journal_error": "cannot write /var/lib/fallow/published.jsonl: No space left on device",
        "lost_state": [
            {"file": "/var/lib/fallow/published.jsonl", "why": "is empty", "effect": "no growth", "advice": "repair it"}
        ],
        "restoring": True,
    }
    text = readable(status_lines(status(world, **more)))
    assert "switch hold (by ada: the end of the quarter" in text
    assert "refused: this node is refused: unknown node" in text
    assert "! report failed: ConnectionError: resourceManager.admin" in text
    for problem in (
        "! alpha/c: resourceManager.admin",
        "! /etc/fallow/clusters.d/d.yaml:3: spec.user",
        "! cpu: CPU time of the host went backwards",
        "! cannot write /var/lib/fallow/published.jsonl",
        "! /var/lib/fallow/published.jsonl is empty: no growth; repair it, or give the file up: fallow",
        "! the original sizes are being put back",
    ):
        assert problem in text


def test_status_shows_that_somebody_else_changed_a_size(world: World) -> None:
    world.run(3)
    world.hold("alpha/b acts")
    world.frameworks["b"].nodes["b1"].in_force = size(9)
    world.run(12)
    assert "    in force: somebody else changed the size" in status_lines(status(world))


def test_status_shows_a_lane_that_backs_off(world: World) -> None:
    world.frameworks["a"].fails = ConnectionError("reset")
    world.run(2)
    world.tick(0.2)
    text = readable(status_lines(status(world)))
    assert "! offers failed: ConnectionError: reset\n  ! acts backing off after 1 failure: next try in 1 s" in text
    world.tick(2)
    assert "next try with the next call that is due" in readable(status_lines(status(world)))


def test_status_shows_a_lane_that_hangs(world: World) -> None:
    world.run(2)
    world.hold("alpha/a acts")
    world.used = size(5)
    world.run(40)
    text = readable(status_lines(status(world)))
    assert "! acts stalled: a call runs for" in text


def test_status_shows_a_broken_lane_without_a_next_try(world: World) -> None:
    world.run(2)
    world.frameworks["a"].fails = Broken("no such user")
    world.used = size(5)
    world.run(2)
    text = readable(status_lines(status(world)))
    assert "! offers failed: no such user\n  ! acts broken: no further call before the configuration is changed" in text


def test_status_says_which_resource_a_framework_ignores(world: World) -> None:
    world.run(2)
    ignored = ResourceCapability(honoured=False)
    world.cluster("a").capabilities = Capabilities(cpu=ignored, memory=HONOURED)
    text = readable(status_lines(status(world)))
    assert text.count("! the framework ignores cpu: its offers hold nothing back") == 1


def test_status_shows_what_an_earlier_process_knew_and_nobody_has_reported(world: World) -> None:
    world.run(3)
    world.start("a")
    world.run(2)
    text = readable(status_lines(status(world)))
    assert "! alpha/b b1: known from before and not reported yet; until then nothing grows" in text


# Explain


def test_an_explanation_recomputes_to_the_same_numbers(world: World) -> None:
    world.used = size(3)
    world.run(4)
    text = readable(explanation_lines(explanation(world)))
    assert "system  3.00 = the larger of: in use 3.00 − its batch 0.00; reserved 0.00" in text
    assert "margin  0.00 = 10.00 × (100 − watermark 100) %" in text
    assert "batch   7.00 = 10.00 − margin − system, from 0 to 10.00   (measured 0 s ago)" in text
    assert f"    {LONG_NAME}: target 1.70 → offer 1.70; in force 1.70, newest sent 1.70, belief 1.70" in text
    assert "nothing is due: every size is within the dead band" in text


def test_an_explanation_before_anything_is_known_says_so(world: World) -> None:
    world.observe(NodeSample())
    text = readable(explanation_lines(explanation(world)))
    assert text.count("never measured: no size changes") == 2


def test_an_explanation_says_what_is_due_and_in_observe_mode_that_it_is_not_sent(world: World) -> None:
    world.policy = PublishingPolicy(mode=PublishingMode.OBSERVE)
    world.start()
    world.run(3)
    world.controller.set_switch("alpha/b", SwitchState.DRAIN, "ada", "")
    world.run(1)
    text = readable(explanation_lines(explanation(world)))
    assert text.startswith("node n1, publishing mode observe (nothing is sent)")
    assert "due at once: alpha/b b1 to CPU, cores: 0.20, memory, GiB: 0.25; cpu: schedulers may promise" in text
    assert "(switched to drain; raised to the floor)" in text


def test_an_explanation_says_what_waits_and_which_offer_is_too_small_for_it(world: World) -> None:
    world.used = size(9)
    world.run(40)
    waits = Pending(total=size(64), smallest=size(16), largest=size(32), detail="4 containers of ada in root")
    world.frameworks["b"].spoils = lambda report: replace(report, pending=waits)
    calls = len(world.frameworks["b"].calls)
    world.used = size(2)
    world.run(200)
    assert len(world.frameworks["b"].calls) == calls
    text = " ".join(readable(explanation_lines(explanation(world))).split())
    assert (
        "alpha/b has pending CPU, cores: 64.00, memory, GiB: 64.00 (smallest request CPU, cores: 16.00, memory, GiB:"
        " 16.00; largest CPU, cores: 32.00, memory, GiB: 32.00); 4 containers of ada in root"
    ) in text
    assert "not made: the larger offer to alpha/b b1; too small for the smallest pending request:" in text
    assert "free of 16.00 cores" in text


def test_an_explanation_says_what_cpu_that_is_not_honoured_does_to_memory(world: World) -> None:
    ignored = ResourceCapability(honoured=False)
    world.frameworks["a"].spoils = lambda report: replace(
        report, capabilities=Capabilities(cpu=ignored, memory=HONOURED)
    )
    half_a_gib_a_core = TaskSums(requested=size(1, 0.5), largest=size(1, 0.5), shapes={512: 1})
    world.observed = NodeObservation(tasks={key("a", "a1"): half_a_gib_a_core})
    world.start()
    world.run(15)
    text = " ".join(readable(explanation_lines(explanation(world))).split())
    assert "no more than the tasks need that batch CPU is for, 5.00)" in text
    assert text.count("(not honoured)") == 2


def test_an_explanation_says_which_switch_counts_by_whom_and_what_it_does(world: World) -> None:
    world.run(2)
    world.controller.set_switch("alpha/a", SwitchState.HOLD, "bob", "")
    world.controller.set_switch("all", SwitchState.STOP, "ada", "audit")
    world.run(1)
    text = readable(explanation_lines(explanation(world)))
    for name in ("alpha/a", "alpha/b"):
        assert f"{name}: all is switched to stop by ada: audit; no new work starts, and what does not" in text
    assert "bob" not in text
    assert "all is switched to stop" in text


# Doctor


def test_findings_are_marked_and_advice_stands_below_what_is_not_well() -> None:
    found = [
        Finding(subject="state directory", ok=True, detail="/var/lib/fallow can be written", advice="never shown"),
        Finding(subject="admin rights", ok=False, detail=LONG_REASON, advice="add the user to " + LONG_REASON),
        Finding(subject="running Fallow", ok=None, detail="none", advice="start it"),
    ]
    lines = findings([CheckResult(about="yarn/etl", **asdict(each)) for each in found])
    text = readable(lines)
    assert lines[0] == "ok     yarn/etl: state directory: /var/lib/fallow can be written"
    assert lines[1].startswith("WRONG  yarn/etl: admin rights: resourceManager.admin")
    assert "\n       → add the user to resourceManager.admin" in text
    assert "?      yarn/etl: running Fallow: none\n       → start it" in text
    assert "never shown" not in text
    assert lines[-1] == "3 findings, 1 wrong"


# Restore


def test_restore_says_what_became_of_each_row(world: World) -> None:
    world.run(3)
    world.frameworks["b"].refuses = {"b1": Refusal.ACCESS_DENIED}
    world.controller.restore("ada")
    world.run(5)
    world.frameworks["a"].nodes["a1"].allocated = size(9, 1)
    world.run(12)
    answer = restore.outcome(status(world, failed={"alpha/c": LONG_REASON}))
    text = readable(restored(answer))
    assert not answer.done
    over = "restored; more CPU than that is still allocated; it has 8.00 cores and 8.00 GiB of memory"
    assert f"alpha/a a1: {over}" in text
    assert f"alpha/a {LONG_NAME}: restored; it has 128.00 cores and 128.00 GiB of memory" in text
    assert "alpha/b b1: NOT restored: refused: this node is refused: access denied; it has " in text
    assert "; Fallow found " in text
    assert "! alpha/c: resourceManager.admin" in text


def test_restore_without_any_node_says_so() -> None:
    assert restored(Restored(done=True, rows=(), groups=(), problems=())) == [
        "no node of any cluster is here: nothing to put back"
    ]


# Words and numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "never"), (0.2, "0 s"), (119.4, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h"), (1e6, "278 h")],
)
def test_times_in_words(value: float | None, text: str) -> None:
    assert seconds(value) == text


def test_amounts_are_cores_and_gib() -> None:
    assert amount("cpu", 1500) == "1.50"
    assert amount("memory", 3 * 2**29) == "1.50"
    assert amount("cpu", -250) == "-0.25"
    assert amount("memory", None) == "?"


def test_columns_are_aligned() -> None:
    assert table([["a", "bb", "c"], ["aaa", "b", ""]], indent=" ") == [" a    bb  c", " aaa  b"]


def test_a_paragraph_keeps_its_words_whole() -> None:
    word = "a-host-name.example.com:8032"
    lines = paragraph(" ".join([word] * 20), "  ")
    assert all(len(line) <= WIDTH for line in lines)
    assert " ".join(" ".join(lines).split()).split(" ") == [word] * 20
    assert [len(line) - len(line.lstrip()) for line in lines] == [2, *[6] * (len(lines) - 1)]
    assert paragraph("x" * 300) == ["x" * 300]


@pytest.mark.parametrize("bad", ["\x1b[31m", "\x9b31m", "\r", "\x00", "\u202e"])
def test_nothing_that_a_framework_says_does_something_to_a_terminal(bad: str) -> None:
    assert printable(f"a{bad}b").isprintable()


@pytest.mark.parametrize("kind", [Status, Explanation])
def test_an_answer_of_another_version_is_told_by_the_missing_key(kind: type) -> None:
    with pytest.raises(ControlError, match="missing required field"):
        from_json(kind, {})


def test_what_is_refused_and_switched_is_told_with_who_and_why(world: World) -> None:
    world.run(3)
    world.controller.set_switch("all", SwitchState.STOP, "ada", "audit")
    world.used = size(-1)
    world.run(3)
    text = readable(status_lines(status(world)))
    assert "! all is switched to stop by ada: audit" in text
    assert f"! nodes: sample of cpu of {NODE.name} is refused: used is negative" in text
