"""Plain text tables: numbers right, words left, nothing drawn."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; a column of numbers is set right.

    >>> print(table(["model", "GB"], [["llama-3.1-8b", "4.52"], ["qwen3-4b", "12.26"]]))
    model            GB
    llama-3.1-8b   4.52
    qwen3-4b      12.26
    """
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(cell[:1] in "+-.0123456789" for cell in column[1:]) for column in columns]
    lines = [
        "  ".join(
            cell.rjust(width) if aligned else cell.ljust(width)
            for cell, width, aligned in zip(cells, widths, right, strict=True)
        ).rstrip()
        for cells in (header, *rows)
    ]
    return "\n".join(lines)
