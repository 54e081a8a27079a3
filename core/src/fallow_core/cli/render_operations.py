"""`fallow doctor`, `switch`, `adopt`, `restore` and others as lines for people."""

from collections.abc import Sequence

from fallow_core.api.operations import (
    Adopted,
    CheckResult,
    Forgotten,
    LostStateAccepted,
    Restored,
    RestoredRow,
    Switched,
)
from fallow_core.cli.table import amount, marked, paragraph
from fallow_hookspecs import Resources

MARKS = {True: "ok   ", False: "WRONG", None: "?    "}


def findings(found: Sequence[CheckResult]) -> list[str]:
    """`fallow doctor`: one line a finding, and below what is wrong what to change."""
    lines = []
    for each in found:
        lines += paragraph(f"{MARKS[each.ok]}  {each.about}: {each.subject}: {each.detail}", hanging=" " * 7)
        if each.advice and each.ok is not True:
            lines += paragraph(f"→ {each.advice}", " " * 7, "  ")
    return [*lines, "", f"{len(found)} findings, {sum(each.ok is False for each in found)} wrong"]


def switched(answer: Switched) -> list[str]:
    """`fallow switch`."""
    return [f"{answer.scope}: {answer.state}"]


def lost_state_accepted(answer: LostStateAccepted) -> list[str]:
    """`fallow accept-lost-state`: the files that count no longer, and where they are."""
    return [f"{each.file}: given up, and kept as {each.kept_as}" for each in answer.files]


def adopted(answer: Adopted) -> list[str]:
    """`fallow adopt`: the nodes whose first allocations may be taken back."""
    nodes = ", ".join(answer.nodes) or "no node: none is seen"
    return [f"{answer.cluster}: what was there at first may now be taken back on {nodes}"]


def forgotten(answer: Forgotten) -> list[str]:
    """`fallow forget`: what counts no longer."""
    nodes = f" ({', '.join(answer.nodes)})" if answer.nodes else ""
    if not answer.configured:
        return [f"{answer.cluster}: forgotten{nodes}; others may be lent what it had"]
    return [f"{answer.cluster}: {f'forgotten{nodes}' if nodes else 'every node was reported: nothing to forget'}"]


def restored(answer: Restored) -> list[str]:
    """`fallow restore`: the result for each row and control group, and what kept a size from being put back."""
    lines = []
    for row in answer.rows:
        lines += paragraph(f"{row.cluster} {row.framework_node}: {row.detail}; {_sizes(row)}")
    lines += [f"control group {group}: put back as it was found" for group in answer.groups]
    lines += marked(answer.problems)
    return lines or ["no node of any cluster is here: nothing to put back"]


def _sizes(row: RestoredRow) -> str:
    """The size in force, and the one that Fallow found, where it is another one or is not known to be in force."""
    now = "its size is not known" if row.in_force is None else f"it has {_words(row.in_force)}"
    if row.original is None or row.original == row.in_force:
        return now
    return f"{now}; Fallow found {_words(row.original)}"


def _words(size: Resources) -> str:
    return f"{amount('cpu', size.cpu_milli)} cores and {amount('memory', size.memory_bytes)} GiB of memory"
