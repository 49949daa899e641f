"""One published run as a record, and the columns it is read from.

The columns are those of the shipped table; units stand in their names and are turned to SI here.
A cell that is not what its column says is refused by row and column, never guessed at.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from model.errors import InputError
from model.units import GB, GIB

COLUMNS = (
    *("id", "chip", "gpu_cores", "mem_bandwidth_gb_s_nominal", "memory_gb", "runtime"),
    *("runtime_version", "target_model", "target_params_b", "target_active_params_b", "quant"),
    *("model_bytes_gb", "strategy", "draft_model", "k", "skip_fraction", "acceptance"),
    *("tokens_per_pass", "batch", "context_tokens", "prefill_tok_s", "decode_tok_s"),
    *("baseline_tok_s", "speedup", "source_url_or_repo", "quote_or_locator", "date", "task"),
    *("acceptance_def", "notes", "trust"),
)
NEEDED = ("id", "chip", "runtime", "target_model", "quant", "strategy")
"""Columns that a table must have; of others, and of most cells, blank means not stated."""
NEVER_BLANK = ("id", "strategy")

TRUSTS = ("high", "medium", "low")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRun:
    """A run that somebody measured and published; None or empty where it does not say.

    `acceptance` is the text of the cell, since it may be a list by position; `acceptance_def` says
    which of its meanings it has. `draft_length` are tokens drafted in a round; rates are of all
    sequences together.
    """

    id: str
    chip: str
    gpu_cores: int | None
    nominal_bandwidth_bytes_per_s: float | None
    memory_bytes: float | None
    runtime: str
    runtime_version: str
    target: str
    target_params: float | None
    target_active_params: float | None
    quant: str
    model_bytes: float | None
    strategy: str
    draft: str
    draft_length: int | None
    skip_fraction: float | None
    acceptance: str
    tokens_per_pass: float | None
    batch: int
    context_tokens: float | None
    prefill_tokens_per_s: float | None
    decode_tokens_per_s: float | None
    baseline_tokens_per_s: float | None
    speedup: float | None
    source: str
    locator: str
    date: str
    task: str
    acceptance_def: str
    notes: str
    trust: str


def run_from_cells(cells: Mapping[str, str], where: str) -> PublishedRun:
    """The record in the cells of a row, by column; `where` names file and row.

    Raises:
        InputError: a cell that is missing, no number, negative or not finite.
    """

    def text(column: str) -> str:
        value = (cells.get(column) or "").strip()
        if not value and column in NEVER_BLANK:
            raise InputError(f"{where}, column {column}", "is empty", "give a value")
        # A million rows repeat the same few chips, runtimes and sources.
        return value if column == "id" else sys.intern(value)

    def number(column: str, unit: float = 1.0) -> float | None:
        value = text(column)
        if not value:
            return None
        place = f"{where}, column {column}: {value[:40]!r}"
        try:
            found = float(value)
        except ValueError:
            raise InputError(place, "is not a number", "give digits alone, no unit") from None
        if not math.isfinite(found) or found < 0.0:
            raise InputError(place, "is not possible", "give a number of 0 or more")
        return found * unit

    def whole(column: str) -> int | None:
        found = number(column)
        if found is not None and found != int(found):
            place = f"{where}, column {column}: {found:g}"
            raise InputError(place, "is not a whole number", "give one")
        return None if found is None else int(found)

    trust = text("trust") or "medium"
    if trust not in TRUSTS:
        place = f"{where}, column trust: {trust[:40]!r}"
        raise InputError(place, "is unknown", f"one of {', '.join(TRUSTS)}")
    return PublishedRun(
        id=text("id"),
        chip=text("chip"),
        gpu_cores=whole("gpu_cores"),
        nominal_bandwidth_bytes_per_s=number("mem_bandwidth_gb_s_nominal", GB),
        memory_bytes=number("memory_gb", GIB),
        runtime=text("runtime"),
        runtime_version=text("runtime_version"),
        target=text("target_model"),
        target_params=number("target_params_b", 1e9),
        target_active_params=number("target_active_params_b", 1e9),
        quant=text("quant"),
        model_bytes=number("model_bytes_gb", GB),
        strategy=text("strategy"),
        draft=text("draft_model"),
        draft_length=whole("k"),
        skip_fraction=number("skip_fraction"),
        acceptance=text("acceptance"),
        tokens_per_pass=number("tokens_per_pass"),
        batch=whole("batch") or 1,
        context_tokens=number("context_tokens"),
        prefill_tokens_per_s=number("prefill_tok_s"),
        decode_tokens_per_s=number("decode_tok_s"),
        baseline_tokens_per_s=number("baseline_tok_s"),
        speedup=number("speedup"),
        source=text("source_url_or_repo"),
        locator=text("quote_or_locator"),
        date=text("date"),
        task=text("task"),
        acceptance_def=text("acceptance_def"),
        notes=text("notes"),
        trust=trust,
    )
