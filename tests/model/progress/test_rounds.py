"""The names of progress against rounds that are played with seeded coins."""

from __future__ import annotations

import numpy as np
import pytest

from model.progress.acceptance import (
    Acceptance,
    from_accepted_fraction,
    from_draft_share,
    from_survival,
    from_tokens_per_pass,
)
from model.units import Array

ROUNDS = 200_000
CASES = [((0.8,), 4), ((0.9, 0.7, 0.5, 0.3), 4), ((0.6,), 1), ((0.95, 0.9), 8), ((0.3, 0.9), 3)]


def simulate_rounds(by_position: tuple[float, ...], draft_length: int, rounds: int) -> Array:
    """Accepted tokens of each round: a coin for each position until the first that says no."""
    generator = np.random.default_rng(20230)
    accepted = np.zeros(rounds)
    going = np.ones(rounds, dtype=bool)
    for position in range(draft_length):
        rate = by_position[min(position, len(by_position) - 1)]
        going &= generator.random(rounds) < rate
        accepted += going
    return accepted


def standard_error(values: Array) -> float:
    return float(np.std(values) / np.sqrt(len(values)))


@pytest.mark.parametrize(("rates", "k"), CASES)
class TestClosedForms:
    """Four standard errors: all of these fail by chance once in some hundred choices of seed."""

    def test_tokens_per_pass(self, rates: tuple[float, ...], k: int) -> None:
        committed = 1.0 + simulate_rounds(rates, k, ROUNDS)
        expected = Acceptance(by_position=rates).tokens_per_pass(k)
        assert committed.mean() == pytest.approx(expected, abs=4 * standard_error(committed))

    def test_how_many_are_accepted_up_to_all_of_them(
        self, rates: tuple[float, ...], k: int
    ) -> None:
        accepted = simulate_rounds(rates, k, ROUNDS)
        shares = [np.count_nonzero(accepted == count) / ROUNDS for count in range(k + 1)]
        expected = Acceptance(by_position=rates).accepted_counts(k)
        assert shares == pytest.approx(expected.tolist(), abs=4 * 0.5 / np.sqrt(ROUNDS))

    def test_survival_is_the_share_of_rounds_that_got_that_far(
        self, rates: tuple[float, ...], k: int
    ) -> None:
        accepted = simulate_rounds(rates, k, ROUNDS)
        shares = [float(np.mean(accepted >= position)) for position in range(1, k + 1)]
        got_there = Acceptance(by_position=rates).survival(k)
        assert shares == pytest.approx(got_there.tolist(), abs=4 * 0.5 / np.sqrt(ROUNDS))
        by_position = from_survival(shares)
        assert by_position.tokens_per_pass(k) == pytest.approx(1.0 + accepted.mean(), rel=1e-9)

    def test_every_name_leads_to_the_same_acceptance(
        self, rates: tuple[float, ...], k: int
    ) -> None:
        accepted = float(simulate_rounds(rates, k, ROUNDS).sum())
        from_tokens = from_tokens_per_pass(1.0 + accepted / ROUNDS, k)
        assert from_accepted_fraction(accepted / (k * ROUNDS), k) == pytest.approx(from_tokens)
        assert from_draft_share(accepted / (accepted + ROUNDS), k) == pytest.approx(from_tokens)


def test_the_share_of_the_output_that_was_drafted() -> None:
    """alpha = 0.8, k = 4: E = 3.3616, so (E - 1) / E = 0.7025 of it is drafted."""
    accepted = simulate_rounds((0.8,), 4, ROUNDS)
    share = accepted.sum() / (accepted + 1.0).sum()
    # By the delta method: d share = d mean / E^2.
    error = standard_error(accepted) / 3.3616**2
    assert share == pytest.approx(2.3616 / 3.3616, abs=4 * error)
