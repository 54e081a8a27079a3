"""What an agent would end for overdraft, as lines for people: it sends no sizes, so nothing else is due there."""

from typing import Any

from fallow_core.cli.table import amount, paragraph

Answer = dict[str, Any]


def due(row: Answer) -> list[str]:
    """For `fallow explain`: what a controller says has to be taken back here, and of whom; or why nobody is asked."""
    if row["why"]:
        return paragraph(f"nothing is due: no row of a controller's ledger counts; {row['why']}")
    lines = []
    for name, account in row["accounts"].items():
        allocated, target, may_pay = (amount("memory", account[key]) for key in ("allocated", "target", "may_pay"))
        stopped = "; nothing of it is to run" if account["stopped"] else ""
        text = f"{name}: {allocated} GiB allocated, target {target} GiB, may still lose {may_pay} GiB{stopped}"
        lines += paragraph(text)
    if row["to_take_back"]:
        over = amount("memory", row["to_take_back"])
        return [*paragraph(f"due: {over} GiB less of memory is to be allocated, says the controller's ledger"), *lines]
    return ["nothing is due: the controller's ledger has no more allocated than can be lent", *lines]
