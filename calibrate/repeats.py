"""Repeats of a run: the fastest is the one that the least disturbed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from heapq import nlargest
from typing import TypeAlias

from calibrate.environment import Environment
from calibrate.host_witness import is_disturbed
from calibrate.run_record import Run
from calibrate.run_settings import Settings

Key: TypeAlias = tuple[str, str, str, str, int, int, tuple[int, ...], Settings, Environment]

FIRST_TOKENS = 4
"""Tokens of an answer by which prompts are told apart, which a record does not keep."""


def fastest(runs: Iterable[Run]) -> list[Run]:
    """Of runs of one decode the fastest, in the order of the first of each.

    However many tokens each was given time for.

    Other programs only ever make a run slower, on a shared host by half for seconds on end, so
    that the same decode made twice differs by more than any prediction of it errs.
    """
    best: dict[Key, Run] = {}
    for run in runs:
        found = best.setdefault(key_of(run), run)
        if run.tokens_per_s > found.tokens_per_s:
            best[key_of(run)] = run
    return list(best.values())


def apart(runs: Iterable[Run]) -> float:
    """By how much the typical rounds of the two fastest differ, over the shorter one.

    Raises:
        ValueError: there is one run alone.
    """
    one, other = (
        run.typical_round_s for run in nlargest(2, runs, key=lambda run: run.tokens_per_s)
    )
    return abs(one - other) / min(one, other)


def fastest_host_s(runs: Iterable[Run]) -> float:
    """The least that the fixed piece of the host's work took beside these; infinite if not timed.

    Of runs of one environment it is the yardstick of which were disturbed
    (:mod:`calibrate.host_witness`).
    """
    return min((work_s for run in runs for work_s in run.host_work_s), default=math.inf)


def undisturbed(runs: Iterable[Run], fastest_s: float) -> list[Run]:
    """Those made beside a host at its own speed, which is that of `fastest_s`."""
    return [run for run in runs if not is_disturbed(run.host_work_s, fastest_s)]


def key_of(run: Run) -> Key:
    """Equal for runs of one decode.

    Of diffusion the length of the answer is part of it, and of real weights how it begins.
    """
    answer = run.tokens if run.block else 0
    begins = run.output[:FIRST_TOKENS] if run.target_weights == "real" else ()
    return (
        *(run.target, run.target_format, run.target_weights, run.library),
        *(run.context_tokens, answer, begins, run.settings, run.environment),
    )
