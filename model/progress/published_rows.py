"""One row of the published acceptance table, and the acceptance per position that it implies."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeVar, final

from model import catalog
from model.errors import InputError
from model.progress.acceptance import (
    Acceptance,
    from_accepted_fraction,
    from_draft_share,
    from_survival,
    from_tokens_per_pass,
    tokens_per_pass,
)
from model.progress.vocabulary import MEASURES, METHODS, TASKS, Measure, Method, Task

AGREEMENT = 1.05
"""Two statements of one row may differ by this factor in E(k): rounding, and a cut last round."""

NUMBERS = re.compile(r"\d*\.?\d+(?: / \d*\.?\d+)*")
"""One number, or one per depth. "0.90-1.00", "~2" and "up to 3" are not a number."""

CONVERSIONS: Final[dict[Measure, Callable[[float, int], float]]] = {
    Measure.TOKENS_PER_PASS: from_tokens_per_pass,
    Measure.ACCEPTED_FRACTION: from_accepted_fraction,
    Measure.ACCEPTED_PER_ROUND: lambda accepted, k: from_tokens_per_pass(1.0 + accepted, k),
    Measure.DRAFT_SHARE: from_draft_share,
}
"""The acceptance of independent positions from a number and its draft length."""

_Number = TypeVar("_Number", int, float)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """What one published row states about progress.

    `acceptance` counts what `measure` says; it is empty where none is stated or what is stated is
    not a number. `tokens_per_pass` counts output tokens per target pass, 1 for plain decoding.
    `draft_length` is None where it is not stated or not fixed.
    """

    id: str
    method_text: str
    method: Method | None
    target: str
    draft: str
    task_text: str
    task: Task | None
    draft_length: int | None
    skip_fraction: float | None
    acceptance: tuple[float, ...]
    measure: Measure
    tokens_per_pass: float | None
    hardware: str
    source: str
    locator: str

    @property
    def pair(self) -> tuple[str, str, str]:
        """What progress belongs to: the method as published, the target and the draft."""
        return self.method_text, self.target, self.draft

    @property
    def stated(self) -> dict[Measure, float]:
        """The single numbers of the row, each by what it counts; tokens per pass come first."""
        numbers: dict[Measure, float] = {}
        if self.tokens_per_pass is not None:
            numbers[Measure.TOKENS_PER_PASS] = self.tokens_per_pass
        if len(self.acceptance) == 1:
            numbers[self.measure] = self.acceptance[0]
        return numbers

    @property
    def by_position(self) -> Acceptance | None:
        """The acceptance that gives back what the row states, or None where there is none.

        Shares by depth give a rate per position. Any other labelled number, with its draft
        length, gives the one rate of independent positions that has its E(k). There is none
        without a draft length, for an unlabelled number, for a number that no acceptance gives,
        and where two numbers of the row mean different E(k): some rounds drafted fewer than k.
        """
        return _implied_acceptance(self)


@cache
def published_rows() -> tuple[PublishedRow, ...]:
    """Every packaged row, in the order of the table.

    Raises:
        InputError: the table has a method, task or definition that the vocabulary does not, or
            a cell that is not what its column holds.
    """
    reader = csv.DictReader(io.StringIO(catalog.acceptance_table_text()))
    return tuple(read_row(cells) for cells in reader)


def read_row(cells: dict[str, str]) -> PublishedRow:
    """One row from its cells; a blank cell means "not stated".

    Raises:
        InputError: as for :func:`published_rows`.
    """
    row = cells["id"]
    for column, words in (("method", METHODS), ("task", TASKS), ("acceptance_def", MEASURES)):
        if cells[column] not in words:
            value = f"{row}: {column} {cells[column]!r}"
            raise InputError(value, "is not in the vocabulary", "add it to vocabulary.py")
    acceptance = _numbers(cells["acceptance"])
    if any(value > 1.0 for value in acceptance) and cells["acceptance_def"] != "accepted per round":
        raise InputError(f"{row}: acceptance {cells['acceptance']}", "is above 1", "give a share")
    tokens = _numbers(cells["tokens_per_pass"])
    return PublishedRow(
        id=row,
        method_text=cells["method"],
        method=METHODS[cells["method"]],
        target=cells["target"],
        draft=cells["draft"],
        task_text=cells["task"],
        task=TASKS[cells["task"]],
        draft_length=_stated(row, "draft_length", cells, int),
        skip_fraction=_stated(row, "skip_fraction", cells, float),
        acceptance=acceptance,
        measure=MEASURES[cells["acceptance_def"]] if acceptance else Measure.TOKENS_PER_PASS,
        tokens_per_pass=tokens[0] if tokens else None,
        hardware=cells["hardware"],
        source=cells["source"],
        locator=cells["locator"],
    )


@cache  # solved once: a prediction asks every row of a method, at each draft length
def _implied_acceptance(row: PublishedRow) -> Acceptance | None:
    k = row.draft_length
    if k is None:
        return None
    if row.measure is Measure.SURVIVAL:
        return from_survival(row.acceptance)
    stated = [pair for pair in row.stated.items() if pair[0] in CONVERSIONS]
    try:
        rates = [CONVERSIONS[measure](value, k) for measure, value in stated]
    except InputError:
        return None
    tokens = [float(tokens_per_pass(rate, k)) for rate in rates]
    if not rates or max(tokens) > AGREEMENT * min(tokens):
        return None
    return Acceptance(by_position=(rates[0],))


def _numbers(text: str) -> tuple[float, ...]:
    if not NUMBERS.fullmatch(text):
        return ()
    return tuple(float(number) for number in text.split(" / "))


def _stated(row: str, column: str, cells: dict[str, str], read: type[_Number]) -> _Number | None:
    text = cells[column]
    if not text:
        return None
    try:
        return read(text)
    except ValueError:
        raise InputError(f"{row}: {column} {text!r}", "is not a number", "give one") from None
