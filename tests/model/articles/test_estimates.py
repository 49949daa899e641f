"""Acceptances that a speedup needs, against the break-even solver and one draw at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.articles.bench import CONTEXT, loaded
from model.articles.estimates import (
    acceptance_for,
    central,
    drawn_costs,
    pass_cost,
    pass_scatter,
    sustained_tokens_per_s,
)
from model.machine.profile import Profile
from model.machine.profile_store import DEFAULT_MACHINE, named_profile
from model.prediction.break_even import break_even
from model.prediction.round_costs import RoundCosts, round_costs
from model.progress.acceptance import Acceptance
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative

LENGTHS = (2, 4)


@pytest.fixture(scope="module")
def profile() -> Profile:
    return named_profile(DEFAULT_MACHINE)


def speculative(profile: Profile, draft_format: str = "4bit") -> Speculative:
    draft = loaded(profile, "llama-3.2-1b", draft_format)
    return Speculative(draft=draft, draft_length=1, acceptance=Acceptance(by_position=(0.0,)))


@pytest.fixture(scope="module")
def costs(profile: Profile) -> RoundCosts:
    target = loaded(profile, "llama-3.1-8b", "4bit")
    return round_costs(
        speculative(profile), target, profile.machine, context=CONTEXT, draft_lengths=LENGTHS
    )


@pytest.mark.parametrize("column", [0, 1])
def test_a_speedup_of_one_needs_the_break_even(costs: RoundCosts, column: int) -> None:
    needed = break_even(costs)[column]
    assert float(acceptance_for(costs, column, 1.0)) == pytest.approx(needed, abs=1e-5)


@pytest.mark.parametrize("speedup", [0.75, 1.2, 1.7])
def test_the_acceptance_that_is_found_gives_the_speedup(costs: RoundCosts, speedup: float) -> None:
    found = float(acceptance_for(costs, 1, speedup))
    given_back = costs.speedup(Acceptance(by_position=(found,)))[1]
    assert given_back == pytest.approx(speedup, rel=1e-4)


def test_a_speedup_beyond_an_always_right_draft_has_none(costs: RoundCosts) -> None:
    most = float(costs.speedup(Acceptance(by_position=(1.0,)))[0])
    assert np.isnan(acceptance_for(costs, 0, 1.01 * most))


def test_a_speedup_below_an_always_wrong_draft_needs_nothing(costs: RoundCosts) -> None:
    assert float(acceptance_for(costs, 0, 1e-3)) == 0.0


def test_draws_on_the_context_axis_are_draws_one_by_one(profile: Profile) -> None:
    """The price of draw 7 alone, from a profile whose constants are that draw."""
    target, strategy = loaded(profile, "llama-3.1-8b", "4bit"), speculative(profile)
    drawn = drawn_costs(strategy, target, profile, context=CONTEXT, draft_lengths=LENGTHS)
    seventh = {
        name: replace(constant, value=float(constant.draws[7]))
        for name, constant in profile.constants.items()
    }
    alone = round_costs(
        strategy,
        target,
        replace(profile, constants=seventh).machine,
        context=CONTEXT,
        draft_lengths=LENGTHS,
    )
    assert drawn.missed_s[:, 7] == pytest.approx(alone.missed_s)
    assert drawn.plain_s[7] == pytest.approx(float(alone.plain_s))
    found = acceptance_for(drawn, 0, 1.2)[7]
    assert found == pytest.approx(float(acceptance_for(alone, 0, 1.2)))


def test_a_pass_of_one_row_is_one_pass(profile: Profile) -> None:
    target = loaded(profile, "llama-3.1-8b", "4bit")
    one = pass_cost(profile, target, rows=1, context=CONTEXT)
    assert one.value == 1.0
    assert one.interval_90 == pytest.approx((1.0, 1.0))


def test_a_hot_machine_keeps_the_share_that_is_stated(profile: Profile) -> None:
    target = loaded(profile, "llama-3.1-8b", "4bit")
    hot = sustained_tokens_per_s(profile, target, context=CONTEXT)
    assert hot is not None
    cold = 1.0 / float(Plain().round(target, profile.machine, CONTEXT).round_s)
    # Where the host is hidden, all of a token is device time.
    assert hot.value / cold == pytest.approx(profile.constants["sustained_share"].value, rel=0.02)
    assert hot.interval_90[0] < hot.value < hot.interval_90[1]


def test_scatter_is_that_of_the_profile(profile: Profile) -> None:
    scatter = pass_scatter(profile, (1, 3, 5), context=CONTEXT)
    assert np.std(np.log(scatter)) == pytest.approx(profile.header.residual_log, rel=0.15)


def test_too_few_draws_have_no_interval() -> None:
    drawn = np.full(100, np.nan)
    drawn[:5] = 1.0
    assert central(drawn) is None
    drawn[:50] = np.linspace(0.0, 1.0, 50)
    low, high = central(drawn) or (0.0, 0.0)
    assert (low, high) == pytest.approx((0.05, 0.95))
