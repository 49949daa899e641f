"""tokroof's own run records as published rows, so that the same rules judge them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from calibrate.published.run_row import PublishedRun
from calibrate.run_record import Run
from calibrate.run_strategy import PREDICTED
from calibrate.speedups import baseline_key

FALL = 0.85
"""Rounds that end slower than this share of the speed they began with."""
ROUNDS = 24
"""Fewer rounds do not show a trend."""


def published_form(runs: Sequence[Run]) -> tuple[PublishedRun, ...]:
    """The records as rows, each strategy beside the last plain run before it, or the next one.

    Rates are the typical ones, in which a disturbance of the computer counts for nothing, on both
    sides of a speedup. An awaited run is no plain one: each of its passes is waited for.
    """
    plain = {baseline_key(run): run for run in reversed(runs) if run.strategy == "plain"}
    rows: list[PublishedRun] = []
    for run in runs:
        if run.strategy == "plain":
            plain[baseline_key(run)] = run
        predicted = run.strategy in PREDICTED and run.strategy != "plain"
        baseline = plain.get(baseline_key(run)) if predicted else None
        rows.append(row(run, None if baseline is None else baseline.tokens_per_s))
    return tuple(rows)


def row(run: Run, baseline_tokens_per_s: float | None) -> PublishedRun:
    """One record as a row."""
    accepted = run.accepted_fraction
    here = run.environment
    return PublishedRun(
        id=run.id,
        chip=here.chip.removeprefix("Apple "),
        gpu_cores=None,
        nominal_bandwidth_bytes_per_s=None,
        memory_bytes=float(here.memory_bytes),
        runtime=here.runtime,
        runtime_version="",
        target=run.target,
        target_params=None,
        target_active_params=None,
        quant=run.target_format,
        model_bytes=None,
        strategy=run.strategy,
        draft=run.draft,
        draft_length=run.draft_length or run.block or None,
        skip_fraction=None,
        acceptance="" if accepted is None else repr(accepted),
        tokens_per_pass=run.tokens_per_pass if run.draft_length or run.block else None,
        batch=run.batch,
        context_tokens=float(run.context_tokens),
        prefill_tokens_per_s=None,
        decode_tokens_per_s=run.tokens_per_s,
        baseline_tokens_per_s=baseline_tokens_per_s,
        speedup=None,
        source="",
        locator="",
        date=run.date,
        task="",
        acceptance_def="accepted/drafted",
        notes="",
        trust="high",
    )


def falling_rate(run: Run) -> str | None:
    """Plain rounds of the last third are slower than those of the first: heat, or swap.

    The cache grows by one token a round, which on its own slows a decode of some hundred tokens by
    a few per cent. Rounds with a draft differ with what was accepted and are not judged, nor are
    passes of diffusion, some of which write the cache.
    """
    if run.draft_length or run.block or len(run.round_s) < ROUNDS:
        return None
    third = len(run.round_s) // 3
    first, last = median(run.round_s[:third]), median(run.round_s[-third:])
    if first >= FALL * last:
        return None
    return (
        f"rounds took {1e3 * first:.3g} ms at first and {1e3 * last:.3g} ms at the end: "
        "heat, swap, or another load"
    )
