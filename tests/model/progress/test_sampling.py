"""Acceptance rules: closed forms against tokens that are really sampled, limits and refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from model.errors import InputError
from model.progress.acceptance import Acceptance
from model.progress.sampling import (
    collision_probability,
    exact_match_acceptance,
    exact_match_ceiling,
    exact_match_from_rejection,
    greedy_acceptance,
    next_token_probabilities,
    rejection_acceptance,
)
from model.units import Array, Quantity

DRAWS = 200_000
# Four standard errors of a share of DRAWS, at most.
ERROR = 4 * 0.5 / np.sqrt(DRAWS)

seeds = st.integers(min_value=0, max_value=2**32 - 1)


def distributions(seed: int, count: int, tokens: int = 12) -> tuple[Array, Array]:
    """Targets and drafts that resemble them, by position: logits, and logits with an error."""
    generator = np.random.default_rng(seed)
    logits = 2.0 * generator.standard_normal((count, tokens))
    errors = generator.standard_normal((count, tokens))
    return next_token_probabilities(logits, 1.0), next_token_probabilities(logits + errors, 0.8)


def sample(generator: np.random.Generator, probabilities: Array) -> NDArray[np.int64]:
    return generator.choice(len(probabilities), size=DRAWS, p=probabilities)


def rejection_accepts(
    generator: np.random.Generator, target: Array, draft: Array
) -> NDArray[np.bool_]:
    tokens = sample(generator, draft)
    return generator.random(DRAWS) < (target / draft)[tokens]


def exact_match_accepts(
    generator: np.random.Generator, target: Array, draft: Array
) -> NDArray[np.bool_]:
    return sample(generator, draft) == sample(generator, target)


class TestSampledTokens:
    """Draft and target tokens are drawn, and the rule itself says yes or no."""

    @pytest.mark.parametrize(
        ("accepts", "closed_form"),
        [
            (rejection_accepts, rejection_acceptance),
            (exact_match_accepts, exact_match_acceptance),
        ],
    )
    def test_tokens_per_pass_with_rates_by_position(
        self,
        accepts: Callable[[np.random.Generator, Array, Array], NDArray[np.bool_]],
        closed_form: Callable[[Array, Array], Quantity],
    ) -> None:
        target, draft = distributions(seed=5, count=4)
        generator = np.random.default_rng(11)
        rates = np.asarray(closed_form(target, draft))
        said_yes = np.array([accepts(generator, *pair) for pair in zip(target, draft, strict=True)])
        assert said_yes.mean(axis=1) == pytest.approx(rates, abs=ERROR)

        committed = 1.0 + np.cumprod(said_yes, axis=0).sum(axis=0)
        expected = Acceptance(by_position=tuple(rates.tolist())).tokens_per_pass(4)
        error = 4 * committed.std() / np.sqrt(DRAWS)
        assert committed.mean() == pytest.approx(expected, abs=error)

    def test_the_mixture_that_the_conversion_assumes(self) -> None:
        """The target with weight 0.7, and with 0.3 tokens that it never takes."""
        target = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
        draft = 0.7 * target + 0.3 * np.array([0.0, 0.0, 0.0, 0.4, 0.6])
        generator = np.random.default_rng(3)
        # 0.25 + 0.09 + 0.04 = 0.38, and 0.7 x 0.38 = 0.266.
        assert collision_probability(target) == pytest.approx(0.38)
        rejection = float(rejection_accepts(generator, target, draft).mean())
        exact = float(exact_match_accepts(generator, target, draft).mean())
        assert rejection == pytest.approx(0.7, abs=ERROR)
        assert exact == pytest.approx(exact_match_from_rejection(0.7, 0.38), abs=ERROR)
        assert exact_match_acceptance(target, draft) == pytest.approx(0.266)


class TestOrder:
    """What may never exceed what, for distributions drawn at random."""

    @given(seeds)
    def test_exact_match_is_below_rejection_and_both_bounds(self, seed: int) -> None:
        target, draft = distributions(seed, count=20)
        exact = np.asarray(exact_match_acceptance(target, draft))
        collisions = np.asarray(collision_probability(target) * collision_probability(draft))
        assert np.all(exact <= np.asarray(rejection_acceptance(target, draft)) + 1e-12)
        assert np.all(exact <= np.sqrt(collisions) + 1e-12)
        assert np.all(exact <= np.asarray(exact_match_ceiling(target)) + 1e-12)

    @given(seeds)
    def test_a_perfect_draft(self, seed: int) -> None:
        target, _ = distributions(seed, count=20)
        assert rejection_acceptance(target, target) == pytest.approx(np.ones(20))
        assert greedy_acceptance(target, target) == pytest.approx(np.ones(20))
        collision = np.asarray(collision_probability(target))
        assert np.all(collision <= np.asarray(exact_match_ceiling(target)) + 1e-12)

    @given(seeds)
    def test_naming_the_likeliest_token_reaches_the_ceiling(self, seed: int) -> None:
        target, _ = distributions(seed, count=20)
        named = next_token_probabilities(np.log(target), 0.0)
        assert exact_match_acceptance(target, named) == pytest.approx(exact_match_ceiling(target))

    @given(seeds)
    def test_a_cold_target_makes_all_rules_greedy(self, seed: int) -> None:
        target, draft = distributions(seed, count=20)
        cold = [next_token_probabilities(np.log(logits), 0.0) for logits in (target, draft)]
        greedy = greedy_acceptance(target, draft)
        assert exact_match_acceptance(cold[0], cold[1]) == pytest.approx(greedy)
        assert rejection_acceptance(cold[0], cold[1]) == pytest.approx(greedy)


def test_temperature_scales_logits() -> None:
    """At T = 0.5 odds are squared: 4 to 1 becomes 16 to 1."""
    logits = np.log([0.8, 0.2])
    assert next_token_probabilities(logits, 1.0) == pytest.approx([0.8, 0.2])
    assert next_token_probabilities(logits, 0.5) == pytest.approx([16 / 17, 1 / 17])
    assert next_token_probabilities(logits, 1e-4) == pytest.approx([1.0, 0.0])
    assert next_token_probabilities(np.array([1.0, 1.0, 0.0]), 0.0).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("temperature", [-0.1, float("nan"), float("inf")])
def test_a_temperature_that_is_none_is_refused(temperature: float) -> None:
    with pytest.raises(InputError, match="give 0 or more"):
        next_token_probabilities(np.zeros(3), temperature)


@pytest.mark.parametrize(
    ("target", "draft", "line"),
    [
        ([0.5, 0.6], [0.5, 0.5], "probabilities that sum to 1.1: are no distribution"),
        ([0.5, 0.5], [1.5, -0.5], "are no distribution"),
        ([0.5, 0.5], [float("nan"), 0.5], "are no distribution"),
        ([0.5, 0.5], [0.5, 0.25, 0.25], "are different vocabularies"),
    ],
)
def test_what_is_no_distribution_is_refused(
    target: list[float], draft: list[float], line: str
) -> None:
    for rule in (rejection_acceptance, exact_match_acceptance, greedy_acceptance):
        with pytest.raises(InputError, match=line):
            rule(np.array(target), np.array(draft))


def test_a_conversion_of_what_is_no_probability_is_refused() -> None:
    with pytest.raises(InputError, match=r"acceptance 1\.2: is not a probability"):
        exact_match_from_rejection(1.2, 0.5)
    with pytest.raises(InputError, match=r"collision probability -0\.1: is not"):
        exact_match_from_rejection(0.5, -0.1)
