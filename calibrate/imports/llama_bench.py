"""llama-bench: its JSON, JSON lines, CSV and Markdown (SQL is not read).

A test is a prompt of `n_prompt` tokens (pp), a generation of `n_gen` (tg), or both in one time
(pp+tg), after `n_depth` tokens that are in the cache already. A tg test becomes a plain run whose
context is the depth: the mean over the test lies n_gen / 2 further. The first pp test of the same
settings and depth fills its prefill rate; a pp test that fills none is a run of its own, without a
decode rate. The rate of pp+tg is neither, and is left out. Rates hold no sampling and no
tokenization.

Learnt from llama.cpp's tools/llama-bench (README.md, llama-bench.cpp).
"""

from __future__ import annotations

from calibrate.imports.cells import written
from calibrate.imports.documents import first_line, header_line
from calibrate.imports.found import Found, Row
from calibrate.imports.llama_bench_tests import (
    JSON_SIGN,
    MARKDOWN,
    RAW,
    Test,
    markdown_tests,
    raw_test,
    raw_tests,
)

NAME = "llama-bench"


def recognises(text: str) -> int:
    """The first line that shows it, or 0."""
    table = header_line(text, MARKDOWN, "|") or header_line(text, RAW, ",")
    return table or (first_line(JSON_SIGN, text) if '"avg_ts"' in text else 0)


def read(text: str, where: str) -> Found:
    """The tests of a text as rows.

    Raises:
        InputError: a test is cut off, lacks a field, or has a field that is not what it should be.
    """
    tests = [raw_test(fields, where, place) for place, fields in raw_tests(text, where)]
    tests += markdown_tests(text, where)
    generated = [test for test in tests if test.output_tokens and not test.prompt_tokens]
    prompts: dict[object, Test] = {}
    for test in tests:
        if not test.output_tokens:
            prompts.setdefault(settings_of(test), test)
    used = {prompts[key].place for key in map(settings_of, generated) if key in prompts}
    rows: list[Row] = []
    left_out: list[str] = []
    for test in tests:
        if test.prompt_tokens and test.output_tokens:
            left_out.append(f"{where}, {test.place}: {test.name} is one rate of both, left out")
        elif test.output_tokens:
            rows.append(row_of(test, prompts.get(settings_of(test))))
        elif test.place not in used:
            rows.append(row_of(test, test))
    return Found(rows=tuple(rows), left_out=tuple(left_out))


def settings_of(test: Test) -> object:
    """What a prompt's and a generation's test share when they describe the same set-up."""
    return test.depth_tokens, tuple(sorted(test.about.items()))


def row_of(test: Test, prompt: Test | None) -> Row:
    """The row of a generation with its prompt's rate, or of a prompt alone."""
    notes = [f"{test.name} at depth {test.depth_tokens}", test.about["notes"]]
    if test.stddev is not None:
        notes.append(f"standard deviation {test.stddev:g} tok/s")
    cells = {
        **test.about,
        "strategy": "plain",
        "batch": "1",
        "context_tokens": str(test.depth_tokens),
        "date": test.time[:10],
        "task": "llama-bench synthetic",
    }
    if test.output_tokens:
        cells["decode_tok_s"] = written(test.tokens_per_s)
    if prompt is not None:
        cells["prefill_tok_s"] = written(prompt.tokens_per_s)
        if prompt is not test:
            notes.append(f"prefill from {prompt.name}")
    return Row(
        place=test.place,
        cells=cells | {"notes": "; ".join(note for note in notes if note)},
        stamp=f"{test.name} {test.time}",
        described=test.described,
    )
