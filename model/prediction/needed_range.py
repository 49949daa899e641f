r"""How sure a break-even acceptance is: the 90 % interval of the acceptance that is needed.

The speedup at an acceptance has an interval (:mod:`model.prediction.prediction`), with the half
width w on a log scale. The acceptance needed is where the speedup reaches 1, and its interval ends
where an end of the speedup's interval does:

.. math:: S(k, \alpha_{low})\, e^{w(\alpha_{low})} = 1 = S(k, \alpha_{high})\, e^{-w(\alpha_{high})}

Below the one a draft loses, above the other it wins; between them these constants cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from model.machine.profile import Profile
from model.network.checkpoint import Checkpoint
from model.prediction.prediction import Z_90, extrapolation, residual_log
from model.prediction.round_costs import round_costs
from model.strategies.drafted import AbstractDrafted
from model.units import Array

GRID = np.linspace(0.0, 1.0, 513)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NeededRange:
    """The ends of the interval of one draft length.

    `low` is None where every acceptance surely loses, `high` where none surely wins.
    """

    low: float | None
    high: float | None


def needed_ranges(
    strategy: AbstractDrafted,
    target: Checkpoint,
    profile: Profile,
    *,
    context: float,
    draft_lengths: Sequence[int],
) -> tuple[NeededRange, ...]:
    """The interval at each draft length; the strategy's own length and acceptance do not matter.

    Raises:
        InputError: as pricing the strategy's rounds does.
    """
    return _kept_ranges(strategy, target, profile, context, tuple(draft_lengths))


@lru_cache(maxsize=32)
def _kept_ranges(
    strategy: AbstractDrafted,
    target: Checkpoint,
    profile: Profile,
    context: float,
    draft_lengths: tuple[int, ...],
) -> tuple[NeededRange, ...]:
    estimated = round_costs(
        strategy, target, profile.machine, context=context, draft_lengths=draft_lengths
    )
    # The draws of the constants go along the axis of contexts, so there are as many contexts.
    count = len(next(iter(profile.constants.values())).draws)
    drawn = round_costs(
        strategy,
        target,
        profile.sampled_machine,
        context=np.full(count, context),
        draft_lengths=draft_lengths,
    )
    speedup_log = np.log(estimated.speedup_map(GRID))
    spread_log = np.std(np.log(drawn.speedup_map(GRID)), axis=2)
    left_log = np.array([_left_log(strategy, profile, context, k) for k in draft_lengths])
    width_log = Z_90 * np.hypot(spread_log, left_log)
    return tuple(
        NeededRange(low=low, high=high)
        for low, high in zip(
            map(first_above_0, (speedup_log + width_log).T),
            map(first_above_0, (speedup_log - width_log).T),
            strict=True,
        )
    )


def _left_log(strategy: AbstractDrafted, profile: Profile, context: float, length: int) -> float:
    """What the fit leaves on the speedup of rounds of one draft length."""
    rows = strategy.with_length(length).rows
    stretch, _ = extrapolation(profile, rows, context, sequences=strategy.batch)
    return residual_log(profile, rows, stretch, of=2)


def first_above_0(values: Array) -> float | None:
    """The smallest acceptance at which values over the grid are above 0; None: nowhere.

    Between two points of the grid a value is taken as straight.

    >>> first_above_0(GRID - 0.25), first_above_0(GRID - 2.0), first_above_0(GRID + 1.0)
    (0.25, None, 0.0)
    """
    above = np.flatnonzero(values > 0.0)
    if not len(above):
        return None
    first = int(above[0])
    if first == 0:
        return 0.0
    return float(np.interp(0.0, values[first - 1 : first + 1], GRID[first - 1 : first + 1]))
