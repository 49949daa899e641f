r"""Break-even: the acceptance a draft needs, and the draft length that pays best.

With :math:`t_1` the time of a plain token and :math:`T(k, \alpha)` the expected round of
:mod:`model.prediction.round_costs`, drafting wins where

.. math:: g(\alpha) = E(k, \alpha)\, t_1 - T(k, \alpha) > 0

The smallest root is the break-even acceptance. Where g stays below 0 no acceptance wins, and that
is the answer: a round costs more plain passes than the k + 1 tokens it can commit at best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from model.prediction.round_costs import RoundCosts
from model.progress.acceptance import Acceptance
from model.units import Array

GRID = np.linspace(0.0, 1.0, 2049)
LAST_BIT = 1e-12


def break_even(costs: RoundCosts) -> tuple[float | None, ...]:
    """The smallest acceptance that wins, for each draft length; None where none does.

    Costs are those of one context.
    """
    gains = costs.gain_s(GRID)
    return tuple(
        _root(costs, column, gains[:, column]) for column in range(len(costs.draft_lengths))
    )


def _root(costs: RoundCosts, column: int, gains: Array) -> float | None:
    wins = np.flatnonzero(gains > 0.0)
    if not len(wins):
        return None
    if wins[0] == 0:
        return 0.0
    low, high = float(GRID[wins[0] - 1]), float(GRID[wins[0]])
    while high - low > LAST_BIT:
        middle = (low + high) / 2.0
        if costs.gain_s(np.array([middle]))[0, column] > 0.0:
            high = middle
        else:
            low = middle
    return high


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
    speedup = costs.speedup(acceptance)
    best = int(np.argmax(speedup))
    neighbours = [i for i in (best - 1, best + 1) if 0 <= i < len(speedup)]
    return BestDraftLength(
        draft_length=costs.draft_lengths[best],
        speedup=float(speedup[best]),
        regret=tuple(
            (costs.draft_lengths[i], 1.0 - float(speedup[i] / speedup[best])) for i in neighbours
        ),
    )
