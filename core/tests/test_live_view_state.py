import pytest
from core.tests.live_values import cluster, decision, explanation, moment, node, resource, row, status, task

from fallow_core.cli.live.filter_sort import Rows, filter_and_sort
from fallow_core.cli.live.view_state import SORTS, Kind, Pane, Ref, ViewState, after_key

NODE, FIRST, SECOND = Ref(Kind.NODE, "n1"), Ref(Kind.TASK, "y c1"), Ref(Kind.TASK, "y c2")
REFS = [NODE, FIRST, SECOND, Ref(Kind.EVENT, "e1")]


def after(*keys: str, state: ViewState | None = None, refs: list[Ref] | None = None) -> ViewState:
    state = state or ViewState()
    for key in keys:
        state = after_key(state, key, REFS if refs is None else refs, 3)
    return state


@pytest.mark.parametrize(
    ("keys", "selected"),
    [
        (["down"], NODE),
        (["up"], NODE),
        (["j", "j"], FIRST),
        (["down", "down", "k"], NODE),
        (["down", "up"], NODE),
        (["G"], REFS[-1]),
        (["end", "down"], REFS[-1]),
        (["end", "g"], NODE),
        (["j", "pgdn"], REFS[3]),
        (["end", "pgup"], NODE),
        (["tab"], NODE),
        (["tab", "tab"], FIRST),
        (["G", "tab"], NODE),
    ],
)
def test_keys_move_the_selection(keys: list[str], selected: Ref) -> None:
    assert after(*keys).selected == selected


def test_where_there_is_nothing_nothing_is_selected() -> None:
    assert after("down", "tab", "G", "enter", refs=[]) == ViewState()


def test_a_selection_that_is_gone_begins_anew() -> None:
    gone = ViewState(selected=Ref(Kind.TASK, "y gone"))
    assert after("enter", state=gone).pane is Pane.TABLES
    assert after("down", state=gone).selected == NODE


def test_typed_letters_are_the_filter_and_no_commands() -> None:
    assert after("/", "q", "s", "up", "x", "backspace").wanted == "qs"
    assert after("/", "q", "enter") == ViewState(wanted="q")
    assert after("/", "q", "escape") == ViewState()
    assert after("/", "q", "enter", "escape").wanted == ""
    assert not after("/", "q").ended
    assert after("/", "q", "enter", "q").ended


def test_sorting_goes_round_and_can_be_turned() -> None:
    assert [after(*"s" * count).sort for count in range(len(SORTS) + 1)] == [*SORTS, SORTS[0]]
    assert (after("r").reverse, after("r", "r").reverse) == (True, False)


def test_a_record_is_scrolled_and_left() -> None:
    opened = after("down", "enter")
    assert (opened.pane, opened.scroll) == (Pane.RECORD, 0)
    assert after("down", "pgdn", "up", state=opened).scroll == 3
    assert after("up", state=opened).scroll == 0
    assert after("down", "home", state=opened).scroll == 0
    assert after("s", "/", "tab", state=opened) == opened
    assert after("down", "escape", state=opened) == ViewState(selected=NODE)
    assert after("q", state=opened).ended


def test_help_is_opened_and_left_by_the_same_key() -> None:
    assert after("?").pane is Pane.HELP
    assert after("?", "?").pane is Pane.TABLES


# What is shown


def shown(**changes: object) -> Rows:
    nodes = [node("n1", cpu=resource(500)), node("n2")]
    clusters = (cluster("yarn/a", row("n1")), cluster("yarn/b"))
    tasks = (
        task("c3", age_seconds=None, used={"cpu_milli": 100, "memory_bytes": 9}),
        task("c1", age_seconds=5.0, used=None, user="Bob"),
        task("c2", age_seconds=50.0, used={"cpu_milli": 900, "memory_bytes": 1}),
    )
    explained = explanation("n1", decisions=[decision("c1"), decision("c2")])
    state = ViewState(**changes)  # type: ignore[arg-type]
    return filter_and_sort(moment(status(*nodes, clusters=clusters), explained, tasks=tasks), state)


@pytest.mark.parametrize(
    ("sort", "tasks", "nodes"),
    [
        ("cost", ["c3", "c1", "c2"], ["n1", "n2"]),
        ("cpu", ["c2", "c3", "c1"], ["n2", "n1"]),
        ("memory", ["c3", "c2", "c1"], ["n1", "n2"]),
        ("age", ["c2", "c1", "c3"], ["n1", "n2"]),
        ("name", ["c1", "c2", "c3"], ["n1", "n2"]),
    ],
)
def test_the_largest_comes_first_and_what_is_not_known_last(sort: str, tasks: list[str], nodes: list[str]) -> None:
    found = shown(sort=sort)
    assert [one.task for one in found.tasks] == tasks
    assert [one.name for one in found.nodes] == nodes
    assert [one.task for one in shown(sort=sort, reverse=True).tasks] == tasks[::-1]


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ("bob", ["yarn/etl c1"]),
        ("N2", ["n2"]),
        ("yarn/b", ["yarn/b"]),
        ("nothing has this", []),
    ],
)
def test_a_filter_holds_for_every_table_and_any_text(wanted: str, keys: list[str]) -> None:
    assert [ref.key for ref in shown(wanted=wanted).refs] == keys


def test_what_can_be_selected_is_in_the_order_of_the_screen() -> None:
    kinds = [ref.kind for ref in shown().refs]
    assert kinds == [*[Kind.NODE] * 2, *[Kind.ACCOUNT] * 2, *[Kind.TASK] * 3, *[Kind.EVENT] * 2]
