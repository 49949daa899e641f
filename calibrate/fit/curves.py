r"""Every form a row law can take, evaluated on one sweep: the library the fit chooses from.

With the tile :math:`\tau`, padding, :math:`\rho`, :math:`N_{fill}` and the ratio r = B / F
fixed, the row law has one unknown left, its scale, and on a log scale that is a mean of
residuals. So a library of forms and ratios is evaluated once on all timings, and the misfit of
any form on any run of rows follows from three prefix sums:

.. math:: \chi^2_{[i, j)} = \sum w o^2 - \frac{(\sum w o)^2}{\sum w},
          \qquad o = \ln t_{measured} - \ln t_{form}
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np

from calibrate.fit.observations import Observations
from model.machine.kernels.dispatch import Kernel
from model.machine.overlap import overlapped
from model.machine.row_law import Regime
from model.units import Array

TILES = (1.0, 5.0, 8.0, 16.0, 32.0, 64.0, math.inf)
REREADS = (0.0, 0.5, 1.0)
FILLS = (0.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0)
RATIOS = np.logspace(-2.5, 2.5, 201)
BoolArray: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curves:
    """A library of row-law curves for one sweep, with the overlap they were made for.

    `forms[i]` has open rates (1) and the fill `fills[i]`; `ratios[i]` is B / F, zero for a curve
    of reading alone and infinite for one of arithmetic alone. `scale_sums` and `misfit_sums` are
    prefix sums over the timings in row order.
    """

    overlap: float
    forms: tuple[Regime, ...]
    fills: Array
    ratios: Array
    parameters: Array
    weight_sums: Array
    scale_sums: Array
    misfit_sums: Array

    def of_kernel(self, kernel: Kernel) -> BoolArray | None:
        """Which curves are of this kernel's tile; None where there is none of it."""
        found = np.array(
            [
                (form.tile_rows, form.pads) == (kernel.tile_rows, kernel.pads)
                and form.reread in (0.0, kernel.reread)
                for form in self.forms
            ]
        )
        return found if found.any() else None

    def of_fill(self, fill_columns: float) -> BoolArray:
        """Which curves have this fill: none of reading alone, whose time does not know it."""
        return (self.fills == fill_columns) & (self.ratios > 0.0)

    def best(
        self, start: int, end: int, price: float, allowed: BoolArray | None = None
    ) -> tuple[int, float]:
        """The curve with the least chi² + price x parameters on timings start..end-1.

        `allowed` says which curves may be taken; None allows all.
        """
        weight = self.weight_sums[end] - self.weight_sums[start]
        scale = self.scale_sums[:, end] - self.scale_sums[:, start]
        misfit = self.misfit_sums[:, end] - self.misfit_sums[:, start] - scale**2 / weight
        cost = np.maximum(misfit, 0.0) + price * self.parameters
        if allowed is not None:
            cost = np.where(allowed, cost, math.inf)
        chosen = int(np.argmin(cost))
        return chosen, float(cost[chosen])


ALONE_ARITHMETIC = 0.01
"""Breaks the tie where a regime was timed at one row count: flat until shown otherwise."""


def curves(observations: Observations, overlap: float, fills: Iterable[float] = ()) -> Curves:
    """The library for `observations`, which must be in row order.

    `fills` are columns that fill the device to be tried even where these timings cannot tell.
    """
    rows: list[Array] = []
    forms: list[Regime] = []
    ratios: list[float] = []
    for form in open_forms(observations, fills):
        unit = form.time(observations.product, observations.rows, overlap)
        memory, arithmetic = np.asarray(unit.memory_s), np.asarray(unit.arithmetic_s)
        mixed_ratios = float(np.median(memory / arithmetic)) * RATIOS
        mixed = overlapped(memory, mixed_ratios[:, None] * arithmetic, overlap)
        rows.append(np.vstack([memory, arithmetic, mixed]))
        ratios += [0.0, math.inf, *mixed_ratios.tolist()]
        forms += [form] * (len(RATIOS) + 2)
    offsets = np.log(observations.seconds) - np.log(np.vstack(rows))
    weights = observations.sigma_log**-2.0
    return Curves(
        overlap=overlap,
        forms=tuple(forms),
        fills=np.array([form.fill_columns for form in forms]),
        ratios=np.array(ratios),
        parameters=np.array([parameters(f, r) for f, r in zip(forms, ratios, strict=True)]),
        weight_sums=prefix_sums(weights),
        scale_sums=prefix_sums(weights * offsets),
        misfit_sums=prefix_sums(weights * offsets**2),
    )


def open_forms(observations: Observations, fills: Iterable[float] = ()) -> Iterator[Regime]:
    """Every combination of tile, padding, rereading and fill that these timings tell apart."""
    told = FILLS if observations.distinct_shapes > 1 else FILLS[:1]
    bare = Regime(
        first_row=1, tile_rows=1.0, pads=False, bandwidth_bytes_per_s=1.0, flops_per_s=1.0
    )
    for tile_rows in TILES:
        rereads = REREADS if np.max(observations.rows) > tile_rows else REREADS[:1]
        paddings = (False, True) if 1.0 < tile_rows < math.inf else (False,)
        for pads in paddings:
            for reread in rereads:
                for fill_columns in sorted({*told, *fills}):
                    yield replace(
                        bare,
                        tile_rows=tile_rows,
                        pads=pads,
                        reread=reread,
                        fill_columns=fill_columns,
                    )


def parameters(form: Regime, ratio: float) -> float:
    """What a form costs: its rates, and each choice that departs from the per-row kernel."""
    rates = 2 if 0.0 < ratio < math.inf else 1
    # A tile and its padding are one choice: which kernel this is.
    choices = (form.tile_rows > 1.0, float(form.reread) > 0.0, float(form.fill_columns) > 0.0)
    return rates + sum(choices) + ALONE_ARITHMETIC * math.isinf(ratio)


def prefix_sums(values: Array) -> Array:
    """Running sums along the last axis with a leading zero."""
    sums = np.cumsum(values, axis=-1)
    return np.concatenate([np.zeros((*sums.shape[:-1], 1)), sums], axis=-1)
