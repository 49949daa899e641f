"""Answers of a Spec-Bench run: one question a line, gathered into a run for each task."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import cast, final

from calibrate.imports.cells import written
from calibrate.imports.documents import json_objects
from calibrate.imports.found import Found, Row
from model.errors import InputError

SIGN = re.compile(r'"accept_lengths"\s*:')
MT_BENCH = (
    *("writing", "roleplay", "reasoning", "math"),
    *("coding", "extraction", "stem", "humanities"),
)
"""Categories that Spec-Bench counts as one task, the multi-turn conversation."""
LOOKUPS = ("pld", "lade", "rest", "recycling")
METHOD = re.compile(
    r"(.+?)-(vanilla|sps|medusa|hydra|eagle[23]?|space|samd|pld|lade|rest|recycling)(?:-(.+))?"
)
"""Names as eval.sh makes them: model, method, then what else was set."""
PRECISIONS = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}
WHOLE = "give the whole answer file"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One question: what answered it, its task, its rate and the tokens of each round."""

    place: str
    model_id: str
    task: str
    tokens_per_s: float
    accept_lengths: tuple[float, ...]


def answer_rows(text: str, where: str) -> Found:
    """The runs in answers, by model and task.

    Raises:
        InputError: a line is cut off, or lacks what `eval.py` writes.
    """
    if not SIGN.search(text):
        return Found(rows=())
    answers: dict[str, list[Answer]] = {}
    left_out: list[str] = []
    for place, record in json_objects(text, where):
        answer = read_answer(record, place, where)
        if answer is None:
            left_out.append(f"{where}, {place}: a question without an answer, left out")
        else:
            answers.setdefault(answer.model_id, []).append(answer)
    rows = [row for group in answers.values() for row in rows_by_task(group)]
    return Found(rows=tuple(rows), left_out=tuple(left_out))


def rows_by_task(answers: Sequence[Answer]) -> list[Row]:
    """A row for all answers of a model, and one for each of several tasks."""
    tasks: dict[str, list[Answer]] = {}
    for answer in answers:
        tasks.setdefault(answer.task, []).append(answer)
    groups = {"overall": list(answers), **(tasks if len(tasks) > 1 else {})}
    return [row_of(group, task) for task, group in groups.items()]


def row_of(answers: Sequence[Answer], task: str) -> Row:
    """The row of some answers of one model."""
    named = METHOD.fullmatch(answers[0].model_id)
    target, method, rest = named.groups() if named else (answers[0].model_id, "", None)
    lengths = [length for answer in answers for length in answer.accept_lengths]
    plain = method == "vanilla" if method else max(lengths) <= 1
    precision = next((word for word in (rest or "").split("-") if word in PRECISIONS), "")
    cells = {
        "runtime": "Spec-Bench",
        "target_model": target or "",
        "quant": PRECISIONS.get(precision, ""),
        "strategy": "plain" if plain else "ngram" if method in LOOKUPS else "speculative",
        "draft_model": "" if plain else "-".join(filter(None, (method, rest))),
        "batch": "1",
        "tokens_per_pass": written(fmean(lengths)),
        "decode_tok_s": written(fmean(answer.tokens_per_s for answer in answers)),
        "task": f"Spec-Bench {task}",
        "notes": f"{len(answers)} questions, {len(lengths)} rounds; wall time, prompt included",
    }
    return Row(place=f"{answers[0].place} and on", cells=cells, stamp=answers[0].model_id)


def read_answer(record: Mapping[str, object], place: str, where: str) -> Answer | None:
    """One answer; None where the run recorded an error or no token."""
    here = f"{where}, {place}"
    choices = record.get("choices")
    if not isinstance(choices, list) or not choices:
        raise InputError(here, "has no choices", WHOLE)
    choice = cast("list[object]", choices)[0]
    if not isinstance(choice, Mapping):
        raise InputError(here, "has no choices", WHOLE)
    fields = cast("Mapping[str, object]", choice)
    tokens, times, lengths = (
        numbers(fields, name, here) for name in ("new_tokens", "wall_time", "accept_lengths")
    )
    turns = fields.get("turns")
    failed = isinstance(turns, list) and "ERROR" in cast("list[object]", turns)
    if failed or not lengths or sum(tokens) <= 0 or sum(times) <= 0:
        return None
    category = str(record.get("category", ""))
    return Answer(
        place=place,
        model_id=str(record.get("model_id", "")),
        task="mt_bench" if category in MT_BENCH else category,
        tokens_per_s=sum(tokens) / sum(times),
        accept_lengths=lengths,
    )


def numbers(fields: Mapping[str, object], name: str, here: str) -> tuple[float, ...]:
    """A list of numbers of 0 or more."""
    values = fields.get(name)
    if not isinstance(values, list):
        raise InputError(here, f"has no {name}", WHOLE)
    listed = cast("list[object]", values)
    if not all(isinstance(value, int | float) and 0 <= value < float("inf") for value in listed):
        raise InputError(f"{here}, {name}", "is no list of numbers", WHOLE)
    return tuple(float(cast("float", value)) for value in listed)
