"""What `tokroof run` keeps and says of each run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from calibrate.run_file import append_run
from calibrate.run_record import Run


def kept(run: Run, output: Path | None) -> Run:
    """Append a run to the file as soon as it is over, if there is one, and say so."""
    if output is not None:
        append_run(output, run)
    print(f"{run.text}: {run.tokens_per_s:.2f} tok/s", file=sys.stderr, flush=True)
    return run


def summary(run: Run, tokenizer: Any | None) -> str:
    """What a run showed besides its speed."""
    if run.block:
        return _denoised(run, tokenizer)
    parts = [
        f"{run.settings.text}: {len(run.round_s)} rounds, {run.tokens_per_pass:.2f} tokens per pass"
    ]
    if run.draft_length:
        rates = ", ".join(f"{rate:.2f}" for rate in run.acceptance_by_position)
        parts.append(f"acceptance by position {rates}")
    if run.proposed:
        parts.append(f"a match in {run.match:.0%} of rounds")
    if run.distinct_experts:
        parts.append(read_experts(run))
    if run.matches_plain is not None:
        same = "output equals plain" if run.matches_plain else "output differs from plain"
        parts.append(same)
    if tokenizer is not None and run.strategy == "plain":
        parts.append(repr(tokenizer.decode(list(run.output))))
    return "; ".join(parts)


def _denoised(run: Run, tokenizer: Any | None) -> str:
    """Passes, what they fixed, and what of it the answer uses."""
    writing = run.commits.count(0)
    parts = [
        f"{run.text}: {len(run.round_s)} passes, {writing} of them to write the cache",
        f"{run.committed_per_pass or 0.0:.2f} tokens fixed in each of the others",
        f"{run.tokens_per_pass:.2f} tokens of the answer per pass",
        f"{run.tokens_per_s:.2f} tok/s",
    ]
    if run.distinct_experts:
        parts.append(read_experts(run))
    if tokenizer is not None:
        parts.append(repr(tokenizer.decode(list(run.output))))
    return "; ".join(parts)


def read_experts(run: Run) -> str:
    """How much of a mixture a pass reads."""
    return f"{run.distinct_experts:.1f} experts read in each layer by {run.settings.rows} rows"
