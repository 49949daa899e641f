"""Bootstrap draws: as wide as the estimator really scatters, and still where nothing is known."""

from __future__ import annotations

import numpy as np
import pytest

from calibrate.fit.bootstrap import DRAWS, drawn, origin_of
from model.machine.constant import Origin
from model.units import Array

SIZES = np.linspace(1.0, 10.0, 40)
TRUTH = np.array([1.0, 2.0])


def predict_s(values: Array) -> Array:
    """An offset and a slope."""
    return values[0] + values[1] * SIZES


def test_draws_scatter_as_the_estimator_does() -> None:
    """The slope of 40 timings with 5 % noise, refitted to fresh noise 300 times."""
    generator = np.random.default_rng(11)
    estimates: list[float] = []
    for _ in range(300):
        seconds = predict_s(TRUTH) * np.exp(generator.normal(scale=0.05, size=len(SIZES)))
        design = np.stack([np.ones_like(SIZES), SIZES], axis=1) / seconds[:, None]
        estimates.append(float(np.linalg.lstsq(design, np.ones_like(SIZES), rcond=None)[0][1]))
    seconds = predict_s(TRUTH) * np.exp(generator.normal(scale=0.05, size=len(SIZES)))
    draws = drawn(TRUTH, predict_s, seconds, np.full(len(SIZES), 0.05), seed=1)
    assert draws.shape == (DRAWS, 2)
    assert float(draws[:, 1].std()) == pytest.approx(float(np.std(estimates)), rel=0.25)


def test_the_same_seed_gives_the_same_draws() -> None:
    arguments = (TRUTH, predict_s, predict_s(TRUTH), np.full(len(SIZES), 0.02))
    np.testing.assert_array_equal(drawn(*arguments, seed=3), drawn(*arguments, seed=3))
    assert not np.array_equal(drawn(*arguments, seed=3), drawn(*arguments, seed=4))


def test_as_many_timings_as_unknowns_do_not_make_a_constant_certain() -> None:
    def two(values: Array) -> Array:
        return values * np.array([3.0, 5.0])

    draws = drawn(TRUTH, two, two(TRUTH), np.full(2, 0.03), seed=2)
    assert np.std(np.log(draws), axis=0) == pytest.approx(0.03, rel=0.2)


def test_a_constant_the_timings_do_not_see_is_as_uncertain_as_its_prior() -> None:
    def blind(values: Array) -> Array:
        return values[0] * SIZES + 0.0 * values[1]

    draws = drawn(np.array([2.0, 7.0]), blind, 2.0 * SIZES, np.full(len(SIZES), 0.02), seed=5)
    assert float(np.std(np.log(draws[:, 1]))) == pytest.approx(2.0, rel=0.25)
    assert float(np.std(np.log(draws[:, 0]))) < 0.01


def test_zero_stays_zero() -> None:
    values = np.array([0.0, 2.0])
    draws = drawn(values, predict_s, predict_s(values), np.full(len(SIZES), 0.02), seed=6)
    assert np.all(draws[:, 0] == 0.0)


def test_what_others_could_be_widens_these() -> None:
    seconds, sigma_log = predict_s(TRUTH), np.full(len(SIZES), 0.02)
    factor = np.exp(np.random.default_rng(4).normal(scale=0.1, size=(DRAWS, 1)))
    alone = drawn(TRUTH, predict_s, seconds, sigma_log, seed=7)
    widened = drawn(TRUTH, predict_s, seconds, sigma_log, seed=7, reference_s=seconds * factor)
    assert widened[:, 1].std() > 3 * alone[:, 1].std()


@pytest.mark.parametrize(
    ("scatter", "origin"),
    [(0.02, Origin.MEASURED), (2.0, Origin.MEASURED), (12.0, Origin.PRIOR), (60.0, Origin.PRIOR)],
)
def test_a_constant_is_measured_if_the_timings_say_more_than_its_prior(
    scatter: float, origin: Origin
) -> None:
    """Sixteen timings of one constant equal its prior of width 2 where they scatter by 8."""
    values = np.array([3.0])
    seconds = np.full(16, 3.0)
    draws = drawn(values, lambda v: v[0] * np.ones(16), seconds, np.full(16, scatter), seed=4)
    assert origin_of(draws[:, 0]) is origin
