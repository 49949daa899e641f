"""Repeats of a run: the fastest is the one that the least disturbed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from calibrate.environment import Environment
from calibrate.run_record import Run
from calibrate.run_settings import Settings

Key: TypeAlias = tuple[str, str, str, int, int, Settings, Environment]


def fastest(runs: Iterable[Run]) -> list[Run]:
    """Of runs that differ in their times alone the fastest, in the order of the first of each.

    Other programs only ever make a run slower, on a shared host by half for seconds on end, so
    that the same decode made twice differs by more than any prediction of it errs.
    """
    best: dict[Key, Run] = {}
    for run in runs:
        found = best.setdefault(key_of(run), run)
        if run.tokens_per_s > found.tokens_per_s:
            best[key_of(run)] = run
    return list(best.values())


def key_of(run: Run) -> Key:
    """Equal for runs of one decode; of diffusion the length of the answer is part of it."""
    weights, context = run.target_weights, run.context_tokens
    answer = run.tokens if run.block else 0
    return (
        *(run.target, run.target_format, weights),
        *(context, answer, run.settings, run.environment),
    )
