"""JSON and tables in a text that may hold other lines too: logs, prose, a shell's prompt."""

from __future__ import annotations

import csv
import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TypeVar, cast

from model.errors import InputError

Stated = TypeVar("Stated")

WHOLE = "give the whole output; if the run was cut off, close the last entry"
JSON_START = re.compile(r"^[ \t]*(?=\{|\[[ \t]*(?:$|\{|\]))", re.MULTILINE)
RULE = re.compile(r"[|\s:-]+")
csv.field_size_limit(1_000_000)


def line_of(text: str, position: int) -> int:
    """The line, from 1, in which a position lies."""
    return text.count("\n", 0, position) + 1


def last_above(stated: Sequence[tuple[int, Stated]], line: int, default: Stated) -> Stated:
    """What was stated last above a line; `stated` is in the order of its lines."""
    index = bisect_left(stated, line, key=itemgetter(0))
    return stated[index - 1][1] if index else default


def first_line(pattern: re.Pattern[str], text: str) -> int:
    """The line of a pattern's first match, or 0."""
    found = pattern.search(text)
    return line_of(text, found.start()) if found else 0


def json_objects(text: str, where: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Each object of every JSON document in a text, alone or in a list, with its place.

    A document begins a line with "{", "[{" or a bare "[", as JSON and JSON lines do; other lines
    are passed over.

    Raises:
        InputError: a document is cut off or is not JSON.
    """
    decoder, position = json.JSONDecoder(), 0
    while found := JSON_START.search(text, position):
        line = line_of(text, found.end())
        try:
            document, position = decoder.raw_decode(text, found.end())
        except json.JSONDecodeError as error:
            place = f"{where}, line {error.lineno}"
            raise InputError(place, f"is not whole JSON ({error.msg.lower()})", WHOLE) from error
        except (RecursionError, ValueError) as error:
            raise InputError(f"{where}, line {line}", "is not JSON to be read", WHOLE) from error
        if isinstance(document, Mapping):
            yield f"line {line}", cast("Mapping[str, object]", document)
            continue
        for number, entry in enumerate(cast("list[object]", document), start=1):
            place = f"line {line}, entry {number}"
            if not isinstance(entry, Mapping):
                raise InputError(f"{where}, {place}", "is not an object", WHOLE)
            yield place, cast("Mapping[str, object]", entry)


def markdown_rows(
    text: str, where: str, wanted: Sequence[str]
) -> Iterator[tuple[int, Mapping[str, str]]]:
    """The rows of every Markdown table whose header has the wanted columns, with their lines.

    Raises:
        InputError: a row has more or fewer cells than its header.
    """
    header: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.strip().lstrip("> ").strip()
        if not bare.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in bare.removeprefix("|").removesuffix("|").split("|")]
        if set(wanted) <= set(cells):
            header = cells
        elif header and not RULE.fullmatch(bare):
            if len(cells) != len(header):
                wrong = f"has {len(cells)} cells under {len(header)} columns"
                raise InputError(f"{where}, line {number}", wrong, WHOLE)
            yield number, dict(zip(header, cells, strict=True))


def csv_rows(
    text: str, where: str, wanted: Sequence[str]
) -> Iterator[tuple[int, Mapping[str, str]]]:
    """The rows below a CSV header that has the wanted columns, with their lines.

    Lines before the header are passed over; a header in the middle begins another table.

    Raises:
        InputError: a row has more or fewer cells than its header, or a quote is not closed.
    """
    skipped = max(header_line(text, wanted, ",") - 1, 0)
    reader = csv.reader(text.split("\n")[skipped:], strict=True)
    header: list[str] = []
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if set(wanted) <= set(stripped):
                header = stripped
            elif header and any(stripped):
                if len(cells) != len(header):
                    wrong = f"has {len(cells)} cells under {len(header)} columns"
                    raise InputError(f"{where}, line {skipped + reader.line_num}", wrong, WHOLE)
                yield skipped + reader.line_num, dict(zip(header, stripped, strict=True))
    except csv.Error as error:
        place = f"{where}, line {skipped + reader.line_num}"
        raise InputError(place, f"is not CSV ({error})", WHOLE) from None


def header_line(text: str, wanted: Sequence[str], separator: str) -> int:
    """The first line that names all wanted columns between separators, or 0."""
    for number, line in enumerate(text.split("\n"), start=1):
        if wanted[0] in line:
            bare = line.strip().lstrip("> ").strip("| ")
            if set(wanted) <= {cell.strip().strip('"') for cell in bare.split(separator)}:
                return number
    return 0
