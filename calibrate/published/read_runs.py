"""Published runs from a file: CSV or JSON lines with the columns of the shipped table."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from calibrate.published.run_row import COLUMNS, NEEDED, PublishedRun, run_from_cells
from model.errors import InputError

RIGHT = "give CSV or JSON lines with the columns of the shipped table"
csv.field_size_limit(1_000_000)


def read_runs(path: Path) -> tuple[PublishedRun, ...]:
    """Every run of a file, in order.

    Raises:
        InputError: the file cannot be read, is not UTF-8, has no rows or lacks a column, or a cell
            is not what its column says; the line names file, row and column.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.read(1)
            file.seek(0)
            rows = json_rows(file, str(path)) if first == "{" else csv_rows(file, str(path))
            runs = tuple(run_from_cells(cells, where) for where, cells in rows)
    except UnicodeDecodeError as error:
        raise InputError(str(path), f"is not UTF-8 (byte {error.start})", RIGHT) from error
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise InputError(str(path), f"cannot be read ({reason})", RIGHT) from error
    except csv.Error as error:
        raise InputError(str(path), f"is not CSV ({error})", RIGHT) from error
    if not runs:
        raise InputError(str(path), "has no rows", RIGHT)
    return runs


def csv_rows(lines: Iterator[str], name: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The rows of a CSV file by column; the header may order them as it likes."""
    reader = csv.DictReader(lines, restkey="", restval="")
    header = list(reader.fieldnames or [])
    if not header:
        raise InputError(name, "is empty", RIGHT)
    for column in NEEDED:
        if column not in header:
            raise InputError(f"{name}, row 1", f"has no column {column}", RIGHT)
    for column in header:
        if header.count(column) > 1:
            raise InputError(f"{name}, row 1", f"has column {column} twice", RIGHT)
    for cells in reader:
        where = f"{name}, row {reader.line_num}"
        if cells.get(""):
            raise InputError(where, f"has more cells than the {len(header)} columns", RIGHT)
        yield where, {column: cells.get(column, "") for column in COLUMNS if column in header}


def json_rows(lines: Iterator[str], name: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The rows of JSON lines: one object each, values as text or numbers."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{name}, row {number}"
        try:
            record: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(where, "is not JSON", RIGHT) from error
        if not isinstance(record, Mapping):
            raise InputError(where, "is not an object", RIGHT)
        cells = cast("Mapping[str, object]", record)
        yield where, {key: "" if value is None else str(value) for key, value in cells.items()}
