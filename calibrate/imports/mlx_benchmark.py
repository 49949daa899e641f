"""mlx_lm.benchmark: trials and averages, as it prints them.

A block begins at "Timing with prompt_tokens=..., generation_tokens=..., batch_size=..." and ends
at its averages. It becomes one plain run, or one of strategy "batch" with the rate of all sequences
together; the context is the prompt's. Without averages (the run was cut off) the mean of the
trials that are there stands in, and the notes say so. The model is known from the command line
alone.

Learnt from mlx_lm/benchmark.py of mlx-lm 0.32.2 and the outputs in its pull requests 396, 468 and
1010; before batches it wrote "prompt_tokens=... and generation_tokens=...".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypeAlias, final

from calibrate.imports.cells import mlx_name, rate, whole, written
from calibrate.imports.documents import first_line, last_above
from calibrate.imports.found import Found, Row
from calibrate.imports.shell import NO_COMMAND, Command, commands
from model.errors import InputError

NAME = "mlx_lm.benchmark"
CALLS = re.compile(r"\bmlx[_-]lm[. ]benchmark\b")
SIGN = re.compile(r"^.*\b(?:Averages: prompt_tps=|Trial \d+: +prompt_tps=)", re.MULTILINE)
TIMING = re.compile(r"Timing with prompt_tokens=")
RESULT = re.compile(r"(?:(Averages)|Trial \d+): +prompt_tps=")
PAIR = re.compile(r"(\w+)=([^\s,]+?)(?=[\s,]|\.?$)")
RATES = ("prompt_tps", "generation_tps")
Result: TypeAlias = tuple[int, Mapping[str, str]]
"""The numbers of a trial or of the averages, by name, and their line."""
HIGH_BELOW = 500
"""Tokens below which counting the first one shows in the third digit of a rate."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One benchmark: what was asked for, and the numbers of each trial and of the averages."""

    line: int
    asked: Mapping[str, str]
    trials: list[Result] = field(default_factory=list[Result])
    averages: list[Result] = field(default_factory=list[Result])


def recognises(text: str) -> int:
    """The first line that shows it, or 0."""
    return first_line(SIGN, text)


def read(text: str, where: str) -> Found:
    """The benchmarks of a text as rows.

    Raises:
        InputError: results without the sizes they were measured at, or no numbers in them.
    """
    calls = commands(text, CALLS)
    left_out: list[str] = []
    rows: list[Row] = []
    for block in blocks(text, where, calls):
        if block.averages or block.trials:
            rows.append(row(block, where, last_above(calls, block.line, NO_COMMAND)))
        else:
            left_out.append(f"{where}, line {block.line}: a benchmark without a trial, left out")
    return Found(rows=tuple(rows), left_out=tuple(left_out))


def blocks(text: str, where: str, calls: Sequence[tuple[int, Command]]) -> Iterator[Block]:
    """The benchmarks in order; averages alone take their sizes from the command above them."""
    block: Block | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if TIMING.search(line):
            if block is not None:
                yield block
            block = Block(line=number, asked=dict(PAIR.findall(line)))
        elif found := RESULT.search(line):
            if block is None:
                block = Block(
                    line=number,
                    asked=asked_of(last_above(calls, number, NO_COMMAND), where, number),
                )
            results = block.averages if found[1] else block.trials
            results.append((number, dict(PAIR.findall(line))))
            if found[1]:
                yield block
                block = None
    if block is not None:
        yield block


def asked_of(call: Command, where: str, number: int) -> Mapping[str, str]:
    """The sizes in a command line; the prompt's must be there, the batch is 1 unless given."""
    prompt = call.flag("-p", "--prompt-tokens")
    if not prompt:
        wrong = 'has no "Timing with" line or command above it'
        raise InputError(f"{where}, line {number}", wrong, "give the whole output")
    return {
        "prompt_tokens": prompt,
        "generation_tokens": call.flag("-g", "--generation-tokens"),
        "batch_size": call.flag("-b", "--batch-size"),
    }


def row(block: Block, where: str, call: Command) -> Row:
    """The row of one benchmark: its averages, or the mean of its trials."""
    here = f"{where}, line {block.line}"
    prompt = whole(block.asked.get("prompt_tokens", ""), f"{here}, prompt_tokens")
    batch = whole(block.asked.get("batch_size") or "1", f"{here}, batch_size")
    output = block.asked.get("generation_tokens", "")
    results = block.averages or block.trials
    means = [
        fmean(
            rate(pairs.get(name, ""), f"{where}, line {number}, {name}")[0]
            for number, pairs in results
        )
        for name in RATES
    ]
    notes = [f"{prompt} prompt + {output or '?'} generated tokens", f"{len(block.trials)} trials"]
    if not block.averages:
        notes.append("cut off before its averages: the mean of these trials")
    memory = results[-1][1].get("peak_memory")
    if memory:
        notes.append(f"peak memory {memory.strip('`')} GB")
    if batch == 1 and output:
        notes += first_token_note(whole(output, f"{here}, generation_tokens"))
    repository = call.flag("--model", "-m")
    if repository:
        notes.append(repository)
    target, quant = mlx_name(repository)
    return Row(
        place=f"line {results[-1][0]}",
        cells={
            "runtime": "mlx-lm (mlx_lm.benchmark)",
            "target_model": target,
            "quant": quant,
            "strategy": "batch" if batch > 1 else "plain",
            "batch": str(batch),
            "context_tokens": str(prompt),
            "prefill_tok_s": written(means[0]),
            "decode_tok_s": written(means[1]),
            "task": "mlx_lm.benchmark synthetic",
            "notes": "; ".join(notes),
        },
        stamp=f"{output} {block.trials}",
    )


def first_token_note(tokens: int) -> list[str]:
    """How much too high a rate of mlx-lm's single stream is, where it shows.

    `stream_generate` divides n tokens by the time of n - 1 of them: the first one's is counted
    with the prompt.
    """
    if not 1 < tokens < HIGH_BELOW:
        return []
    return [f"its rate counts the first token, and is {100 / (tokens - 1):.1f} % high"]
