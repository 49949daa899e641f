"""What a drafted strategy would need, where nobody knows how often its draft is right.

Without an acceptance there is no speed to predict, and a made-up one would decide the answer. So
the answer is a curve: the best speedup at every acceptance, the draft length that gives it, and
the smallest acceptance from which any draft length wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.prediction.break_even import break_even
from model.prediction.memory import Feasibility, feasibility
from model.prediction.round_costs import round_costs
from model.strategies.base import Settings
from model.strategies.drafted import AbstractDrafted

CURVE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Acceptances at which the curve is given."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """The best that a strategy can make of an acceptance."""

    acceptance: float
    draft_length: int
    speedup: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The acceptance a strategy needs, and what it would give at others.

    `needed_acceptance` is the smallest that wins at any draft length, at `draft_length`; both are
    None where no acceptance wins. Speedups are estimates for a machine on which it fits.
    """

    strategy: str
    settings: Settings
    reason: str
    needed_acceptance: float | None
    draft_length: int | None
    curve: tuple[CurvePoint, ...]
    memory: Feasibility


def need(
    strategy: AbstractDrafted,
    target: Checkpoint,
    machine: Machine,
    *,
    context: float,
    draft_lengths: Sequence[int],
    reason: str,
) -> Need:
    """Solve for the acceptance of `strategy`; its own draft length and acceptance do not matter.

    Raises:
        InputError: as pricing the strategy's rounds does.
    """
    return _kept_need(strategy, target, machine, context, tuple(draft_lengths), reason)


@lru_cache(maxsize=64)
def _kept_need(
    strategy: AbstractDrafted,
    target: Checkpoint,
    machine: Machine,
    context: float,
    draft_lengths: tuple[int, ...],
    reason: str,
) -> Need:
    costs = round_costs(strategy, target, machine, context=context, draft_lengths=draft_lengths)
    winning = [
        (needed, length)
        for needed, length in zip(break_even(costs), draft_lengths, strict=True)
        if needed is not None
    ]
    needed, length = min(winning, default=(None, None))
    speedups = costs.speedup_map(np.array(CURVE))
    best = [int(index) for index in np.argmax(speedups, axis=1)]
    unknown = ("draft_length", "acceptance")
    return Need(
        strategy=strategy.name,
        settings={name: value for name, value in strategy.settings.items() if name not in unknown},
        reason=reason,
        needed_acceptance=needed,
        draft_length=length,
        curve=tuple(
            CurvePoint(
                acceptance=acceptance,
                draft_length=draft_lengths[index],
                speedup=float(speedups[row, index]),
            )
            for row, (acceptance, index) in enumerate(zip(CURVE, best, strict=True))
        ),
        memory=feasibility(
            strategy.residents(target),
            machine,
            context=context,
            shared_cache_bytes=strategy.shared_cache_bytes(target, context),
        ),
    )
