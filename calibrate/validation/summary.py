r"""Scores summed up: errors by group, refusals by reason, and what advice on k would have cost.

A sweep is a set of runs of one study that differ in their draft length alone. Our advice is the
length with the largest predicted speedup, each at the progress the run really had; its regret is
the share of the best measured speedup that following it gives away:

.. math:: 1 - S_{measured}(\arg\max_k S_{predicted}(k)) / \max_k S_{measured}(k)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from calibrate.comparison import Group, summarise
from calibrate.published.refusal import EXPLANATIONS, Reason
from calibrate.validation.score import Score


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalCount:
    """How many runs were refused for a reason, and what the reason means."""

    reason: str
    runs: int
    explanation: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """What following our advice on k gives away, over sweeps; None without a sweep."""

    sweeps: int
    median: float | None
    worst: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Everything that is said of a set of scores."""

    runs: int
    share_predicted: float
    groups: tuple[Group, ...]
    refusals: tuple[RefusalCount, ...]
    regret: Regret


def summary_of(scores: Sequence[Score]) -> Summary:
    """Sum up one score or more."""
    predicted = sum(each.refusal is None for each in scores)
    return Summary(
        runs=len(scores),
        share_predicted=predicted / len(scores),
        groups=tuple(summarise([each.comparison for each in scores])),
        refusals=_refusals(scores),
        regret=regret_of(scores),
    )


def _refusals(scores: Sequence[Score]) -> tuple[RefusalCount, ...]:
    counts: Counter[Reason] = Counter(
        each.refusal.reason for each in scores if each.refusal is not None
    )
    return tuple(
        RefusalCount(reason=reason.value, runs=runs, explanation=EXPLANATIONS[reason])
        for reason, runs in counts.most_common()
    )


def regret_of(scores: Sequence[Score]) -> Regret:
    """The regret of every sweep with two draft lengths or more that are all predicted."""
    sweeps: dict[tuple[object, ...], list[Score]] = defaultdict(list)
    for each in scores:
        if each.sweep is not None and each.refusal is None:
            sweeps[each.sweep].append(each)
    lost: list[float] = []
    for members in sweeps.values():
        lengths = [each.draft_length for each in members]
        # Two runs of one length differ in something that no column tells.
        if len(lengths) < 2 or len(set(lengths)) < len(lengths):
            continue
        advised = max(members, key=lambda each: each.comparison.predicted or 0.0)
        best = max(each.comparison.measured or 0.0 for each in members)
        lost.append(1.0 - (advised.comparison.measured or 0.0) / best)
    return Regret(
        sweeps=len(lost),
        median=float(np.median(lost)) if lost else None,
        worst=max(lost, default=None),
    )
