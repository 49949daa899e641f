"""The published pair by itself: identities that hold for any machine and any acceptance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.articles.claim import Word
from model.articles.draft_length_case import PAIR
from model.articles.draft_length_reasons import MEASURED_DRAFT_COSTS, PER_ROW, allowed
from model.articles.published_pair import PublishedPair, VerifyCosts, rates
from model.progress.acceptance import Acceptance, tokens_per_pass

probabilities = st.floats(0.0, 1.0)
positions = st.tuples(probabilities, probabilities, probabilities, probabilities)
draft_costs = st.floats(0.0, 0.7)


def tokens(by_position: tuple[float, ...]) -> tuple[float, float]:
    acceptance = Acceptance(by_position=by_position)
    return acceptance.tokens_per_pass(2), acceptance.tokens_per_pass(4)


@given(draft_costs)
def test_free_checking_gives_the_published_pair_with_no_draft(draft_cost: float) -> None:
    """E(4) - E(2) = 0.75 (1 + 4 c) - 1.2 (1 + 2 c) = 0.6 c - 0.45, negative below c = 0.75."""
    two, four = PAIR.tokens(VerifyCosts(three=1.0, five=1.0), draft_cost=draft_cost)
    assert four - two == pytest.approx(0.6 * draft_cost - 0.45)
    assert rates(two, four) is Word.IMPOSSIBLE


@given(positions, draft_costs)
def test_the_bound_on_five_rows_holds_for_any_rates(
    by_position: tuple[float, float, float, float], draft_cost: float
) -> None:
    two, four = tokens(by_position)
    three_rows = two / PAIR.two - 2.0 * draft_cost
    five_rows = four / PAIR.four - 4.0 * draft_cost
    least = PAIR.least_five_rows(three_rows=three_rows, draft_cost=draft_cost)
    assert five_rows >= least - 1e-9


def test_the_bound_is_reached_when_the_third_token_is_never_right() -> None:
    two, four = tokens((0.8, 0.5, 0.0))
    least = PAIR.least_five_rows(three_rows=two / PAIR.two - 0.3, draft_cost=0.15)
    assert four / PAIR.four - 0.6 == pytest.approx(least)


@given(probabilities, draft_costs)
def test_costs_at_an_acceptance_commit_what_it_gives(acceptance: float, draft_cost: float) -> None:
    costs = PAIR.costs_at(acceptance, draft_cost=draft_cost)
    two, four = PAIR.tokens(costs, draft_cost=draft_cost)
    assert two == pytest.approx(tokens_per_pass(acceptance, 2))
    assert four == pytest.approx(tokens_per_pass(acceptance, 4))


@given(st.tuples(*[st.floats(0.05, 0.95)] * 4))
def test_rates_that_fall_and_rise_are_told_apart(
    by_position: tuple[float, float, float, float],
) -> None:
    falling = tuple(sorted(by_position, reverse=True))
    two, four = tokens(falling)
    assert rates(two, four - 1e-9) is Word.FALLING
    two, four = tokens(tuple(sorted(by_position)))
    assert rates(two, four + 1e-9) is Word.RISING


@given(positions)
def test_rates_that_exist_are_possible(by_position: tuple[float, float, float, float]) -> None:
    two, four = tokens(by_position)
    inside = min(max(four, two), 2.0 * two - 1.0)
    assert inside == pytest.approx(four)
    assert rates(two, inside) is not Word.IMPOSSIBLE


@pytest.mark.parametrize(("two", "four"), [(1.75, 1.74), (1.75, 2.51), (0.99, 0.99), (3.1, 3.2)])
def test_tokens_outside_the_bounds_are_impossible(two: float, four: float) -> None:
    assert rates(two, four) is Word.IMPOSSIBLE


@pytest.mark.parametrize("draft_cost", MEASURED_DRAFT_COSTS)
def test_what_one_acceptance_leaves_is_neither_free_nor_dearer_than_its_rows(
    draft_cost: float,
) -> None:
    found = allowed(PAIR, draft_cost=draft_cost)
    assert found
    for acceptance, costs in found:
        assert 0.0 < acceptance < 1.0
        assert 1.4 < costs.five <= PER_ROW * costs.three


def test_a_pair_that_gains_more_with_more_drafts_needs_no_dear_pass() -> None:
    other = PublishedPair(two=1.2, four=1.4)
    assert other.least_five_rows(three_rows=1.0, draft_cost=0.15) < 1.0
