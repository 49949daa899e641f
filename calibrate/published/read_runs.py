"""Published runs from a file: CSV or JSON lines with the columns of the shipped table."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO, cast

from calibrate.published.run_row import COLUMNS, NEEDED, PublishedRun, run_from_cells
from model.errors import InputError

RIGHT = "give CSV or JSON lines with the columns of the shipped table"
LONGEST_CELL = 1_000_000
csv.field_size_limit(LONGEST_CELL)


def read_runs(path: Path, name: str | None = None) -> tuple[PublishedRun, ...]:
    """Every run of a file, in order; see :func:`each_run`."""
    return tuple(each_run(path, name))


def each_run(path: Path, name: str | None = None) -> Iterator[PublishedRun]:
    """The runs of a file one by one, in order; `name` is what messages call it, if not its path.

    Raises:
        InputError: the file cannot be read, is not UTF-8, has no rows or lacks a column, an id is
            there twice, or a row or cell is not what it should be; the line names file, row and
            column.
    """
    called = name or str(path)
    seen: set[str] = set()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for cells, where in rows_of(file, called):
                run = run_from_cells(cells, where)
                if run.id in seen:
                    place = f"{where}, column id: {run.id[:40]!r}"
                    raise InputError(place, "is there twice", "give each run an id of its own")
                seen.add(run.id)
                yield run
    except UnicodeDecodeError as error:
        raise InputError(called, f"is not UTF-8 (after row {len(seen)})", RIGHT) from error
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise InputError(called, f"cannot be read ({reason})", RIGHT) from error
    except csv.Error as error:
        raise InputError(called, f"is not CSV ({error}; after row {len(seen)})", RIGHT) from error
    if not seen:
        raise InputError(called, "has no rows", RIGHT)


def rows_of(file: TextIO, name: str) -> Iterator[tuple[Mapping[str, str], str]]:
    """The cells of each row by column, and the words for where it stands."""
    first = file.read(1)
    file.seek(0)
    return json_rows(file, name) if first == "{" else csv_rows(file, name)


def csv_rows(lines: Iterator[str], name: str) -> Iterator[tuple[Mapping[str, str], str]]:
    """The rows of a CSV file; the header may order the columns as it likes, and have others."""
    reader = csv.reader(lines)
    header = next(reader, None)
    if not header:
        raise InputError(name, "is empty", RIGHT)
    for column in NEEDED:
        if column not in header:
            raise InputError(f"{name}, row 1", f"has no column {column}", RIGHT)
    for column in header:
        if header.count(column) > 1:
            raise InputError(f"{name}, row 1", f"has column {column[:40]!r} twice", RIGHT)
    known = [(index, column) for index, column in enumerate(header) if column in COLUMNS]
    for cells in reader:
        if not cells:  # an empty line
            continue
        where = f"{name}, row {reader.line_num}"
        if len(cells) != len(header):
            more = "more" if len(cells) > len(header) else "fewer"
            wrong = f"has {len(cells)} cells, {more} than the {len(header)} columns"
            raise InputError(where, wrong, "quote cells with a comma, and leave none out")
        yield {column: cells[index] for index, column in known}, where


def json_rows(lines: Iterator[str], name: str) -> Iterator[tuple[Mapping[str, str], str]]:
    """The rows of JSON lines: one object each, values as text or numbers; null is not stated."""
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
        for column in NEEDED:
            if column not in cells:
                raise InputError(where, f"has no column {column}", RIGHT)
        for column, value in cells.items():
            if column in COLUMNS and isinstance(value, dict | list):
                place = f"{where}, column {column}"
                raise InputError(place, "is a list or an object", "give text or a number")
        yield {key: "" if value is None else str(value) for key, value in cells.items()}, where
