"""What a person knows of a benchmark and its output does not say: it fills blanks, no more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import final

from calibrate.imports.cells import chip_name, mlx_name, plain_number, whole, written
from calibrate.imports.found import Row
from model.errors import InputError

COLUMNS = {
    "chip": "chip",
    "gpu_cores": "gpu_cores",
    "memory": "memory_gb",
    "model": "target_model",
    "quant": "quant",
    "date": "date",
}
DATE = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What was given on the command line, as text; None where nothing was. Memory is in GiB.

    Raises:
        InputError: a value is empty, no count, no size or no date.
    """

    chip: str | None = None
    gpu_cores: str | None = None
    memory: str | None = None
    model: str | None = None
    quant: str | None = None
    date: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value: str | None = getattr(self, field.name)
            if value is not None and not value.strip():
                raise InputError(f"{flag(field.name)} {value!r}", "is empty", "give a value")
        if self.gpu_cores is not None:
            whole(self.gpu_cores, flag("gpu_cores"))
        if self.memory is not None:
            plain_number(self.memory, flag("memory"), ("GB", "GiB"))
        if self.date is not None and not DATE.fullmatch(self.date):
            right = "give a date such as 2026-11-29"
            raise InputError(f"{flag('date')} {self.date}", "is no date", right)


def flag(name: str) -> str:
    """A field of `Given` as its option."""
    return f"--{name.replace('_', '-')}"


def cell_of(name: str, value: str) -> str:
    """A given value as its column's cell."""
    if name == "chip":
        return chip_name(value)
    if name == "memory":
        return written(plain_number(value, flag(name), ("GB", "GiB")))
    return value.strip()


def fill(row: Row, given: Given, where: str) -> Mapping[str, str]:
    """The cells that a row leaves blank, or describes without naming, and a person gave.

    Raises:
        InputError: the row states something else than was given.
    """
    filled: dict[str, str] = {}
    for name, column in COLUMNS.items():
        value: str | None = getattr(given, name)
        if value is None:
            continue
        cell, stated = cell_of(name, value), row.cells.get(column, "")
        if not stated or column in row.described:
            filled[column] = cell
        elif not agree(column, stated, cell):
            wrong = f"is not what {where}, {row.place} states ({stated})"
            raise InputError(f"{flag(name)} {value}", wrong, f"leave {flag(name)} out")
    return filled


def agree(column: str, stated: str, given: str) -> bool:
    """Whether a given cell says what is stated, or less of it (a year of a date)."""
    if column in ("memory_gb", "gpu_cores"):
        return float(stated) == float(given)
    if column == "date":
        return stated.startswith(given)
    names = (given, mlx_name(given)[0]) if column == "target_model" else (given,)
    return stated.casefold() in {name.casefold() for name in names}
