"""Spec-Bench: its leaderboard tables (Markdown or CSV) and the answers its runs write (JSON lines).

*Leaderboards* give each method's speedup over plain decoding by task and in all, and its mean
accepted tokens, which is 1.00 for plain decoding and so is our tokens per pass. A method gives one
run for the overall speedup, with its tokens per pass, and one for each task, without, for it is a
mean over all. Device, model and precision stand in the list above a table.

*Answers* hold for each question the new tokens, the wall time and the accept lengths of its
rounds. Spec-Bench's rate is the mean over questions of tokens over time, prompt included; its mean
accepted tokens is over all rounds. A run is made for all questions, and for each of several tasks.
Tasks and questions that a method and plain decoding share give its speedup, if both are imported
together (`with_baselines`).

Learnt from hemingkx/Spec-Bench: Leaderboard.md, evaluation/eval.py and speed.py, eval.sh. Tree
drafts are not told from chains, so k stays blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from calibrate.imports.cells import plain_number, written
from calibrate.imports.documents import (
    csv_rows,
    first_line,
    header_line,
    last_above,
    markdown_rows,
)
from calibrate.imports.found import Found, Row
from calibrate.imports.spec_bench_answers import SIGN, answer_rows
from calibrate.published.run_row import PublishedRun
from model.errors import InputError

NAME = "spec-bench"
RUNTIME = "Spec-Bench"
TABLE = ("Models", "#Mean Accepted Tokens", "Overall")
LOOKUPS = ("PLD", "Lookahead", "REST", "Recycling")
"""Methods that draft by copying from the text or from stored text, without a network."""

LINK = re.compile(r"\[(.+)\]\(\S+?\)")
MEDALS = "🏅🥈🥉"
DEVICE = re.compile(r"Device: (?:a single )?(.+?)(?: GPU)?(?: \((\d+)GB\))?(?: with .+)?$")
ENVIRONMENT = re.compile(r"Testing environment: (.+)$")
SETTINGS = re.compile(r"Experimental Settings: (.+)$")
PRECISION = re.compile(r"\b([A-Z]{2}\d{1,2}) precision", re.IGNORECASE)
HEADING = re.compile(r"#{2,6} +(.+)$")


def recognises(text: str) -> int:
    """The first line that shows it, or 0."""
    table = header_line(text, TABLE, "|") or header_line(text, TABLE, ",")
    return table or first_line(SIGN, text)


def read(text: str, where: str) -> Found:
    """The methods and answers of a text as rows.

    Raises:
        InputError: a row is cut off or holds what is no number.
    """
    rows: list[Row] = []
    settings = settings_above(text)
    for number, cells in [*markdown_rows(text, where, TABLE), *csv_rows(text, where, TABLE)]:
        rows += method_rows(cells, last_above(settings, number, {}), where, number)
    answers = answer_rows(text, where)
    return Found(rows=(*rows, *answers.rows), left_out=answers.left_out)


def method_rows(
    cells: Mapping[str, str], setting: Mapping[str, str], where: str, number: int
) -> Iterator[Row]:
    """The runs in one row of a leaderboard."""
    named = cells["Models"].strip(MEDALS + " *")
    link = LINK.fullmatch(named)
    method = link[1] if link else named
    if not method:
        raise InputError(f"{where}, line {number}", "names no method", "give the whole table")
    tokens = plain_number(cells["#Mean Accepted Tokens"], f"{where}, line {number}")
    for column, cell in cells.items():
        if column in TABLE[:2] or not cell.strip("*- "):
            continue
        speedup = plain_number(cell, f"{where}, line {number}, {column}", ("x",))
        progress = {"tokens_per_pass": written(tokens)} if column == "Overall" else {}
        yield Row(
            place=f"line {number}",
            cells={
                **setting,
                "runtime": RUNTIME,
                "strategy": "ngram" if method in LOOKUPS else "speculative",
                "draft_model": method,
                "batch": "1",
                **progress,
                "speedup": written(speedup),
                "task": f"Spec-Bench {column.lower().replace('summa-rization', 'summarization')}",
            },
        )


def settings_above(text: str) -> list[tuple[int, Mapping[str, str]]]:
    """Device, model and precision as the lines above tables state them, with their lines.

    A heading that follows the settings names the model of its table.
    """
    settings: list[tuple[int, Mapping[str, str]]] = []
    cells: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        bare, before = line.strip().lstrip("- "), dict(cells)
        if device := DEVICE.match(bare):
            cells = {"chip": device[1], "memory_gb": device[2] or ""}
        elif environment := ENVIRONMENT.match(bare):
            cells["runtime_version"] = environment[1]
        elif settings_line := SETTINGS.match(bare):
            cells |= experiment(settings_line[1])
        elif (heading := HEADING.match(bare)) and "notes" in cells:
            cells["target_model"] = heading[1]
        if cells != before:
            settings.append((number, dict(cells)))
    return settings


def experiment(words: str) -> Mapping[str, str]:
    """Model and precision in a line of experimental settings; its words are kept as a note."""
    first, precision = words.split(",")[0], PRECISION.search(words)
    return {
        "notes": words,
        **({} if "decoding" in first else {"target_model": first}),
        **({"quant": precision[1].lower()} if precision else {}),
    }


def with_baselines(runs: Sequence[PublishedRun]) -> tuple[PublishedRun, ...]:
    """The runs, those of methods with the rate of plain decoding and their speedup over it.

    A baseline is the one plain Spec-Bench run of the same target, weights, chip and task among
    them; of several, none is chosen.
    """
    plain: dict[object, list[PublishedRun]] = {}
    for run in runs:
        if run.runtime == RUNTIME and run.strategy == "plain":
            plain.setdefault(setting_of(run), []).append(run)
    completed: list[PublishedRun] = []
    for run in runs:
        found = plain.get(setting_of(run), [])
        base = found[0].decode_tokens_per_s if len(found) == 1 else None
        own = run.decode_tokens_per_s
        if run.runtime == RUNTIME and run.strategy != "plain" and base and own:
            run = replace(run, baseline_tokens_per_s=base, speedup=own / base)
        completed.append(run)
    return tuple(completed)


def setting_of(run: PublishedRun) -> object:
    """What a method's run and its baseline share."""
    return run.target, run.quant, run.chip, run.task
