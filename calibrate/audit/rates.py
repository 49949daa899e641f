"""Rules on the rates of one row: they must agree with each other and with their settings."""

from __future__ import annotations

import re

from calibrate.audit.groups import generated_tokens
from calibrate.audit.rounding import COUNTING, least, most
from calibrate.published.run_row import PublishedRun

SPREAD = 0.05
"""A median of ratios is not the ratio of two medians; between repeats they differ by this much."""
FREE_ROUND = 0.05
"""A share of the tokens that goes uncounted before it is worth a flag."""

_MLX_LM = re.compile(r"mlx[-_]lm\b")


def speedup_against_rates(run: PublishedRun) -> str | None:
    """Speedup = rate / baseline, each within its rounding, and 5 % for medians of repeats."""
    decode, baseline = run.decode_tokens_per_s, run.baseline_tokens_per_s
    if run.speedup is None or decode is None or not baseline:
        return None
    lowest = least(decode) / most(baseline) * (1.0 - SPREAD)
    floor = least(baseline)
    highest = most(decode) / floor * (1.0 + SPREAD) if floor else float("inf")
    if most(run.speedup) >= lowest and least(run.speedup) <= highest:
        return None
    ratio = decode / baseline
    return f"speedup {run.speedup:.4g}, but {decode:.4g} / {baseline:.4g} tok/s is {ratio:.4g}"


def batch_speedup_above_batch(run: PublishedRun) -> str | None:
    """B sequences side by side gain at most B: a pass over B rows costs at least one row's.

    Not where a batch meets a faster kernel than a single row does (see `progress`).
    """
    if run.strategy != "batch" or run.speedup is None:
        return None
    if least(run.speedup) <= run.batch * (1.0 + COUNTING):
        return None
    return f"speedup {run.speedup:.3g} of {run.batch} sequences: {run.batch} is the most"


def free_first_round(run: PublishedRun) -> str | None:
    """mlx-lm counts the first round's tokens and not its time, so short runs look faster.

    Its rate is n + 1 tokens over the time since the first was yielded: of N tokens the first
    round's E are free, and the rate is too high by about E / N. Source: `stream_generate` of
    mlx-lm 0.32. Only rows of mlx-lm itself that say how many tokens they generated are judged.
    """
    if not _MLX_LM.search(run.runtime.lower()) or "server" in run.runtime.lower():
        return None
    generated = generated_tokens(run)
    if not generated or not min(generated):
        return None
    free = run.tokens_per_pass or (run.draft_length or 0) + 1.0
    if free / min(generated) <= FREE_ROUND:
        return None
    return (
        f"{min(generated)} tokens, of which up to {free:.3g} came in a first round that mlx-lm's "
        f"clock leaves out: the rate may be {100 * free / min(generated):.0f} % too high"
    )
