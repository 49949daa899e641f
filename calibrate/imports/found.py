"""What was found in a text, before it is a run: its cells by column, and where they stand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import final

from calibrate.published.run_row import PublishedRun, run_from_cells

ABOUT = ("notes", "source_url_or_repo", "quote_or_locator")
"""Columns that tell of a measurement; two rows that differ in these alone are the same one."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement.

    Attributes:
        place: Where it stands in its text, such as "line 12".
        cells: Text by column of the published table; a column that is missing is not stated.
        stamp: What tells it from a repetition with the same numbers, such as its time.
        described: Columns that the format describes without naming, so that a name may replace
            what it says ("llama 8B" is no model's name).
    """

    place: str
    cells: Mapping[str, str]
    stamp: str = ""
    described: frozenset[str] = frozenset()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The measurements of a text in order, and a line for each that cannot be a run."""

    rows: tuple[Row, ...]
    left_out: tuple[str, ...] = ()


def row_id(row: Row, format_name: str) -> str:
    """An id made from what was measured, so that importing it again gives the same."""
    content = sorted((column, cell) for column, cell in row.cells.items() if column not in ABOUT)
    digest = sha256(json.dumps([content, row.stamp]).encode()).hexdigest()
    return f"{format_name}-{digest[:12]}"


def run_of(row: Row, format_name: str, where: str, filled: Mapping[str, str]) -> PublishedRun:
    """The run in a row; `filled` are cells that a person gave on top.

    Raises:
        InputError: a cell is not what its column says.
    """
    notes = [f"imported from {format_name}", row.cells.get("notes", "")]
    if filled:
        notes.append(f"given at import: {', '.join(filled)}")
    cells = {
        "trust": "medium",
        "source_url_or_repo": where,
        "quote_or_locator": row.place,
        **row.cells,
        **filled,
        "id": row_id(row, format_name),
        "notes": "; ".join(note for note in notes if note),
    }
    return run_from_cells(cells, f"{where}, {row.place}")
