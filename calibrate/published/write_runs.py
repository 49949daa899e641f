"""Published runs as a file in the columns they are read from, written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from calibrate.published.read_runs import read_runs
from calibrate.published.run_row import COLUMNS, PublishedRun
from model.errors import InputError
from model.units import GB, GIB
from model.whole_file import replace_file

SUFFIXES = (".csv", ".jsonl")
DIGITS = 12
"""Digits of a number in a cell: more than anyone measures, fewer than binary rounding shows."""


def cells_of(run: PublishedRun) -> dict[str, str | float | None]:
    """The cells of a run by column, in the columns' units; None where nothing is stated."""

    def number(value: float | None, unit: float = 1.0) -> float | None:
        return None if value is None else float(f"{value / unit:.{DIGITS}g}")

    values = (
        *(run.id, run.chip, run.gpu_cores, number(run.nominal_bandwidth_bytes_per_s, GB)),
        *(number(run.memory_bytes, GIB), run.runtime, run.runtime_version, run.target),
        *(number(run.target_params, 1e9), number(run.target_active_params, 1e9), run.quant),
        *(number(run.model_bytes, GB), run.strategy, run.draft, run.draft_length),
        *(number(run.skip_fraction), run.acceptance, number(run.tokens_per_pass), run.batch),
        *(number(run.context_tokens), number(run.prefill_tokens_per_s)),
        *(number(run.decode_tokens_per_s), number(run.baseline_tokens_per_s)),
        *(number(run.speedup), run.source, run.locator, run.date, run.task),
        *(run.acceptance_def, run.notes, run.trust),
    )
    return {
        column: None if value == "" else value
        for column, value in zip(COLUMNS, values, strict=True)
    }


def runs_text(runs: Sequence[PublishedRun], suffix: str, columns: Sequence[str] = COLUMNS) -> str:
    """Runs as CSV with its header, or as JSON lines, by the suffix of a file's name."""
    if suffix == ".jsonl":
        return "".join(json.dumps(cells_of(run), ensure_ascii=False) + "\n" for run in runs)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: text_of(cell) for name, cell in cells_of(run).items()} for run in runs)
    return stream.getvalue()


def text_of(cell: str | float | None) -> str:
    """A cell as CSV has it; a whole number without its point."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None else str(cell)


def write_runs(runs: Sequence[PublishedRun], path: Path) -> None:
    """Write runs to a .csv or .jsonl file in place of what is there.

    Raises:
        InputError: the name ends in neither, or nothing can be written there.
    """
    replace_file(path, runs_text(runs, suffix_of(path)))


def append_runs(runs: Sequence[PublishedRun], path: Path) -> tuple[PublishedRun, ...]:
    """Add the runs whose ids a file has not got yet, in its own order of columns; those added.

    What is there stays as it is, byte for byte.

    Raises:
        InputError: the file is no file of runs, has other columns, or cannot be written.
    """
    suffix = suffix_of(path)
    there = {run.id for run in read_runs(path)}
    added = tuple(run for run in runs if run.id not in there)
    old = path.read_bytes().decode("utf-8")
    header: Sequence[str] = COLUMNS
    if suffix == ".csv":
        header = next(csv.reader(io.StringIO(old.removeprefix("\ufeff"))))
        different = sorted(set(header) ^ set(COLUMNS))
        if different:
            wrong = f"has other columns ({', '.join(different[:3])})"
            raise InputError(str(path), wrong, "give another file for --output")
    text = runs_text(added, suffix, header)
    new = text.partition("\n")[2] if suffix == ".csv" else text
    if added:
        replace_file(path, old + ("" if old.endswith("\n") else "\n") + new)
    return added


def suffix_of(path: Path) -> str:
    """The suffix of a file's name that says how it is written."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(str(path), "ends in neither .csv nor .jsonl", "name it runs.csv")
    return suffix
