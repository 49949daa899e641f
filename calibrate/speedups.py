"""Speedups as they were measured: each make of a decode beside the plain one nearest in time.

How fast a computer is changes within minutes, by heat, power and whatever else it does, and slow
phases come and go. The fastest of several makes is then a lucky one, and the luckier the more makes
there were, so that a ratio of two such is nobody's. Runs made one after the other share what the
computer is doing: their ratio is the strategy's, and of several such ratios the middle one counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import TypeAlias

from calibrate.environment import Environment
from calibrate.repeats import Key, key_of
from calibrate.run_record import Run

BaselineKey: TypeAlias = tuple[str, str, str, str, int, Environment]


def baseline_key(run: Run) -> BaselineKey:
    """Runs with the same key differ in strategy alone."""
    weights, context = run.target_weights, run.context_tokens
    return run.target, run.target_format, weights, run.library, context, run.environment


def paired_speedups(runs: Sequence[Run]) -> dict[Key, float]:
    """The middle ratio to the nearest plain make of each decode that has one; in order of time."""
    plain: dict[BaselineKey, list[tuple[int, float]]] = defaultdict(list)
    for place, run in enumerate(runs):
        if run.strategy == "plain":
            plain[baseline_key(run)].append((place, run.tokens_per_s))
    ratios: dict[Key, list[float]] = defaultdict(list)
    for place, run in enumerate(runs):
        beside = plain.get(baseline_key(run))
        if run.strategy != "plain" and beside:
            _, tokens_per_s = min(beside, key=lambda made: abs(made[0] - place))
            ratios[key_of(run)].append(run.tokens_per_s / tokens_per_s)
    return {key: median(found) for key, found in ratios.items()}
