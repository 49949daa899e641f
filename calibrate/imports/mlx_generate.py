"""mlx-lm's verbose output: "Prompt: ..." and "Generation: ..." lines, alone or in any log.

`mlx_lm.generate`, `generate(verbose=True)` and `batch_generate(verbose=True)` end with them, and
so do logs of programs that stream through mlx-lm and print the same. Each pair is a run. Nothing
but the command line says which model ran and whether one drafted: with `--draft-model` the run is
speculative, with the draft length given or mlx-lm's own 3; how much was accepted is not printed,
and stays blank. `mlx_lm.server` prints no rate at all (0.32.2), so its log alone is not read.

Learnt from mlx_lm/generate.py of mlx-lm 0.32.2, and from mlx_lm/utils.py of 2024, which printed
rates without token counts ("Prompt: 118.331 tokens-per-sec").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

from calibrate.imports.cells import mlx_name, rate, whole, written
from calibrate.imports.documents import first_line, last_above
from calibrate.imports.found import Found, Row
from calibrate.imports.mlx_benchmark import first_token_note
from calibrate.imports.shell import NO_COMMAND, Command, commands

NAME = "mlx-lm"
CALLS = re.compile(r"\bmlx[_-]lm[. ]generate\b")
LINE = re.compile(
    r"(\[batch_generate\] )?\b(Prompt|Generation): +(?:([\d.,]+) tokens?, +)?(\S+) tokens-per-sec"
)
SIGN = re.compile(r"^.*\bGeneration: .*tokens-per-sec", re.MULTILINE)
FINISHED = re.compile(r"\[batch_generate\] Finished processing (\d+)/(\d+)\s*$")
MEMORY = re.compile(r"Peak memory: ([\d.]+)")
OWN_DRAFT_LENGTH = "3"
"""What `mlx_lm.generate` drafts with when it is not told: `--num-draft-tokens`, 0.32.2."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A Prompt or Generation line: tokens where it counts them, and their rate."""

    number: int
    tokens: int | None
    tokens_per_s: float


def recognises(text: str) -> int:
    """The first line that shows it, or 0."""
    return first_line(SIGN, text)


def read(text: str, where: str) -> Found:
    """The generations of a text as rows; one of a single token has no decode rate.

    Raises:
        InputError: a count or a rate is no number.
    """
    calls = commands(text, CALLS)
    rows: list[Row] = []
    left_out: list[str] = []
    prompt: Line | None = None
    sequences = 0
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if finished := FINISHED.search(line):
            sequences = int(finished[2])
        found = LINE.search(line)
        if found is None:
            continue
        here = f"{where}, line {number}"
        tokens = whole(found[3], here) if found[3] else None
        if found[2] == "Prompt":
            prompt = Line(number=number, tokens=tokens, tokens_per_s=rate(found[4], here)[0])
            continue
        if tokens in (0, 1):
            left_out.append(f"{here}: {tokens} tokens have no decode rate, left out")
        else:
            made = Line(number=number, tokens=tokens, tokens_per_s=rate(found[4], here)[0])
            batch = (sequences or None) if found[1] else 1
            peak = MEMORY.search(lines[number]) if number < len(lines) else None
            row = row_of(made, prompt, batch, last_above(calls, number, NO_COMMAND))
            rows.append(noted(row, f"peak memory {peak[1]} GB") if peak else row)
        prompt = None
    if prompt is not None:
        left_out.append(f"{where}, line {prompt.number}: a prompt without its generation, left out")
    return Found(rows=tuple(rows), left_out=tuple(left_out))


def row_of(made: Line, prompt: Line | None, batch: int | None, call: Command) -> Row:
    """The row of one generation; of a batch whose size is not printed, `batch` is None."""
    repository, draft = call.flag("--model"), call.flag("--draft-model")
    target, quant = mlx_name(repository)
    notes: list[str] = []
    cells = {
        "runtime": "mlx-lm",
        "target_model": target,
        "quant": quant,
        "strategy": "plain",
        "decode_tok_s": written(made.tokens_per_s),
        "batch": "" if batch is None else str(batch),
    }
    if prompt is not None:
        cells["prefill_tok_s"] = written(prompt.tokens_per_s)
        if prompt.tokens is not None and batch is not None:
            cells["context_tokens"] = written(prompt.tokens / batch)
    if made.tokens is not None:
        known = prompt is not None and prompt.tokens is not None
        before = f"{prompt.tokens} prompt + " if prompt is not None and known else ""
        notes.append(f"{before}{made.tokens} generated tokens")
    if batch != 1:
        cells["strategy"] = "batch"
        notes.append("of all sequences together" if batch else "batch size not printed")
    elif made.tokens is not None:
        notes += first_token_note(made.tokens)
    if draft:
        drafted = call.flag("--num-draft-tokens")
        cells["strategy"] = "speculative"
        cells["draft_model"] = " ".join(filter(None, mlx_name(draft)))
        cells["k"] = drafted or OWN_DRAFT_LENGTH
        if not drafted:
            notes.append("k is mlx-lm's own")
    elif not repository:
        notes.append("whether a draft ran is not printed; taken as plain")
    notes += filter(None, (repository, draft))
    cells["notes"] = "; ".join(notes)
    return Row(place=f"line {made.number}", cells=cells, stamp=f"{made.tokens}")


def noted(row: Row, note: str) -> Row:
    """The row with one note more."""
    notes = "; ".join(part for part in (row.cells["notes"], note) if part)
    return Row(place=row.place, cells={**row.cells, "notes": notes}, stamp=row.stamp)
