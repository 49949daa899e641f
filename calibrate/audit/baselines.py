"""Rules on baselines: a slow or foreign plain arm makes any trick look good.

A speedup is a gain only over the best plain decoding of the same machine, model and format. Two
tools on the same weights differ by up to a third (mlx-lm 20.4 and MTPLX 14.8 tok/s on an M1 Max),
which is as much as many tricks claim.
"""

from __future__ import annotations

from collections.abc import Sequence

from calibrate.audit.groups import framework, reach
from calibrate.audit.rounding import least, most, significant_digits
from calibrate.published.run_row import PublishedRun

SLOW = 1.25
"""Two honest plain runs of one setting differ by 14 % between sessions; this is beyond it."""
TELLING_DIGITS = 3


def slow_baseline(run: PublishedRun, group: Sequence[PublishedRun]) -> str | None:
    """The baseline is 25 % below a plain run of the same machine, model and format.

    Only plain runs that reach the row's context or a longer one count, for those can only be
    slower; an unstated context is taken as 0, and generated tokens add to it. Where a better
    release came later, the flag stands: the gain is one over the old release.
    """
    baseline = run.baseline_tokens_per_s
    if baseline is None or run.strategy == "plain" or run.batch > 1:
        return None
    faster = [
        other
        for other in plain_runs(group)
        if reach(other) >= reach(run)
        and least(other.decode_tokens_per_s or 0.0) > SLOW * most(baseline)
    ]
    if not faster:
        return None
    best = max(faster, key=lambda other: other.decode_tokens_per_s or 0.0)
    return (
        f"baseline {baseline:.4g} tok/s, but {best.runtime} decodes plainly at "
        f"{best.decode_tokens_per_s:.4g} on the same chip, model and format ({best.id}): the "
        "speedup is over a slow arm"
    )


def foreign_baseline(run: PublishedRun, group: Sequence[PublishedRun]) -> str | None:
    """The baseline is to the digit the plain run of another framework, and of no own one.

    Kernels differ between frameworks, so the ratio is not the trick's alone. Tools on the same
    kernels (dflash-mlx over mlx-lm) may share a baseline, and are not judged.
    """
    baseline = run.baseline_tokens_per_s
    if baseline is None or run.strategy == "plain" or significant_digits(baseline) < TELLING_DIGITS:
        return None
    same = [other for other in plain_runs(group) if other.decode_tokens_per_s == baseline]
    own = framework(run.runtime)
    if own is None or not same or any(framework(each.runtime) in (own, None) for each in same):
        return None
    return (
        f"baseline {baseline:.4g} tok/s is the plain rate of {same[0].runtime} ({same[0].id}), "
        f"not of {run.runtime}: the kernels differ too"
    )


def plain_runs(group: Sequence[PublishedRun]) -> list[PublishedRun]:
    """The plain runs of one sequence that state a rate."""
    return [
        other
        for other in group
        if other.strategy == "plain" and other.batch == 1 and other.decode_tokens_per_s is not None
    ]
