r"""What a score costs that goes through memory, told by the rows that attend over one context.

Where no one kernel attends, a product writes the scores, a mask and a softmax read and write
them, and another product reads them (:mod:`model.cost.unfused_attention`). Both products walk
tiles of rows, so that among the rows of one tile the time of attention differs by this traffic
alone. With x scores in a timing of t seconds, and means taken over the timings of one context
and one set of heads,

.. math:: s = \frac{\sum w (x - \bar x)(t - \bar t)}{\sum w (x - \bar x)^2}

is the slope that all have in common (a regression with fixed effects). Contexts count that are
aligned: over others the products scatter by more than the scores cost.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from calibrate.fit.bootstrap import DRAWS
from calibrate.samples import Sample
from model.machine.constant import Constant, Origin
from model.machine.profile import seeded_draws
from model.units import Array

LEAST_FREE = 3
"""Timings beyond those that the means and the slope take: of fewer the scatter is not told."""


def scores_of(sample: Sample) -> int:
    """How many scores a probe of attention has: one for each row, query head and key."""
    rows = sample.number("rows") * sample.number("sequences", 1)
    return rows * sample.number("query_heads") * sample.number("context")


def score_constant(
    samples: Sequence[Sample], sigma_log: Array, most_rows: float
) -> Constant | None:
    """The slope and its standard error from attention over aligned contexts.

    `sigma_log` are relative uncertainties of the timings, and `most_rows` the rows of one tile.
    None where the timings do not tell it, or tell that scores cost nothing.
    """
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, sample in enumerate(samples):
        if sample.number("rows") <= most_rows:
            names = ("query_heads", "kv_heads", "head_dim", "context")
            setting = (*map(sample.number, names), sample.number("sequences", 1))
            groups[setting].append(index)
    scores = np.array([scores_of(sample) for sample in samples], dtype=float)
    seconds = np.array([sample.seconds for sample in samples])
    weights = (sigma_log * seconds) ** -2.0
    several = [group for group in groups.values() if len(set(scores[group])) > 1]
    for group in several:
        for values in (scores, seconds):
            values[group] -= np.average(values[group], weights=weights[group])
    told = [index for group in several for index in group]
    spread = float(np.sum(weights[told] * scores[told] ** 2))
    free = len(told) - len(several) - 1
    if free < LEAST_FREE:
        return None
    slope_s = float(np.sum(weights[told] * scores[told] * seconds[told])) / spread
    left = weights[told] * (seconds[told] - slope_s * scores[told]) ** 2
    stderr_s = math.sqrt(max(float(np.sum(left)) / free, 1.0) / spread)
    if slope_s <= 0.0:
        return None
    draws = seeded_draws(slope_s, stderr_s, count=DRAWS, seed=2)
    return Constant(value=slope_s, stderr=stderr_s, unit="s", origin=Origin.MEASURED, draws=draws)
