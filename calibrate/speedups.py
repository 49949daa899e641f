"""Speedups as they were measured: each make of a decode beside the plain one nearest in time.

How fast a computer is changes within minutes, by heat, power and whatever else it does, and slow
phases come and go. The fastest of several makes is then a lucky one, and the luckier the more makes
there were, so that a ratio of two such is nobody's. Runs made one soon after the other share most
of what the computer is doing: their ratio is the strategy's, and of several such ratios the middle
one counts. Pairs of which the host's witness says that one was disturbed count only where there are
not `LEAST_PAIRS` others, for a pair alone has no middle (:mod:`calibrate.host_witness`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median
from typing import TypeAlias

from calibrate.environment import Environment
from calibrate.repeats import Key, fastest_host_s, key_of, undisturbed
from calibrate.run_record import Run

LEAST_PAIRS = 2
BaselineKey: TypeAlias = tuple[str, str, str, str, int, Environment]


def baseline_key(run: Run) -> BaselineKey:
    """Runs with the same key differ in strategy alone."""
    weights, context = run.target_weights, run.context_tokens
    return run.target, run.target_format, weights, run.library, context, run.environment


def paired_speedups(runs: Sequence[Run]) -> dict[Key, float]:
    """The middle ratio to the plain make nearest in time, of each decode that has one."""
    fastest_s = fastest_host_s(runs)
    plain: dict[BaselineKey, list[tuple[int, Run]]] = defaultdict(list)
    for place, run in enumerate(runs):
        if run.strategy == "plain":
            plain[baseline_key(run)].append((place, run))
    ratios: dict[Key, dict[bool, list[float]]] = defaultdict(lambda: defaultdict(list))
    for place, run in enumerate(runs):
        beside = plain.get(baseline_key(run))
        if run.strategy == "plain" or not beside:
            continue
        near = min(beside, key=lambda made: (apart_s(run, made[1]), abs(made[0] - place)))[1]
        is_quiet = len(undisturbed((run, near), fastest_s)) == 2
        ratios[key_of(run)][is_quiet].append(run.tokens_per_s / near.tokens_per_s)
    return {
        key: median(found[True] if len(found[True]) >= LEAST_PAIRS else found[True] + found[False])
        for key, found in ratios.items()
    }


def apart_s(one: Run, other: Run) -> float:
    """Seconds between the beginnings of two runs."""
    return abs((begun(one) - begun(other)).total_seconds())


def begun(run: Run) -> datetime:
    """When a run began; without a zone it is UTC."""
    date = datetime.fromisoformat(run.date)
    return date if date.tzinfo else date.replace(tzinfo=UTC)
