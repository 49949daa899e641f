"""Rules on rows that belong together: repeats of one setting, and a batch beside its plain run."""

from __future__ import annotations

from collections.abc import Sequence

from calibrate.audit.baselines import plain_runs
from calibrate.audit.rounding import least, most
from calibrate.published.run_row import PublishedRun

REPEATS = 0.7
"""Repeats on a cold, idle machine stay within 14 %; a fanless M3 lost 15 to 42 % when hot."""
STREAM = 1.1
"""A batch's sequence may look a little faster than the plain run of another session."""


def repeat_key(run: PublishedRun) -> tuple[object, ...] | None:
    """Plain runs that differ in nothing that is stated, from one source; None if no repeat."""
    if run.strategy != "plain" or not run.chip or run.context_tokens is None:
        return None
    return (
        *(run.chip, run.gpu_cores, run.memory_bytes, run.runtime, run.runtime_version),
        *(run.target, run.quant, run.context_tokens, run.batch, run.source),
    )


def slow_repeat(run: PublishedRun, group: Sequence[PublishedRun]) -> str | None:
    """A repeat 30 % below the fastest of the same setting: heat, swap, or another load.

    Source of the size: three cold and hot cycles of a fanless M3, 15 to 42 % (kv-cache-tax). Notes
    may state a difference that the columns do not (a cache limit, a patch); read them.
    """
    rate = run.decode_tokens_per_s
    rates = [other.decode_tokens_per_s for other in group if other.decode_tokens_per_s is not None]
    if rate is None or most(rate) >= REPEATS * max(rates):
        return None
    order = [other.decode_tokens_per_s for other in group].index(max(rates))
    place = next(index for index, other in enumerate(group) if other is run)
    when = "earlier" if order < place else "later"
    return (
        f"{rate:.4g} tok/s, where the same setting gave {max(rates):.4g} {when}: heat, swap, "
        "another load, or a change that is not in the columns"
    )


def batch_key(run: PublishedRun) -> tuple[object, ...] | None:
    """Plain and batch runs of one tool, machine, model and context, from one source."""
    if run.strategy not in ("plain", "batch") or run.decode_tokens_per_s is None:
        return None
    return run.chip, run.runtime, run.target, run.quant, run.context_tokens, run.source


def stream_above_plain(run: PublishedRun, group: Sequence[PublishedRun]) -> str | None:
    """A sequence's rate <= the plain rate: a sequence gains nothing from the others beside it.

    Not where the batch meets a faster kernel than a single row does, or where the plain run was
    timed end to end and the batch was not.
    """
    plain = plain_runs(group)
    rate = run.decode_tokens_per_s
    if run.strategy != "batch" or run.batch == 1 or rate is None or not plain:
        return None
    fastest = max(other.decode_tokens_per_s or 0.0 for other in plain)
    if least(rate) / run.batch <= STREAM * most(fastest):
        return None
    return (
        f"{rate / run.batch:.4g} tok/s for each of {run.batch} sequences, "
        f"more than {fastest:.4g} for one alone"
    )
