r"""Break-even: the acceptance a draft needs, and the draft length that pays best.

With :math:`t_1` the time of a plain token and :math:`T(k, \alpha)` the expected round of
:mod:`model.prediction.round_costs`, drafting wins where

.. math:: g(\alpha) = E(k, \alpha)\, t_1 - T(k, \alpha) > 0

The smallest root is the break-even acceptance. Where g stays below 0 no acceptance wins, and that
is the answer: a round costs more plain passes than the k + 1 tokens it can commit at best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from model.prediction.round_costs import RoundCosts
from model.progress.acceptance import Acceptance
from model.units import Array

GRID = np.linspace(0.0, 1.0, 2049)
LAST_BIT = 1e-12


def break_even(costs: RoundCosts) -> tuple[float | None, ...]:
    """The smallest acceptance that wins, for each draft length at one context; None: none does.

    Found on a grid, then by bisection of all draft lengths at once.
    """
    wins = costs.gain_s(GRID) > 0.0
    first = np.argmax(wins, axis=0)
    winning = np.flatnonzero(wins.any(axis=0) & (first > 0))
    high = GRID[first]
    low = GRID[np.maximum(first - 1, 0)]
    while len(winning) and np.max(high[winning] - low[winning]) > LAST_BIT:
        middle = (low + high) / 2.0
        gains = np.diagonal(costs.gain_s(middle))
        high = np.where(gains > 0.0, middle, high)
        low = np.where(gains > 0.0, low, middle)
    found: list[float | None] = [None] * len(costs.draft_lengths)
    for column in np.flatnonzero(wins.any(axis=0)).tolist():
        found[column] = float(high[column]) if first[column] else 0.0
    return tuple(found)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BestDraftLength:
    """The draft length with the largest speedup, and what its neighbours lose.

    `regret` maps the neighbours to the share of the best speed that choosing them costs.
    """

    draft_length: int
    speedup: float
    regret: tuple[tuple[int, float], ...]


def best_draft_length(costs: RoundCosts, acceptance: Acceptance) -> BestDraftLength:
    """The arg max of the speedup; a cliff between kernels can put it far from the textbook's."""
    return best_of(costs.draft_lengths, costs.speedup(acceptance))


def best_of(draft_lengths: Sequence[int], speedup: Array) -> BestDraftLength:
    """The best of these draft lengths, which may each have an acceptance of their own."""
    best = int(np.argmax(speedup))
    neighbours = [i for i in (best - 1, best + 1) if 0 <= i < len(speedup)]
    return BestDraftLength(
        draft_length=draft_lengths[best],
        speedup=float(speedup[best]),
        regret=tuple(
            (draft_lengths[i], 1.0 - float(speedup[i] / speedup[best])) for i in neighbours
        ),
    )
