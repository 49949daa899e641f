"""Bootstrap draws: as wide as the estimator really scatters, and still where nothing is known."""

from __future__ import annotations

import numpy as np
import pytest

from calibrate.fit.bootstrap import drawn, replicate_weights
from model.units import Array

SIZES = np.linspace(1.0, 10.0, 40)


def predict_s(values: Array) -> Array:
    """An offset and a slope."""
    return values[0] + values[1] * SIZES


def test_weights_are_exponential_of_mean_one() -> None:
    weights = replicate_weights(200, draws=50)
    assert weights.shape == (50, 200)
    np.testing.assert_allclose(weights.mean(axis=1), 1.0)
    assert float(weights.std()) == pytest.approx(1.0, abs=0.05)


def test_draws_scatter_as_the_estimator_does() -> None:
    """The slope of 40 timings with 5 % noise, refitted to fresh noise 300 times."""
    truth = np.array([1.0, 2.0])
    generator = np.random.default_rng(11)
    estimates: list[float] = []
    for _ in range(300):
        seconds = predict_s(truth) * np.exp(generator.normal(scale=0.05, size=len(SIZES)))
        design = np.stack([np.ones_like(SIZES), SIZES], axis=1) / seconds[:, None]
        estimates.append(np.linalg.lstsq(design, np.ones_like(SIZES), rcond=None)[0][1])
    seconds = predict_s(truth) * np.exp(generator.normal(scale=0.05, size=len(SIZES)))
    draws = drawn(
        truth, predict_s, seconds, np.full(len(SIZES), 0.05), replicate_weights(len(SIZES))
    )
    assert float(draws[:, 1].std()) == pytest.approx(float(np.std(estimates)), rel=0.5)


def test_a_constant_the_timings_do_not_see_stays_within_its_prior() -> None:
    def blind(values: Array) -> Array:
        return values[0] * SIZES + 0.0 * values[1]

    draws = drawn(
        np.array([2.0, 7.0]),
        blind,
        2.0 * SIZES * np.exp(np.random.default_rng(2).normal(scale=0.02, size=len(SIZES))),
        np.full(len(SIZES), 0.02),
        replicate_weights(len(SIZES)),
    )
    np.testing.assert_allclose(draws[:, 1], 7.0)


def test_zero_stays_zero() -> None:
    draws = drawn(
        np.array([0.0, 2.0]),
        predict_s,
        predict_s(np.array([0.0, 2.0])),
        np.full(len(SIZES), 0.02),
        replicate_weights(len(SIZES)),
    )
    assert np.all(draws[:, 0] == 0.0)


def test_what_others_could_be_widens_these() -> None:
    values, seconds = np.array([1.0, 2.0]), predict_s(np.array([1.0, 2.0]))
    weights = replicate_weights(len(SIZES))
    factor = np.exp(np.random.default_rng(4).normal(scale=0.1, size=(len(weights), 1)))
    sigma = np.full(len(SIZES), 0.02)
    alone = drawn(values, predict_s, seconds, sigma, weights)
    widened = drawn(values, predict_s, seconds, sigma, weights, reference_s=seconds * factor)
    assert widened[:, 1].std() > 3 * alone[:, 1].std()
