r"""A row law fitted to a sweep: where one kernel hands over to the next, and their rates.

Runtimes switch kernels at row counts that depend on chip and version, so the boundaries are
found in the data: of all ways to cut the measured rows into regimes the one with the least

.. math:: \chi^2 + \kappa \cdot \text{parameters}

wins (dynamic programming over the cuts, exact for the library of :mod:`calibrate.fit.curves`).
:math:`\kappa = \ln n` is the Bayesian information criterion (Schwarz, 1978) for a known scatter,
at least 2 (Akaike's) for short sweeps; the scatter is never taken below 2 %, since a smaller
misfit is noise that more regimes would only learn by heart. Boundaries that are known from a
runtime's source are no parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize_scalar

from calibrate.fit.curves import RATIOS, BoolArray, Curves, curves
from calibrate.fit.observations import Observations
from model.machine.kernels.dispatch import Kernel
from model.machine.overlap import overlapped
from model.machine.row_law import Regime, RowLaw
from model.units import Array

OVERLAPS = (1.0, 2.0, 4.0, math.inf)


def fit_law(
    observations: Observations,
    known: Mapping[int, Kernel | None] | None = None,
    fills: Mapping[int, float] | None = None,
) -> RowLaw:
    """The row law of one sweep over rows, of at least one matrix.

    `known` are the runtime's kernels by their first rows; None where a kernel begins of which no
    more is known. Their tiles are not looked for, only their rates, and no further kernel is,
    except within a library's, which is one to the runtime and may be several. Without any, every
    measured row may start a regime of any form.

    `fills` are the columns that fill the device, by the first row of a known kernel, where
    matrices of all shapes have told them together (:mod:`calibrate.fit.fills`).
    """
    ordered = observations.ordered()
    price = max(math.log(len(ordered.rows)), 2.0)
    parts = known_parts(ordered, known or {})
    # A kernel serves from its first row on, though the first that was timed may be later; before
    # all that were timed there is no other.
    begins = {start: first_row for first_row, start, _, _ in parts} | {0: 1}
    edges = row_edges(ordered, ordered.distinct_rows)
    cost, library, regimes = math.inf, None, ()
    for overlap in OVERLAPS:
        candidate = curves(ordered, overlap, (fills or {}).values())
        total, found = 0.0, ()
        for first_row, start, end, kernel in parts:
            is_open = not known or (kernel is not None and kernel.library)
            allowed = None if is_open or kernel is None else candidate.of_kernel(kernel)
            if allowed is not None and first_row in (fills or {}):
                allowed = allowed & candidate.of_fill((fills or {})[first_row])
            inside = [edge for edge in edges if start <= edge <= end] if is_open else [start, end]
            part_cost, cuts = segment(candidate, price, inside, allowed)
            total, found = total + part_cost, (*found, *((*cut, kernel, allowed) for cut in cuts))
        if total < cost - 1e-9:
            cost, library, regimes = total, candidate, found
    if library is None:
        raise ValueError("no curve has a finite misfit: the timings are not positive numbers")
    polished = [
        replace(
            with_reread(polish(ordered, library, start, end, price, allowed), kernel),
            first_row=begins.get(start, int(ordered.rows[start])),
        )
        for start, end, kernel, allowed in regimes
    ]
    rows_measured = int(ordered.rows[-1])
    return RowLaw(overlap=library.overlap, rows_measured=rows_measured, regimes=tuple(polished))


def known_parts(
    observations: Observations, known: Mapping[int, Kernel | None]
) -> list[tuple[int, int, int, Kernel | None]]:
    """The timings of each kernel that is known: its first row, start, end, and the kernel."""
    first_rows = sorted({int(observations.rows[0]), *known})
    first_rows = [row for row in first_rows if row >= observations.rows[0]]
    starts = row_edges(observations, first_rows)
    serving = [max((each for each in known if each <= row), default=None) for row in first_rows]
    kernels = [None if each is None else known[each] for each in serving]
    return [
        (first_row, start, end, kernel)
        for first_row, (start, end), kernel in zip(
            first_rows, pairwise(starts), kernels, strict=True
        )
        if start < end
    ]


def with_reread(regime: Regime, kernel: Kernel | None) -> Regime:
    """The regime with what a further tile of a known kernel reads, which one tile cannot tell."""
    if kernel is None or kernel.library:
        return regime
    return replace(regime, reread=kernel.reread)


def segment(
    library: Curves, price: float, edges: Sequence[int], allowed: BoolArray | None
) -> tuple[float, tuple[tuple[int, int], ...]]:
    """The cheapest cut at some of these edges, of which the first and the last are its ends."""
    best: list[tuple[float, tuple[tuple[int, int], ...]]] = [(0.0, ())]
    for end in edges[1:]:
        options: list[tuple[float, tuple[tuple[int, int], ...]]] = []
        for start, (before, cuts) in zip(edges, best, strict=False):
            _, cost = library.best(start, end, price, allowed)
            # A further boundary is itself a parameter.
            options.append((before + cost + price * bool(cuts), (*cuts, (start, end))))
        best.append(min(options, key=lambda option: option[0]))
    return best[-1]


def row_edges(observations: Observations, first_rows: Sequence[int]) -> list[int]:
    """Where each of `first_rows` starts among the timings, and where the timings end."""
    starts = np.searchsorted(observations.rows, first_rows).tolist()
    return [*starts, len(observations.rows)]


def polish(
    observations: Observations,
    library: Curves,
    start: int,
    end: int,
    price: float,
    allowed: BoolArray | None,
) -> Regime:
    """The regime of timings start..end-1, its ratio of rates refined between grid points."""
    chosen, _ = library.best(start, end, price, allowed)
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
