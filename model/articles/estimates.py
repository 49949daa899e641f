r"""Ratios with their intervals: what a pass of many rows costs, and the acceptance a gain needs.

The acceptance at which a speedup :math:`S^*` is reached is the smallest root of

.. math:: \frac{E(k, \alpha)\, t_1}{T(k, \alpha)} = S^*

with the rounds of :mod:`model.prediction.round_costs`; where there is none, no acceptance reaches
it. Its interval is over the draws of the profile's constants, each with the scatter of whole
passes drawn anew for the plain pass and for the round of each draft length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from model.cost.forward import forward_pass
from model.machine.machine import Machine
from model.machine.profile import Profile
from model.network.checkpoint import Checkpoint
from model.prediction.prediction import extrapolation, interval, residual_log
from model.prediction.round_costs import RoundCosts, round_costs
from model.strategies.drafted import AbstractDrafted
from model.strategies.plain import Plain
from model.units import Array, Quantity

GRID = np.linspace(0.0, 1.0, 1025)
SEED = 20_260_614


class Estimate(NamedTuple):
    """A number and its central 90 % interval."""

    value: float
    interval_90: tuple[float, float]


def pass_cost(profile: Profile, checkpoint: Checkpoint, *, rows: int, context: float) -> Estimate:
    """Device time of a pass of so many rows, in passes of one row."""

    def ratio(machine: Machine) -> Quantity:
        many = forward_pass(checkpoint, machine, rows=rows, context=context).device_s
        return many / forward_pass(checkpoint, machine, rows=1, context=context).device_s

    value = float(ratio(profile.machine))
    stretch, _ = extrapolation(profile, rows, context)
    residual = 0.0 if rows == 1 else residual_log(profile, rows, stretch, of=2)
    return Estimate(value, interval(value, ratio(profile.sampled_machine), residual))


def sustained_tokens_per_s(
    profile: Profile, checkpoint: Checkpoint, *, context: float
) -> Estimate | None:
    """Plain decoding after minutes of work; None where nobody says what remains of the speed."""
    hot, sampled = profile.machine.sustained(), profile.sampled_machine.sustained()
    if hot is None or sampled is None:
        return None
    value = 1.0 / float(Plain().round(checkpoint, hot, context).round_s)
    drawn_s = Plain().round(checkpoint, sampled, context).round_s
    stretch, _ = extrapolation(profile, 1, context)
    return Estimate(value, interval(value, drawn_s, residual_log(profile, 1, stretch)))


def acceptance_for(costs: RoundCosts, column: int, speedup: Quantity) -> Array:
    """The smallest acceptance that reaches `speedup`; nan where none does.

    `column` picks the draft length; what remains of the costs' axes, contexts or draws, remains.
    """
    found = costs.speedup_map(GRID)[:, column]
    reached = found >= speedup
    first = np.argmax(reached, axis=0)
    before = np.maximum(first - 1, 0)
    high = np.take_along_axis(found, first[None, ...], axis=0)[0]
    low = np.take_along_axis(found, before[None, ...], axis=0)[0]
    rise = np.where(high > low, high - low, 1.0)
    share = np.where(first > 0, (speedup - low) / rise, 0.0)
    acceptance = GRID[before] + share * (GRID[first] - GRID[before])
    return np.where(np.any(reached, axis=0), acceptance, np.nan)


def drawn_costs(
    strategy: AbstractDrafted,
    target: Checkpoint,
    profile: Profile,
    *,
    context: float,
    draft_lengths: tuple[int, ...],
) -> RoundCosts:
    """The rounds of a strategy with the draws of the profile on the axis of the contexts.

    Everything broadcasts entry by entry, so that as many equal contexts as there are draws price
    one round a draw.
    """
    count = len(next(iter(profile.constants.values())).draws)
    return round_costs(
        strategy,
        target,
        profile.sampled_machine,
        context=np.full(count, context),
        draft_lengths=draft_lengths,
    )


def pass_scatter(profile: Profile, rows: tuple[int, ...], *, context: float) -> Array:
    """Factors on the times of passes of so many rows, one column a draw: their residual."""
    count = len(next(iter(profile.constants.values())).draws)
    normal = np.random.default_rng(SEED).standard_normal((len(rows), count))
    stretches = [extrapolation(profile, each, context)[0] for each in rows]
    residuals = [residual_log(profile, *each) for each in zip(rows, stretches, strict=True)]
    return np.exp(np.array(residuals)[:, None] * normal)


def central(drawn: Array) -> tuple[float, float] | None:
    """The central 90 % of draws, nan left out; None where too few are left to say."""
    known = drawn[np.isfinite(drawn)]
    if len(known) < 0.1 * len(drawn):
        return None
    low, high = np.quantile(known, (0.05, 0.95))
    return float(low), float(high)
