"""What the user of the view has chosen, and how a key changes it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

SORTS = ("cost", "cpu", "memory", "age", "name")
"""Sort orders. `cost` is the order in which Fallow lists tasks: the cheapest to terminate first."""

HELP = (
    ("up, down, k, j", "select a line; in a record: scroll"),
    ("PgUp, PgDn", "the same by pages"),
    ("Home, End, g, G", "the first, the last line"),
    ("Tab", "the next table"),
    ("Enter, e", "explain the selected node, cluster, task or decision"),
    ("/", "show only lines with a text; Enter keeps the filter, Esc clears it"),
    ("s, r", "sort by the next column, turn the order round"),
    ("Esc", "back"),
    ("q, Ctrl-C", "end"),
)


class Kind(StrEnum):
    """What can be selected."""

    NODE = "node"
    ACCOUNT = "account"
    TASK = "task"
    EVENT = "event"


class Ref(NamedTuple):
    """Something that can be selected. Its key is the same in every snapshot."""

    kind: Kind
    key: str


class Pane(StrEnum):
    """What fills the screen."""

    TABLES = "tables"
    RECORD = "record"
    HELP = "help"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewState:
    """`typing`: keys edit `wanted`, the text of the filter. `scroll`: lines above the visible ones."""

    sort: str = SORTS[0]
    reverse: bool = False
    wanted: str = ""
    typing: bool = False
    selected: Ref | None = None
    pane: Pane = Pane.TABLES
    scroll: int = 0
    ended: bool = False


def after_key(state: ViewState, key: str, refs: Sequence[Ref], page: int) -> ViewState:
    """The state after a key. `refs`: everything in the tables, in their order; `page`: lines per page."""
    if state.typing:
        return _typed(state, key)
    if key == "q":
        return replace(state, ended=True)
    if state.pane is not Pane.TABLES:
        return _in_pane(state, key, page)
    if (moved := _moved(state, key, refs, page)) is not None:
        return replace(state, selected=moved)
    if key in ("enter", "e"):
        return replace(state, pane=Pane.RECORD, scroll=0) if state.selected in refs else state
    return _chosen(state, key)


def _chosen(state: ViewState, key: str) -> ViewState:
    match key:
        case "/":
            return replace(state, typing=True)
        case "escape":
            return replace(state, wanted="", selected=None)
        case "s":
            return replace(state, sort=SORTS[(SORTS.index(state.sort) + 1) % len(SORTS)])
        case "r":
            return replace(state, reverse=not state.reverse)
        case "?" | "h":
            return replace(state, pane=Pane.HELP, scroll=0)
    return state


def _typed(state: ViewState, key: str) -> ViewState:
    match key:
        case "enter":
            return replace(state, typing=False)
        case "escape":
            return replace(state, typing=False, wanted="")
        case "backspace":
            return replace(state, wanted=state.wanted[:-1])
    return replace(state, wanted=state.wanted + key) if len(key) == 1 else state


def _in_pane(state: ViewState, key: str, page: int) -> ViewState:
    if key in ("escape", "enter", "e", "h", "?"):
        return replace(state, pane=Pane.TABLES, scroll=0)
    if key in ("home", "g"):
        return replace(state, scroll=0)
    return replace(state, scroll=max(0, state.scroll + _step(key, page)))


def _moved(state: ViewState, key: str, refs: Sequence[Ref], page: int) -> Ref | None:
    """What a key selects; `None` if the key does not move the selection, or the tables are empty."""
    if not refs:
        return None
    at = refs.index(state.selected) if state.selected in refs else None
    if key == "tab":
        kinds = list(dict.fromkeys(ref.kind for ref in refs))
        following = 0 if at is None else (kinds.index(refs[at].kind) + 1) % len(kinds)
        return next(ref for ref in refs if ref.kind == kinds[following])
    if key in ("home", "g"):
        return refs[0]
    if key in ("end", "G"):
        return refs[-1]
    step = _step(key, page)
    if not step or at is None:
        return refs[0] if step else None
    return refs[min(max(0, at + step), len(refs) - 1)]


def _step(key: str, page: int) -> int:
    """By how many lines a key moves; 0 for other keys."""
    return {"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "pgdn": page}.get(key, 0)
