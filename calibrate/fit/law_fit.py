r"""A row law fitted to a sweep: where one kernel hands over to the next, and their rates.

Runtimes switch kernels at row counts that depend on chip and version, so the boundaries are
found in the data: of all ways to cut the measured rows into regimes the one with the least

.. math:: \chi^2 + \kappa \cdot \text{parameters}

wins (dynamic programming over the cuts, exact for the library of :mod:`calibrate.fit.curves`).
:math:`\kappa = \ln n` is the Bayesian information criterion (Schwarz, 1978) for a known scatter,
at least 2 (Akaike's) for short sweeps; the scatter is never taken below 2 %, since a smaller
misfit is noise that more regimes would only learn by heart. Where the boundaries of a runtime are
known from its source, pass them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize_scalar

from calibrate.fit.curves import RATIOS, Curves, curves
from calibrate.fit.observations import Observations
from model.machine.overlap import overlapped
from model.machine.row_law import Regime, RowLaw
from model.units import Array

OVERLAPS = (1.0, 2.0, 4.0, math.inf)


def fit_law(observations: Observations, boundaries: Collection[int] | None = None) -> RowLaw:
    """The row law of one sweep over rows, of at least one matrix.

    `boundaries` are the first rows of the runtime's kernels where they are known; without them
    every measured row may start a regime.
    """
    ordered = observations.ordered()
    price = max(math.log(len(ordered.rows)), 2.0)
    cost, library, cuts = math.inf, None, ()
    for overlap in OVERLAPS:
        candidate = curves(ordered, overlap)
        total, found = (
            segment(ordered, candidate, price)
            if boundaries is None
            else known_segments(ordered, candidate, price, boundaries)
        )
        if total < cost - 1e-9:
            cost, library, cuts = total, candidate, found
    if library is None:
        raise ValueError("no curve has a finite misfit: the timings are not positive numbers")
    regimes = [polish(ordered, library, start, end, price) for start, end in cuts]
    rows_measured = int(ordered.rows[-1])
    return RowLaw(overlap=library.overlap, rows_measured=rows_measured, regimes=tuple(regimes))


def segment(
    observations: Observations, library: Curves, price: float
) -> tuple[float, tuple[tuple[int, int], ...]]:
    """The cheapest cut of the timings into regimes: its cost and its (start, end) pairs."""
    edges = row_edges(observations, observations.distinct_rows)
    best: list[tuple[float, tuple[tuple[int, int], ...]]] = [(0.0, ())]
    for end in edges[1:]:
        options: list[tuple[float, tuple[tuple[int, int], ...]]] = []
        for start, (before, cuts) in zip(edges, best, strict=False):
            _, cost = library.best(start, end, price)
            # A further boundary is itself a parameter.
            options.append((before + cost + price * bool(cuts), (*cuts, (start, end))))
        best.append(min(options, key=lambda option: option[0]))
    return best[-1]


def known_segments(
    observations: Observations, library: Curves, price: float, boundaries: Collection[int]
) -> tuple[float, tuple[tuple[int, int], ...]]:
    """The cut at boundaries that are known: they cost nothing and are never passed over."""
    first_rows = [row for row in sorted(boundaries) if row > observations.rows[0]]
    edges = sorted({0, *row_edges(observations, first_rows)})
    cuts = tuple(pairwise(edges))
    return sum(library.best(start, end, price)[1] for start, end in cuts), cuts


def row_edges(observations: Observations, first_rows: Sequence[int]) -> list[int]:
    """Where each of `first_rows` starts among the timings, and where the timings end."""
    starts = np.searchsorted(observations.rows, first_rows).tolist()
    return [*starts, len(observations.rows)]


def polish(
    observations: Observations, library: Curves, start: int, end: int, price: float
) -> Regime:
    """The regime of timings start..end-1, its ratio of rates refined between grid points."""
    chosen, _ = library.best(start, end, price)
    form, ratio = library.forms[chosen], float(library.ratios[chosen])
    part = observations.part(start, end)
    unit = form.time(part.product, part.rows, library.overlap)
    memory, arithmetic = np.asarray(unit.memory_s), np.asarray(unit.arithmetic_s)

    def scaled(log_ratio: float) -> tuple[float, float]:
        mixed = overlapped(memory, math.exp(log_ratio) * arithmetic, library.overlap)
        return part.scale(np.asarray(mixed))

    first_row = int(part.rows[0])
    if ratio == 0.0:
        rates = (math.exp(-part.scale(memory)[0]), math.inf)
    elif math.isinf(ratio):
        rates = (math.inf, math.exp(-part.scale(arithmetic)[0]))
    else:
        step = math.log(RATIOS[1] / RATIOS[0])
        bounds = (math.log(ratio) - step, math.log(ratio) + step)
        solution = minimize_scalar(
            lambda log_ratio: scaled(log_ratio)[1], bounds=bounds, method="bounded"
        )
        bandwidth = math.exp(-scaled(float(solution.x))[0])
        rates = (bandwidth, bandwidth / math.exp(float(solution.x)))
    return replace(form, first_row=first_row, bandwidth_bytes_per_s=rates[0], flops_per_s=rates[1])


def residuals_log(law: RowLaw, observations: Observations) -> Array:
    """Log of measured over predicted, timing by timing."""
    predicted = law.time(observations.product, observations.rows).total_s
    return np.log(observations.seconds) - np.log(np.asarray(predicted, dtype=float))
