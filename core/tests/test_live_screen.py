import io
from dataclasses import replace
from typing import Any

import pytest
from core.tests.live_values import (
    cluster,
    decision,
    due,
    explanation,
    moment,
    node,
    over,
    resource,
    row,
    status,
    task,
)
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from fallow_core.cli.live.columns import Column, cut, cut_middle, fit, wrapped
from fallow_core.cli.live.filter_sort import filter_and_sort
from fallow_core.cli.live.panels import bar, panels
from fallow_core.cli.live.screen import Extra, Frame, rooms, screen
from fallow_core.cli.live.snapshot import NodeAmounts, Snapshot
from fallow_core.cli.live.view_state import Kind, Pane, Ref, ViewState

SIZES = [(80, 24), (200, 50), (60, 12), (20, 5), (10, 3), (80, 1), (300, 100)]
LONG = "ip-10-20-30-40.eu-central-1.compute.internal:45454 " * 4
EVIL = "\x1b[2J\x07\nname\t日本語" * 8


def drawn(snapshot: Snapshot, width: int, height: int, state: ViewState | None = None, **more: Any) -> list[str]:
    """The lines as a terminal of this size would get them, which all fit."""
    frame = Frame(title="fallow top", clock="12:00:00", snapshot=snapshot, state=state or ViewState(), **more)
    out = io.StringIO()
    Console(file=out, width=width + 50, height=height, color_system=None).print(screen(frame, width, height))
    lines = out.getvalue().split("\n")[:-1]
    assert len(lines) == height
    assert max(map(cell_len, lines)) <= width
    assert "\x1b" not in out.getvalue()
    return [line.rstrip() for line in lines]


def crowded() -> Snapshot:
    """Many of everything, with names that are long or nasty, and much that is not known."""
    blind = resource(1000, capacity=None, used=None, batch_used=None, batch=None, sample_age_seconds=None)
    nodes = [node(f"n{number}-{LONG}") for number in range(30)] + [node("blind", cpu=blind)]
    clusters = [cluster(f"yarn/{number}-{EVIL}", row("n1", in_force=None)) for number in range(20)]
    tasks = [task(f"container_{LONG}_{number}", name=EVIL, user=LONG, queue=LONG) for number in range(500)]
    explained = explanation("n1", decisions=[decision("c1" * 200) for _ in range(50)], due=[due("n1", LONG)])
    return moment(
        status(*nodes, clusters=tuple(clusters), failed={f"yarn/{n}": EVIL * 3 for n in range(20)}),
        explained,
        tasks=tuple(tasks),
    )


def usual() -> Snapshot:
    tasks = (task("container_e17_1700000000000_0001_01_000002"), task("container_3", used=None, age_seconds=None))
    explained = explanation("worker-1", "yarn/etl", decisions=[decision("task_1", ago=42.0)])
    return moment(status(node("worker-1"), clusters=(cluster("yarn/etl", row("worker-1")),)), explained, tasks=tasks)


STATES = [
    ViewState(),
    ViewState(selected=Ref(Kind.TASK, f"yarn/etl container_{LONG}_300")),
    ViewState(selected=Ref(Kind.NODE, f"n20-{LONG}"), reverse=True),
    ViewState(wanted=LONG, typing=True),
    ViewState(wanted="nothing has this"),
    ViewState(pane=Pane.HELP, scroll=1000),
    ViewState(pane=Pane.RECORD, selected=Ref(Kind.TASK, f"yarn/etl container_{LONG}_300")),
    ViewState(pane=Pane.RECORD, selected=Ref(Kind.NODE, "gone")),
]
EXTRA = Extra(caption=EVIL, title=LONG, lines=(LONG, Text(LONG), "short", EVIL, *[LONG] * 30))


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("state", STATES, ids=range(len(STATES)))
def test_whatever_is_shown_fits_the_terminal(width: int, height: int, state: ViewState) -> None:
    for snapshot in (crowded(), usual(), moment(status())):
        drawn(snapshot, width, height, state)
        drawn(snapshot, width, height, state, extra=EXTRA, trouble=LONG, ascii_only=True)


def test_a_usual_moment_is_seen_whole_in_a_small_window() -> None:
    lines = drawn(usual(), 80, 24)
    assert lines[0] == " fallow top  mode enforce (offers are sent), up 100 s" + " " * 18 + "12:00:00"
    heads = [line.split() for line in lines]
    assert heads[1] == ["NODES", "ONLINE", "CAN", "LEND", "OFFER", "IN", "FORCE", "ALLOC", "HAS"]
    assert heads[2][:8] == ["worker-1", "CPU", "2.00", "5.00", "5.00", "4.00", "2.00", "8.00"]
    assert heads[3][:7] == ["GiB", "2.00", "5.00", "5.00", "5.00", "2.00", "8.00"]
    assert heads[4][:6] == ["CLUSTERS", "TARGET", "OFFER", "IN", "FORCE", "ALLOC"]
    assert heads[5] == ["yarn/etl", "CPU", "4.00", "5.00", "4.00", "2.00", "all", "lend", "running", "2", "s"]
    assert heads[7][0] == "TASKS"
    assert "0.50/2.00" in lines[8]
    assert heads[9][:1] == ["container_3"]
    assert lines[10] == " DECISIONS"
    assert lines[11] == "     42 s  memory_evict terminated task_1: 91 % of the node's memory is used"
    assert lines[-1].startswith(" q end")


def test_a_wide_window_has_every_column() -> None:
    lines = drawn(usual(), 200, 50)
    (head,) = [line for line in lines if "APPLICATION" in line]
    assert head.split()[:6] == ["TASKS", "APPLICATION", "USER", "QUEUE", "CLUSTER", "ROLE"]
    assert head.split()[6:] == ["STATE", "CPU/OF", "GiB/OF", "AGE", "COST"]
    assert any("container_e17_1700000000000_0001_01_000002  nightly" in line for line in lines)
    assert lines[1] == ""  # there is room for an empty line before each table


def test_in_a_crowd_every_table_keeps_its_place_and_says_what_is_not_seen() -> None:
    lines = drawn(crowded(), 80, 24, extra=Extra(caption="the load rises", title="DEMO", lines=("one", "two")))
    text = "\n".join(lines)
    assert lines[1] == " the load rises"
    assert "(and 17 more)" in text
    assert [title for title in ("NODES", "CLUSTERS", "DEMO", "TASKS", "DECISIONS") if f" {title}" not in text] == []
    assert "/500" in text
    assert lines[-1].startswith(" q end")


def test_what_is_selected_is_marked_and_in_sight_wherever_it_is() -> None:
    for number in (0, 3, 250, 499):
        name = f"container_{LONG}_{number}"
        state = ViewState(selected=Ref(Kind.TASK, f"yarn/etl {name}"))
        (marked,) = [line for line in drawn(crowded(), 80, 24, state) if line.startswith(">")]
        assert f"_{number} " in marked


def test_a_record_fills_the_screen_and_scrolls() -> None:
    state = ViewState(pane=Pane.RECORD, selected=Ref(Kind.NODE, "worker-1"))
    lines = drawn(usual(), 80, 10, state)
    assert lines[1] == " node worker-1, publishing mode enforce (offers are sent)"
    assert drawn(usual(), 80, 10, replace(state, scroll=2))[1] == " CPU, cores"
    end = drawn(usual(), 80, 10, replace(state, scroll=999))
    assert end[-2] != ""
    assert end[-1].startswith(" Esc back")


def test_trouble_comes_before_problems_and_is_read_whole_if_there_is_room() -> None:
    snapshot = moment(status(node("n1"), config_problems=["a.yaml: bad"]))
    lines = drawn(snapshot, 80, 24, trouble="no answer for 5 s, trying again: " + "nobody serves it " * 4)
    assert lines[1].startswith(" ! no answer for 5 s")
    assert lines[3] == " ! a.yaml: bad"
    assert "nobody serves it" in lines[2]


def test_what_is_not_there_is_said_in_a_line() -> None:
    lines = drawn(moment(status()), 80, 24)
    assert lines[1:5] == [" NODES  none", " CLUSTERS  none", " TASKS  none", " DECISIONS  none"]


def test_what_is_typed_and_what_is_chosen_is_seen() -> None:
    assert drawn(usual(), 80, 24, ViewState(typing=True, wanted="etl"))[-1] == " show what has: etl_"
    chosen = ViewState(wanted="etl", sort="cpu", reverse=True)
    assert drawn(usual(), 80, 24, chosen)[-1].startswith(" by cpu  reversed  only 'etl'  q end")


def test_a_take_back_and_a_size_that_is_due_are_among_the_decisions() -> None:
    explained = explanation("n1", take_backs=[over("n1")], due=[due("n1")])
    lines = drawn(moment(status(node("n1")), explained), 160, 24)
    assert "      now  yarn/etl n1:45454: 0.50 cores above the offer: it is adopted" in lines
    assert any("is to be told 1.50 cores, 20.00 GiB: cpu: more than the dead band below" in line for line in lines)


# The parts


def amounts(online: int | None, allocated: int, batch: int, capacity: int = 10) -> NodeAmounts:
    return NodeAmounts(capacity=capacity, online=online, batch=batch, offer=0, in_force=0, allocated=allocated)


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (amounts(3, 2, 5), "###++===.."),
        (amounts(3, 5, 2), "###+++++.."),
        (amounts(8, 6, 0), "########++"),
        (amounts(15, 0, 0), "##########"),
        (amounts(0, 0, 10), "=========="),
        (amounts(None, 0, 0), ""),
        (amounts(0, 0, 0, capacity=0), "##########"),
    ],
)
def test_the_parts_of_a_bar_are_the_whole_capacity(part: NodeAmounts, shown: str) -> None:
    assert bar(part, 10, ascii_only=True).plain == shown


def test_columns_are_left_out_by_rank_and_texts_are_cut_before_that() -> None:
    columns = [
        Column(head="NAME", cells=["a long name"], rank=0, least=6),
        Column(head="NOTE", cells=["nice"], rank=2, least=4),
        Column(head="SIZE", cells=["12345.00"], rank=1),
    ]

    def lines(width: int) -> list[str]:
        return [line.plain for line in fit(columns, width)]

    assert lines(27) == ["NAME         NOTE      SIZE", "a long name  nice  12345.00"]
    assert lines(24) == ["NAME      NOTE      SIZE", "a long ~  nice  12345.00"]
    assert lines(21) == ["NAME             SIZE", "a long name  12345.00"]
    assert lines(15) == ["NAME       NOTE", "a long n~  nice"]
    assert lines(11) == ["NAME       ", "a long name"]
    assert lines(3) == ["NA~", "a ~"]


def test_a_wide_character_counts_as_two_and_nothing_reaches_the_terminal_that_would_do_something() -> None:
    assert cut("日本語", 5) == "日本~"
    assert cut("日本語", 4) == "日 ~"
    assert cut("container_12", 5, keep_end=True) == "~r_12"


@pytest.mark.parametrize(
    ("width", "shown"), [(40, "container_17_0001_01_000005"), (12, "cont~_000005"), (3, "c~5"), (2, "c~"), (0, "")]
)
def test_a_name_that_is_too_long_keeps_both_ends(width: int, shown: str) -> None:
    assert cut_middle("container_17_0001_01_000005", width) == shown
    assert cut("a\x1b[2Jb", 10) == "a�[2Jb"
    assert cut("abc", 0) == ""


def test_room_goes_to_the_tables_above_first_and_then_evenly() -> None:
    found = filter_and_sort(crowded(), ViewState())
    assert (len(found.nodes), len(found.tasks)) == (31, 500)

    def shared(height: int) -> list[int | None]:
        return rooms(panels(found, ascii_only=False), height)

    assert shared(2) == [None, None, 1, None]
    assert shared(6) == [1, 1, None, None]
    assert shared(13) == [1, 1, 3, 2]
    assert shared(19) == [2, 2, 4, 3]


def test_a_line_of_a_record_is_wrapped_below_its_indent() -> None:
    assert wrapped("  batch is so much", 12) == ["  batch is", "    so", "    much"]
    assert wrapped("x" * 7, 3) == ["xxx", " xx", " xx"]
    assert max(cell_len(line) for line in wrapped("日本語" * 9, 10)) <= 10
