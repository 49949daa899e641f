"""The settings of a self-draft by layer skipping, solved: what a win needs, what 0.8 allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from model.articles.bench import CONTEXT, loaded
from model.articles.estimates import acceptance_for, central, drawn_costs
from model.machine.profile import Profile
from model.network.sublayers import middle_block
from model.planners.layer_skip import ALWAYS, NEVER, SkipCell, plan_layer_skip
from model.prediction.round_costs import round_costs
from model.strategies.layer_skip import LayerSkip

MODELS = ("qwen3-4b", "llama-3.2-3b")
FRACTIONS = (0.125, 0.25, 0.375, 0.5)
LENGTHS = (2, 3, 4)
BEST_SPEEDUP = 0.8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One setting under one runtime: the plan, and the most acceptance that 0.8 allows.

    `allowed_acceptance` is None where even a draft that is always right stays below 0.8.
    """

    model: str
    runtime: str
    plan: SkipCell
    allowed_acceptance: float | None

    @property
    def name(self) -> str:
        """The row of the table."""
        return f"{self.model} {self.plan.skip_fraction:g} k={self.plan.draft_length}"


def cells_of(profile: Profile, model: str) -> list[Cell]:
    """The twelve cells of one model."""
    target = loaded(profile, model, "4bit")
    plan = plan_layer_skip(
        target, profile.machine, context=CONTEXT, fractions=FRACTIONS, draft_lengths=LENGTHS
    )
    allowed: list[float] = []
    for fraction in FRACTIONS:
        strategy = skipping(profile, model, fraction)
        costs = round_costs(
            strategy, target, profile.machine, context=CONTEXT, draft_lengths=LENGTHS
        )
        allowed += [
            float(acceptance_for(costs, column, BEST_SPEEDUP)) for column in range(len(LENGTHS))
        ]
    return [
        Cell(
            model=model,
            runtime=profile.header.runtime,
            plan=cell,
            allowed_acceptance=most if np.isfinite(most) else None,
        )
        for cell, most in zip(plan, allowed, strict=True)
    ]


def skipping(profile: Profile, model: str, fraction: float) -> LayerSkip:
    """The draft of a share of middle layers skipped."""
    skipped = middle_block(loaded(profile, model, "4bit").architecture, fraction)
    return LayerSkip(skipped=skipped, draft_length=1, acceptance=NEVER)


def drawn_wins(profile: Profile) -> tuple[float, float] | None:
    """How many settings a draft that is always right wins, over the draws."""
    wins = np.zeros(1)
    for model in MODELS:
        target = loaded(profile, model, "4bit")
        for fraction in FRACTIONS:
            strategy = skipping(profile, model, fraction)
            costs = drawn_costs(strategy, target, profile, context=CONTEXT, draft_lengths=LENGTHS)
            wins = wins + (costs.speedup(ALWAYS) > 1.0).sum(axis=0)
    return central(wins)
