"""Rules on progress: a pass cannot yield more tokens than were drafted and accepted.

With k tokens drafted in a round, 1 <= E <= k + 1 tokens come out of a pass, and a round costs at
least one plain pass, so the speedup S <= E. Sources: Leviathan et al. 2023 (arXiv:2211.17192),
section 3, for E; S <= E is S = E T1 / T(k) with T(k) >= T1, which fails only where a pass over
several rows takes less time than one over a single row (another kernel takes over), or where the
baseline is of another tool or clock, and then S is not the gain of the trick.
"""

from __future__ import annotations

from calibrate.audit.acceptance import (
    DRAFTING,
    Meaning,
    allowed_by_acceptance,
    meaning,
    stated_acceptance,
)
from calibrate.audit.rounding import COUNTING, half_unit, least, most
from calibrate.published.run_row import PublishedRun

CHEAPEST_ROW = 0.05
"""A drafted token adds at least this share of a plain pass.

The cheapest measured is 0.09 (draft and verify row, Gemma 4 12B on M3 Ultra and M5 Max; mlxcel
records); half of it leaves room for flatter kernels.
"""
DRAFTED_IF_SILENT = 4
"""Draft length taken for a round's cost where none is stated; tools default to 2 to 4."""
HOST_ROUND_S = 0.1
"""What a host may spend on a round: MLX on an H200 plans attention for 42 ms in each."""


def measured_speedup(run: PublishedRun) -> tuple[float, float] | None:
    """The least speedup that the row can mean, and the one it shows; None without any.

    A stated speedup goes before the ratio of the rates.
    """
    if run.speedup is not None:
        return least(run.speedup), run.speedup
    decode, baseline = run.decode_tokens_per_s, run.baseline_tokens_per_s
    if decode is None or not baseline:
        return None
    return least(decode) / most(baseline), decode / baseline


def allowed_progress(run: PublishedRun) -> tuple[float, str] | None:
    """The most tokens per pass that the row allows, and why: stated E, acceptance, or k + 1."""
    allowed: list[tuple[float, str]] = []
    if run.tokens_per_pass is not None:
        allowed.append((most(run.tokens_per_pass), f"{run.tokens_per_pass:.4g} tokens per pass"))
    by_acceptance = allowed_by_acceptance(run)
    if by_acceptance is not None:
        value, total = by_acceptance
        allowed.append((value, f"{total} = {value:.4g} tokens per pass"))
    if run.draft_length is not None:
        value = run.draft_length + 1.0
        allowed.append((value, f"k + 1 = {value:.0f} tokens per pass"))
    return min(allowed, default=None)


def speedup_above_progress(run: PublishedRun) -> str | None:
    """S <= E B: more than the tokens of a pass, in all B sequences, cannot be gained."""
    speedup, allowed = measured_speedup(run), allowed_progress(run)
    if run.strategy not in DRAFTING or speedup is None or allowed is None:
        return None
    if speedup[0] <= allowed[0] * run.batch * (1.0 + COUNTING):
        return None
    streams = f" in each of {run.batch} sequences" if run.batch > 1 else ""
    return (
        f"speedup {speedup[1]:.3g} above {allowed[1]}{streams}: a round costs a plain pass or "
        "more, so either is wrong or the baseline is of another tool or clock"
    )


def baseline_of_one_stream(run: PublishedRun) -> str | None:
    """E < S <= E B: the gain is the batch's too, for the baseline decodes one sequence."""
    speedup, allowed = measured_speedup(run), allowed_progress(run)
    if run.strategy not in DRAFTING or run.batch == 1 or speedup is None or allowed is None:
        return None
    ceiling = allowed[0] * (1.0 + COUNTING)
    if not ceiling < speedup[0] <= ceiling * run.batch:
        return None
    return (
        f"speedup {speedup[1]:.3g} above {allowed[1]} with {run.batch} sequences: the baseline "
        "decodes fewer, and the batch is part of the gain"
    )


def progress_above_draft(run: PublishedRun) -> str | None:
    """E <= k + 1: a pass yields the drafted tokens and one of its own."""
    if run.tokens_per_pass is None or run.draft_length is None:
        return None
    if least(run.tokens_per_pass) <= (run.draft_length + 1) * (1.0 + COUNTING):
        return None
    return f"{run.tokens_per_pass:.4g} tokens per pass with k = {run.draft_length}: k + 1 is most"


def progress_above_acceptance(run: PublishedRun) -> str | None:
    """E <= 1 + a k, or E = 1 / (1 - s): see `calibrate.audit.acceptance`."""
    allowed = allowed_by_acceptance(run)
    if run.tokens_per_pass is None or allowed is None:
        return None
    if least(run.tokens_per_pass) <= allowed[0] * (1.0 + COUNTING):
        return None
    return f"{run.tokens_per_pass:.4g} tokens per pass above {allowed[1]} = {allowed[0]:.4g}"


def progress_below_one(run: PublishedRun) -> str | None:
    """E >= 1: the target's own token is always kept. Not so of diffusion, which is not judged."""
    if run.strategy not in DRAFTING or run.tokens_per_pass is None:
        return None
    if most(run.tokens_per_pass) >= 1.0 - COUNTING:
        return None
    return f"{run.tokens_per_pass:.4g} tokens per pass: each pass keeps its own token"


def gain_without_acceptance(run: PublishedRun) -> str | None:
    """A gain needs an acceptance above the cost of a drafted token: a > (T(k) - T1) / (k T1).

    A copied draft is free and its rows may be few, so n-gram rows are not judged.
    """
    stated, speedup = stated_acceptance(run), measured_speedup(run)
    if run.strategy not in DRAFTING or run.strategy == "ngram" or not stated or speedup is None:
        return None
    if meaning(run) is Meaning.SHARE or max(stated) >= CHEAPEST_ROW or speedup[0] <= 1.0:
        return None
    return (
        f"speedup {speedup[1]:.3g} at acceptance {max(stated):.3g}: drafting and checking a token "
        f"costs more than {CHEAPEST_ROW:g} of a pass on every machine measured"
    )


def round_of_many_passes(run: PublishedRun) -> str | None:
    """T(k) <= (2 k + 1) T1: k draft steps and k + 1 rows, each at most as slow as a plain pass.

    E >= 1 gives T(k) / T1 >= 1 / S. It is broken by paging, or by a path that has no kernel for
    several rows. A draft that is slower than its target breaks it too. Where the baseline tells
    T1, work on the host of up to 0.1 s a round is allowed on top.
    """
    speedup = measured_speedup(run)
    if run.strategy not in DRAFTING or speedup is None or speedup[1] <= 0.0 or run.batch > 1:
        return None
    length = DRAFTED_IF_SILENT if run.draft_length is None else run.draft_length
    progress = run.tokens_per_pass or 1.0
    passes = progress / (speedup[1] + half_unit(speedup[1]))
    excess = passes - (2 * length + 1)
    baseline = run.baseline_tokens_per_s
    if excess <= 0.0 or (baseline and excess / baseline <= HOST_ROUND_S):
        return None
    return (
        f"a round costs {passes:.3g} plain passes, more than {length + 1} rows and {length} draft "
        "steps one by one: paging, or no kernel for several rows"
    )
