from typing import Any

from core.tests.live_values import cluster, decision, explanation, moment, node, row, size, status, task

from fallow_core.cli.live.lines import lines
from fallow_core.cli.live.snapshot import Snapshot
from fallow_core.cli.live.state import State

NODE_LINE = (
    "node n1  CPU online 2.00 can lend 5.00 offer 5.00 in force 4.00 allocated 2.00"
    "  GiB online 2.00 can lend 5.00 offer 5.00 in force 5.00 allocated 2.00"
)


def at(*tasks: dict[str, Any], decisions: tuple[dict[str, Any], ...] = (), **changes: Any) -> Snapshot:
    found = status(node("n1"), **({"clusters": (cluster("yarn/etl", row("n1")),)} | changes))
    return moment(found, explanation("n1", decisions=list(decisions)), tasks=tasks)


def test_at_first_everything_is_told() -> None:
    decisions = (decision("c2", ago=1.0), decision("c1", ago=9.0))
    first = at(task("c3"), decisions=decisions, config_problems=["bad"])
    assert lines(None, first, State()) == [
        "mode enforce",
        "! bad",
        "cluster yarn/etl  switch lend  running  CPU in force 4.00 allocated 2.00  GiB in force 5.00 allocated 2.00",
        "task yarn/etl c3 running",
        "memory_evict terminated c1: 91 % of the node's memory is used",
        "memory_evict terminated c2: 91 % of the node's memory is used",
        NODE_LINE,
    ]


def test_where_nothing_changed_a_tick_is_one_line_a_node() -> None:
    same = at(task("c1"), decisions=(decision("c1"),))
    assert lines(same, same, State()) == [NODE_LINE]


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
    assert lines(before, after, State())[:-1] == [
        "mode observe",
        "! disk full",
        "over: bad",
        "cluster yarn/etl  switch hold  running  CPU in force 3.00 allocated 2.00  GiB in force 5.00 allocated 2.00",
        "task yarn/etl c2 graceful",
        "task yarn/etl c3 running",
        "task yarn/etl c1 is gone",
        "memory_evict terminated c2: 91 % of the node's memory is used",
    ]


def test_the_filter_holds_and_nothing_reaches_the_terminal_that_would_do_something() -> None:
    first = at(task("c1\x1b[2J"), task("c2"))
    assert lines(None, first, State(wanted="C1")) == ["mode enforce", "task yarn/etl c1�[2J running"]
