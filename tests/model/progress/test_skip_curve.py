"""The skip curve: its anchor, its points, pooling of rises, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import InputError
from model.progress.skip_curve import (
    SkipPoint,
    fit_skip_curve,
    pooled_falling,
    published_skip_rows,
)
from model.progress.vocabulary import Measure

rates = st.floats(min_value=0.0, max_value=1.0)
counts = st.integers(min_value=1, max_value=10_000)
measured = st.lists(
    st.builds(
        SkipPoint,
        skip_fraction=st.sampled_from([0.1, 0.25, 0.4, 0.5, 0.75]),
        acceptance=rates,
        drafted_tokens=counts,
    ),
    min_size=2,
    max_size=12,
).filter(lambda points: len({point.skip_fraction for point in points}) > 1)


def point(skip_fraction: float, acceptance: float, drafted_tokens: int = 1000) -> SkipPoint:
    return SkipPoint(
        skip_fraction=skip_fraction, acceptance=acceptance, drafted_tokens=drafted_tokens
    )


class TestCurve:
    """Between points, at points, and at nothing skipped."""

    def test_worked_numbers(self) -> None:
        """Half way in the exponent: sqrt(1 x 0.81) = 0.9 and sqrt(0.81 x 0.09) = 0.27."""
        curve = fit_skip_curve([point(0.4, 0.09), point(0.2, 0.81)])
        asked = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
        assert curve.acceptance(asked) == pytest.approx([1.0, 0.9, 0.81, 0.27, 0.09])
        assert curve.acceptance(0.3) == pytest.approx(0.27)
        assert curve.largest_rise_stderr == 0.0

    @given(measured)
    def test_it_starts_at_one_and_never_rises(self, points: list[SkipPoint]) -> None:
        curve = fit_skip_curve(points)
        along = np.asarray(curve.acceptance(np.linspace(0.0, curve.skip_fractions[-1], 97)))
        assert along[0] == 1.0
        assert np.all(np.diff(along) <= 1e-12)
        assert np.all((along > 0.0) & (along <= 1.0))

    def test_a_constant_loss_per_layer_is_given_back_everywhere(self) -> None:
        """alpha = exp(-3 f) is what the scale assumes; three points find it between them too."""
        curve = fit_skip_curve([point(f, float(np.exp(-3.0 * f))) for f in (0.1, 0.3, 0.6)])
        asked = np.linspace(0.0, 0.6, 13)
        assert curve.acceptance(asked) == pytest.approx(np.exp(-3.0 * asked))

    def test_points_at_one_share_count_by_what_they_drafted(self) -> None:
        """(0.9 x 100 + 0.5 x 300) / 400 = 0.6."""
        curve = fit_skip_curve([point(0.2, 0.9, 100), point(0.2, 0.5, 300), point(0.4, 0.1)])
        assert curve.acceptance(0.2) == pytest.approx(0.6)

    def test_none_accepted_is_not_read_as_never(self) -> None:
        """None of 99: half of a token in a hundred."""
        curve = fit_skip_curve([point(0.2, 0.5), point(0.5, 0.0, 99)])
        assert curve.acceptance(0.5) == pytest.approx(0.005)


class TestRises:
    """More skipped and yet more accepted: pooled, and told apart from noise."""

    def test_worked_pool(self) -> None:
        """0.4 of 100 and 0.6 of 300 are together 0.55; their rise is 3.48 standard errors.

        0.2 / sqrt(0.55 x 0.45 x (1/100 + 1/300)) = 0.2 / 0.05745 = 3.4815.
        """
        curve = fit_skip_curve([point(0.1, 0.9), point(0.2, 0.4, 100), point(0.3, 0.6, 300)])
        assert curve.acceptances == pytest.approx((1.0, 0.9, 0.55, 0.55))
        assert curve.largest_rise_stderr == pytest.approx(3.4815, rel=1e-4)

    def test_noise_of_one_acceptance_looks_like_noise(self) -> None:
        drawn = np.random.default_rng(4).binomial(500, 0.5, size=(2000, 2)) / 500
        rises = np.array(
            [
                fit_skip_curve([point(0.2, a, 500), point(0.4, b, 500)]).largest_rise_stderr
                for a, b in drawn.tolist()
            ]
        )
        # A normal difference is above 0 half of the time and above 2 in 2.3 % of all.
        assert np.mean(rises > 0.0) == pytest.approx(0.49, abs=0.04)
        assert 0.01 < np.mean(rises > 2.0) < 0.04

    @given(st.lists(st.tuples(rates, counts), min_size=1, max_size=12))
    def test_pooling_keeps_the_weighted_mean_and_changes_nothing_twice(
        self, pairs: list[tuple[float, int]]
    ) -> None:
        values = np.array([value for value, _ in pairs])
        weights = np.array([weight for _, weight in pairs], dtype=float)
        pooled = pooled_falling(values, weights)
        assert np.all(np.diff(pooled) <= 1e-12)
        assert np.sum(pooled * weights) == pytest.approx(np.sum(values * weights))
        assert pooled_falling(pooled, weights) == pytest.approx(pooled)

    def test_pooling_is_the_nearest_falling_sequence(self) -> None:
        """Against every falling sequence of a grid of twentieths."""
        values, weights = np.array([0.3, 0.7, 0.5]), np.array([1.0, 1.0, 2.0])
        grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 21)] * 3, indexing="ij"), axis=-1)
        falling = grid.reshape(-1, 3)[np.all(np.diff(grid.reshape(-1, 3)) <= 0, axis=1)]
        best = np.min(np.sum(weights * (falling - values) ** 2, axis=1))
        pooled = pooled_falling(values, weights)
        # (0.3 + 0.7 + 2 x 0.5) / 4 = 0.5, which lies on the grid.
        assert pooled == pytest.approx([0.5, 0.5, 0.5])
        assert np.sum(weights * (pooled - values) ** 2) == pytest.approx(best)


class TestRefusals:
    """One line each."""

    @pytest.mark.parametrize("points", [[], [point(0.3, 0.5)], [point(0.3, 0.5), point(0.3, 0.4)]])
    def test_fewer_than_two_shares(self, points: list[SkipPoint]) -> None:
        with pytest.raises(InputError, match="are too few for a curve; measure at two or more"):
            fit_skip_curve(points)

    @pytest.mark.parametrize("asked", [-0.01, 0.51, float("nan")])
    def test_outside_what_was_measured(self, asked: float) -> None:
        curve = fit_skip_curve([point(0.25, 0.5), point(0.5, 0.06)])
        with pytest.raises(InputError, match=r"is outside what was measured, 0 to 0\.5"):
            curve.acceptance(np.array([0.1, asked]))

    @pytest.mark.parametrize(
        ("values", "line"),
        [
            ((0.0, 0.5, 10), "skip fraction 0: is not between 0 and 1"),
            ((1.0, 0.5, 10), "skip fraction 1: is not between 0 and 1"),
            ((0.5, 1.1, 10), r"acceptance 1\.1: is not a probability"),
            ((0.5, 0.5, 0), "0 drafted tokens: measure nothing"),
        ],
    )
    def test_points(self, values: tuple[float, float, int], line: str) -> None:
        with pytest.raises(InputError, match=line):
            point(*values)


def test_published_points_are_labelled_data_and_no_curve() -> None:
    """One row: 6 % at half of the layers, of models that are not named."""
    (row,) = published_skip_rows()
    assert (row.skip_fraction, row.acceptance) == (0.5, (0.06,))
    assert row.measure is Measure.UNLABELLED
    assert row.by_position is None
