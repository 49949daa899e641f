"""One runtime and format of the published pair: the acceptances that both speedups took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from model.articles.bench import CONTEXT, DRAFT, TARGET, loaded
from model.articles.claim import Word
from model.articles.estimates import acceptance_for, central, drawn_costs, pass_scatter
from model.articles.published_pair import PublishedPair, VerifyCosts, rates
from model.cost.forward import forward_pass
from model.machine.profile import Profile
from model.prediction.memory import feasibility
from model.prediction.round_costs import RoundCosts, round_costs
from model.progress.acceptance import Acceptance, tokens_per_pass
from model.strategies.speculative import Speculative
from model.units import Array

PAIR = PublishedPair(two=1.20, four=0.75)
LENGTHS = (2, 4)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """The pair in one runtime and format: what drafting costs, and what each speedup took.

    `possible` is the share of draws in which some acceptance by position gives both speedups;
    `four_given_two` is the speedup at length 4 with the acceptance that gives the one at 2.
    """

    name: str
    fits: bool
    draft_cost: float
    verify: VerifyCosts
    acceptance: tuple[float | None, float | None]
    acceptance_90: tuple[tuple[float, float] | None, tuple[float, float] | None]
    four_given_two: float | None
    four_given_two_90: tuple[float, float] | None
    possible: float

    @property
    def rates(self) -> Word:
        """Which acceptance by position both speedups need at the fitted constants."""
        two, four = self.acceptance
        if two is None or four is None:
            return Word.NO_ACCEPTANCE
        return rates(float(tokens_per_pass(two, 2)), float(tokens_per_pass(four, 4)))


def case_of(profile: Profile, target_format: str, draft_format: str) -> Case:
    """Solve for both acceptances, at the fitted constants and on every draw."""
    target = loaded(profile, TARGET, target_format)
    draft = loaded(profile, DRAFT, draft_format)
    machine = profile.machine
    strategy = Speculative(draft=draft, draft_length=1, acceptance=Acceptance(by_position=(0.0,)))
    costs = round_costs(strategy, target, machine, context=CONTEXT, draft_lengths=LENGTHS)
    drawn = drawn_costs(strategy, target, profile, context=CONTEXT, draft_lengths=LENGTHS)
    plain_s, drafting_s, three_s, five_s = (
        float(forward_pass(network, machine, rows=rows, context=CONTEXT).device_s)
        for network, rows in ((target, 1), (draft, 1), (target, 3), (target, 5))
    )
    two, four = (float(a) for a in solved(costs, np.ones(3)))
    # Of the plain pass and of the rounds of either length, each with a scatter of its own.
    scatter = pass_scatter(profile, (1, 3, 5), context=CONTEXT)
    drawn_two, drawn_four = solved(drawn, scatter)
    tokens_two = np.asarray(tokens_per_pass(drawn_two, 2))
    tokens_four = np.asarray(tokens_per_pass(drawn_four, 4))
    with np.errstate(invalid="ignore"):
        possible = (tokens_two <= tokens_four) & (tokens_four <= 2.0 * tokens_two - 1.0)
    return Case(
        name=f"{profile.header.runtime} {target_format}+{draft_format}",
        fits=feasibility(((target, 1), (draft, 1)), machine, context=CONTEXT).fits,
        draft_cost=drafting_s / plain_s,
        verify=VerifyCosts(three=three_s / plain_s, five=five_s / plain_s),
        acceptance=(number(two), number(four)),
        acceptance_90=(central(drawn_two), central(drawn_four)),
        four_given_two=number(float(speedup_at(costs, np.array(two)))),
        four_given_two_90=central(speedup_at(drawn, drawn_two) * scatter[0] / scatter[2]),
        possible=float(np.mean(possible)),
    )


def solved(costs: RoundCosts, scatter: Array) -> tuple[Array, Array]:
    """The acceptances of both speedups; nan where none gives it."""
    two = acceptance_for(costs, 0, PAIR.two * scatter[1] / scatter[0])
    return two, acceptance_for(costs, 1, PAIR.four * scatter[2] / scatter[0])


def speedup_at(costs: RoundCosts, acceptance: Array) -> Array:
    """The speedup at length 4, entry by entry of the acceptances and of the costs' last axis."""
    powers = np.stack([acceptance**power for power in range(1, 5)])
    tokens = 1.0 + powers.sum(axis=0)
    round_s = costs.missed_s[1] + (powers * costs.catch_up_s[1]).sum(axis=0)
    return tokens * costs.plain_s / (round_s + tokens * costs.growth_s)


def number(value: float) -> float | None:
    """A number, or None for nan."""
    return value if np.isfinite(value) else None
