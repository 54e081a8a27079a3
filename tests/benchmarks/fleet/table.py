"""Tables as text."""

from collections.abc import Sequence


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table: the first column is text, the others are right-aligned."""
    cells = [[str(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    lines = [
        f"{row[0]:{widths[0]}}  " + "  ".join(f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True))
        for row in cells
    ]
    lines.insert(1, "-" * max(map(len, lines)))
    print("\n".join(["", title, "", *lines]), flush=True)
