"""Progress by method and task, from published rows: what a prediction starts from before a run.

Progress belongs to a pair of models and a task, and the same set-up commits three times as many
tokens on one task as on another. So an answer is a median over published pairs with its spread
and the rows it came from, for one method and one task; where nobody published, it is a refusal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import TypeVar, final

from model.errors import InputError, unknown_name
from model.progress.acceptance import MAX_DRAFT_LENGTH, Acceptance, from_tokens_per_pass
from model.progress.published_rows import PublishedRow, published_rows
from model.progress.vocabulary import Measure, Method, Task

_Word = TypeVar("_Word", Method, Task)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A number over published pairs: how many there are, their median and their range."""

    pairs: int
    median: float
    lowest: float
    highest: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """What published pairs commit per pass with one method on one task.

    `stated` is what the rows say, each measure by itself. `tokens_per_pass` is at `draft_length`,
    or at the settings that were published where that is None. The acceptances are those of
    independent positions that commit its median, lowest and highest; None without a draft length.
    """

    method: Method
    task: Task
    draft_length: int | None
    rows: tuple[PublishedRow, ...]
    stated: tuple[tuple[Measure, Spread], ...]
    tokens_per_pass: Spread
    acceptance: Acceptance | None
    lowest_acceptance: Acceptance | None
    highest_acceptance: Acceptance | None

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the rows were published, each place once."""
        return tuple(dict.fromkeys(row.source for row in self.rows))

    @property
    def draft_lengths(self) -> tuple[int, ...]:
        """The draft lengths of the rows, where they say theirs."""
        return tuple(sorted({row.draft_length for row in self.rows if row.draft_length}))

    @property
    def extrapolated(self) -> bool:
        """Whether no row drafted as many tokens as are asked for; deeper positions do worse."""
        return self.draft_length is not None and self.draft_length > max(self.draft_lengths)


def published_progress(method: str, task: str, draft_length: int | None = None) -> TaskProgress:
    """What was published of `method` on `task`, for drafts of `draft_length` tokens.

    A pair counts once: by the median of its rows, and with a draft length only of those whose own
    is nearest to it (in ratio). A row counts for another draft length by its acceptance per
    position, which is an assumption: published acceptance falls with the position.
    Without a draft length, every row counts that says how many tokens a pass committed.

    Raises:
        InputError: an unknown method or task, a draft length where there is no draft, or no
            published row that can be used; the line says which tasks have rows.

    >>> progress = published_progress("mtp-head", "writing", 2)
    >>> progress.tokens_per_pass.pairs, progress.extrapolated
    (3, False)
    """
    wanted_method, wanted_task = _named(Method, "method", method), _named(Task, "task", task)
    if draft_length is not None:
        _check_draft_length(wanted_method, draft_length)

    def tokens_of(row: PublishedRow) -> float | None:
        return _tokens(row, draft_length)

    usable = [row for row in published_rows() if row.method is wanted_method and tokens_of(row)]
    of_task = [row for row in usable if row.task is wanted_task]
    if not of_task:
        raise _nothing_published(wanted_method, wanted_task, draft_length, usable)
    rows = [row for pair in _pairs(of_task) for row in _nearest(pair, draft_length)]
    tokens = _spread(rows, tokens_of)

    def acceptance(value: float) -> Acceptance | None:
        if draft_length is None:
            return None
        return Acceptance(by_position=(from_tokens_per_pass(value, draft_length),))

    return TaskProgress(
        method=wanted_method,
        task=wanted_task,
        draft_length=draft_length,
        rows=tuple(rows),
        stated=_stated(rows),
        tokens_per_pass=tokens,
        acceptance=acceptance(tokens.median),
        lowest_acceptance=acceptance(tokens.lowest),
        highest_acceptance=acceptance(tokens.highest),
    )


def _named(words: type[_Word], kind: str, name: str) -> _Word:
    try:
        return words(name.lower())
    except ValueError:
        raise unknown_name(kind, name, [word.value for word in words]) from None


def _check_draft_length(method: Method, draft_length: int) -> None:
    if method is Method.BLOCK_DIFFUSION:
        wrong = "means nothing for block diffusion, which drafts nothing"
        raise InputError(f"draft length {draft_length}", wrong, "leave it out")
    if not 1 <= draft_length <= MAX_DRAFT_LENGTH:
        right = f"give 1 to {MAX_DRAFT_LENGTH}"
        raise InputError(f"draft length {draft_length}", "is not one that is priced", right)


def _tokens(row: PublishedRow, draft_length: int | None) -> float | None:
    """Tokens per pass at a draft length, or else as published; None where the row cannot say."""
    if draft_length is None and row.tokens_per_pass is not None:
        return row.tokens_per_pass
    length = draft_length or row.draft_length
    acceptance = row.by_position
    if length is None or acceptance is None:
        return None
    return acceptance.tokens_per_pass(length)


def _pairs(rows: list[PublishedRow]) -> list[list[PublishedRow]]:
    ordered = sorted(rows, key=lambda row: row.pair)
    return [list(group) for _, group in groupby(ordered, key=lambda row: row.pair)]


def _nearest(rows: list[PublishedRow], draft_length: int | None) -> list[PublishedRow]:
    if draft_length is None:
        return rows

    def distance(row: PublishedRow) -> float:
        return abs(math.log((row.draft_length or 1) / draft_length))

    nearest = min(map(distance, rows))
    return [row for row in rows if distance(row) == nearest]


def _spread(rows: list[PublishedRow], number: Callable[[PublishedRow], float | None]) -> Spread:
    by_pair = [
        [value for row in pair if (value := number(row)) is not None] for pair in _pairs(rows)
    ]
    medians = [median(values) for values in by_pair if values]
    return Spread(
        pairs=len(medians), median=median(medians), lowest=min(medians), highest=max(medians)
    )


def _stated(rows: list[PublishedRow]) -> tuple[tuple[Measure, Spread], ...]:
    """Each measure that a row states, over the rows that state it."""

    def spread(measure: Measure) -> Spread:
        return _spread(rows, lambda row: row.stated.get(measure))

    present = {measure for row in rows for measure in row.stated}
    return tuple((measure, spread(measure)) for measure in Measure if measure in present)


def _nothing_published(
    method: Method, task: Task, draft_length: int | None, usable: list[PublishedRow]
) -> InputError:
    """The refusal, with the tasks that have what was asked for."""
    tasks = sorted({row.task.value for row in usable if row.task is not None})
    tasks = [name for name in tasks if name != task.value]
    if not tasks:
        what = "tokens per pass" if draft_length is None else "acceptance at a draft length"
        wrong = f"has no published row that says its {what}"
        return InputError(str(method), wrong, "give one of your own")
    wrong = "has no published row that says how many tokens a pass commits"
    if draft_length is not None:
        wrong = "has no published row with a labelled acceptance and its draft length"
    right = f"tasks that have one: {', '.join(tasks)}; or give a number of your own"
    return InputError(f"{method} on task {task}", wrong, right)
