from typing import Any

from core.tests.live_values import cluster, decision, explanation, moment, node, resource, row, size, status, task

from fallow_core.cli.live.plain_output import QUIET_SECONDS, PlainOutput
from fallow_core.cli.live.snapshot import Snapshot
from fallow_core.cli.live.view_state import ViewState

NODE_LINE = (
    "node n1  CPU online 2.00 can lend 5.00 offer 5.00 in force 4.00 allocated 2.00"
    "  GiB online 2.00 can lend 5.00 offer 5.00 in force 5.00 allocated 2.00"
)


def at(*tasks: dict[str, Any], decisions: tuple[dict[str, Any], ...] = (), **changes: Any) -> Snapshot:
    found = status(node("n1"), **({"clusters": (cluster("yarn/etl", row("n1")),)} | changes))
    return moment(found, explanation("n1", decisions=list(decisions)), tasks=tasks)


def lines(before: Snapshot | None, now: Snapshot, wanted: str = "") -> list[str]:
    output = PlainOutput()
    if before is not None:
        output.lines(before, ViewState(wanted=wanted), 0.0)
    return output.lines(now, ViewState(wanted=wanted), 1.0)


def test_at_first_everything_is_told() -> None:
    decisions = (decision("c2", ago=1.0), decision("c1", ago=9.0))
    first = at(task("c3"), decisions=decisions, config_problems=["bad"])
    assert lines(None, first) == [
        "mode enforce",
        "! bad",
        "cluster yarn/etl  switch lend  running  CPU in force 4.00 allocated 2.00  GiB in force 5.00 allocated 2.00",
        "task yarn/etl c3 running",
        "memory_evict terminated c1: 91 % of the node's memory is used",
        "memory_evict terminated c2: 91 % of the node's memory is used",
        NODE_LINE,
    ]


def test_where_nothing_changed_nothing_is_printed_but_now_and_then_the_nodes() -> None:
    output = PlainOutput()
    output.lines(at(task("c1")), ViewState(), 0.0)
    assert output.lines(at(task("c1")), ViewState(), QUIET_SECONDS - 1) == []
    assert output.lines(at(task("c1")), ViewState(), QUIET_SECONDS) == [NODE_LINE]
    assert output.lines(at(task("c1")), ViewState(), QUIET_SECONDS + 1) == []
    assert output.lines(at(task("c1")), ViewState(wanted="c1"), 2 * QUIET_SECONDS) == ["no change"]


def test_a_node_is_printed_when_an_amount_has_moved_by_a_tenth_of_the_capacity_since_its_last_line() -> None:
    def using(cores: float | None) -> Snapshot:
        used = None if cores is None else round(1000 * cores)
        return moment(status(node("n1", cpu=resource(1000, used=used))))

    output = PlainOutput()
    printed = [len(output.lines(using(cores), ViewState(), 0.0)) for cores in (3, 3.5, 3.8, 3.9, 3.2, 3.0, None, None)]
    assert printed == [2, 0, 0, 1, 0, 1, 1, 0]


def test_a_missing_answer_is_told_at_once_and_then_now_and_then() -> None:
    output = PlainOutput()
    output.lines(at(), ViewState(), 0.0)
    assert output.lines(at(), ViewState(), 1.0, trouble="gone") == ["! gone; trying again"]
    assert output.lines(at(), ViewState(), 2.0, trouble="gone") == []
    assert output.lines(at(), ViewState(), QUIET_SECONDS + 1, trouble="gone") == ["! gone; trying again"]
    assert output.lines(at(), ViewState(), QUIET_SECONDS + 2)[0] == "over: it answers again"


def test_each_change_is_a_line() -> None:
    before = at(task("c1"), task("c2"), config_problems=["bad"])
    after = at(
        task("c2", termination={"phase": "graceful", "why": "x", "note": ""}),
        task("c3"),
        decisions=(decision("c2"),),
        mode="observe",
        journal_error="disk full",
        clusters=(cluster("yarn/etl", row("n1", in_force=size(3, 5)), switch={"state": "hold"}),),
    )
    assert lines(before, after)[:-1] == [
        "over: bad",
        "task yarn/etl c1 is gone",
        "mode observe",
        "! disk full",
        "cluster yarn/etl  switch hold  running  CPU in force 3.00 allocated 2.00  GiB in force 5.00 allocated 2.00",
        "task yarn/etl c2 graceful",
        "task yarn/etl c3 running",
        "memory_evict terminated c2: 91 % of the node's memory is used",
    ]


def test_the_filter_holds_and_nothing_reaches_the_terminal_that_would_do_something() -> None:
    first = at(task("c1\x1b[2J"), task("c2"))
    assert lines(None, first, "C1") == ["mode enforce", "task yarn/etl c1�[2J running"]
