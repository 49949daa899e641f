r"""Acceptance of a self-draft as a function of the share of layers that it skips.

A target that skips some of its layers drafts for itself. With nothing skipped it is itself, and
its acceptance under greedy decoding is 1; from there each skipped layer is taken to lose a
constant share of what is left, so that acceptance is piecewise exponential between what was
measured,

.. math:: \log \alpha(f) \text{ linear in } f, \qquad \alpha(0) = 1.

The points belong to one model, one way to choose the layers and one task; nothing says that they
carry over. Skipping more cannot help on average, so rises between points are pooled (pool
adjacent violators, weighted by drafted tokens): Ayer et al., 1955. Beyond the largest measured
share there is no answer: published self-drafts collapse, to 6 % at half of the layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from model.errors import InputError
from model.progress.published_rows import PublishedRow, published_rows
from model.progress.vocabulary import Method
from model.units import Array, Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SkipPoint:
    """A measured acceptance per position, at a share of skipped layers, over drafted tokens.

    Raises:
        InputError: a share outside (0, 1), an acceptance outside [0, 1], or nothing drafted.
    """

    skip_fraction: float
    acceptance: float
    drafted_tokens: int

    def __post_init__(self) -> None:
        if not 0.0 < self.skip_fraction < 1.0:
            right = "leave 0 out, where acceptance is 1 anyway"
            raise InputError(
                f"skip fraction {self.skip_fraction:g}", "is not between 0 and 1", right
            )
        if not 0.0 <= self.acceptance <= 1.0:
            wrong = "is not a probability"
            raise InputError(f"acceptance {self.acceptance:g}", wrong, "give a number in [0, 1]")
        if self.drafted_tokens < 1:
            raise InputError(f"{self.drafted_tokens} drafted tokens", "measure nothing", "give 1+")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SkipCurve:
    """Acceptance by share of skipped layers, falling, through the pooled points of one model.

    `skip_fractions` rise from 0 and `acceptances` fall from 1. `largest_rise_stderr` is the
    largest rise between neighbouring points that pooling took away, in standard errors of their
    difference: 0 for points that fall, and above 2 or 3 something other than noise.
    """

    skip_fractions: tuple[float, ...]
    acceptances: tuple[float, ...]
    largest_rise_stderr: float

    def acceptance(self, skip_fraction: Quantity) -> Quantity:
        """Acceptance at a share of skipped layers, elementwise.

        Raises:
            InputError: a share below 0 or beyond the largest that was measured.
        """
        asked = np.asarray(skip_fraction, dtype=float)
        largest = self.skip_fractions[-1]
        if not np.all((asked >= 0.0) & (asked <= largest)):
            outside = np.ravel(asked)[~np.ravel((asked >= 0.0) & (asked <= largest))][0]
            wrong = f"is outside what was measured, 0 to {largest:g}"
            raise InputError(f"skip fraction {outside:g}", wrong, "measure there")
        rates = np.exp(np.interp(asked, self.skip_fractions, np.log(self.acceptances)))
        return float(rates) if rates.ndim == 0 else rates


def fit_skip_curve(points: Sequence[SkipPoint]) -> SkipCurve:
    """The falling curve through measured points and 1 at nothing skipped.

    Points at one share are first taken together. Where no token at all was accepted, half a token
    of one more is taken for it: a logarithm needs a number, and none of n does not say zero.

    Raises:
        InputError: fewer than two different shares.

    >>> curve = fit_skip_curve(
    ...     [
    ...         SkipPoint(skip_fraction=0.2, acceptance=0.8, drafted_tokens=400),
    ...         SkipPoint(skip_fraction=0.4, acceptance=0.2, drafted_tokens=400),
    ...     ]
    ... )
    >>> [round(curve.acceptance(share), 3) for share in (0.0, 0.1, 0.3)]
    [1.0, 0.894, 0.4]
    """
    shares = np.array([point.skip_fraction for point in points])
    distinct, where = np.unique(shares, return_inverse=True)
    if len(distinct) < 2:
        value = f"{len(distinct)} measured skip fractions"
        raise InputError(value, "are too few for a curve", "measure at two or more")
    drafted = np.array([point.drafted_tokens for point in points], dtype=float)
    accepted = drafted * np.array([point.acceptance for point in points])
    weights = np.bincount(where, weights=drafted).astype(np.float64)
    rates = (np.bincount(where, weights=accepted) / weights).astype(np.float64)
    pooled = pooled_falling(np.where(rates > 0.0, rates, 0.5 / (weights + 1.0)), weights)
    return SkipCurve(
        skip_fractions=(0.0, *distinct.tolist()),
        acceptances=(1.0, *pooled.tolist()),
        largest_rise_stderr=_largest_rise(rates, weights),
    )


def pooled_falling(values: Array, weights: Array) -> Array:
    """The falling sequence nearest to `values` in weighted squares: pool adjacent violators.

    >>> pooled_falling(np.array([0.9, 0.4, 0.6]), np.array([1.0, 1.0, 3.0])).tolist()
    [0.9, 0.55, 0.55]
    """
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, count = value, weight, 1
        while blocks and blocks[-1][0] < mean:
            before, before_weight, before_count = blocks.pop()
            mean = (before * before_weight + mean * total) / (before_weight + total)
            total, count = before_weight + total, before_count + count
        blocks.append((mean, total, count))
    return np.repeat([mean for mean, _, _ in blocks], [count for _, _, count in blocks])


def published_skip_rows() -> tuple[PublishedRow, ...]:
    """Published rows that state an acceptance at a share of skipped layers.

    To be shown beside a curve and never to be fitted: no model has two of them, and their
    definition of acceptance and number of drafted tokens are not published.
    """
    return tuple(
        row
        for row in published_rows()
        if row.method is Method.LAYER_SKIP and row.skip_fraction is not None and row.acceptance
    )


def _largest_rise(rates: Array, weights: Array) -> float:
    """The largest rise between neighbours over its standard error, both from their common rate."""
    common = (rates[1:] * weights[1:] + rates[:-1] * weights[:-1]) / (weights[1:] + weights[:-1])
    variance = common * (1.0 - common) * (1.0 / weights[1:] + 1.0 / weights[:-1])
    # Equal rates of 0 or 1 have no variance, and no rise either.
    rises = np.where(variance > 0.0, np.diff(rates) / np.sqrt(np.maximum(variance, 1e-300)), 0.0)
    return max(float(np.max(rises)), 0.0)
