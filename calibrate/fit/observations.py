"""Measured products as arrays: what one row law has to explain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from model.machine.row_law import Product, shortened
from model.units import Array

NOISE_FLOOR_LOG = 0.02
"""Relative scatter below which two timings of one kernel are not told apart."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observations:
    """Timings of one weight format and class of shapes: arrays of equal length.

    `seconds` is the time of the product alone, net of the floor of its kernel; `sigma_log` its
    relative uncertainty.
    """

    rows: Array
    read_bytes: Array
    depth: Array
    columns: Array
    seconds: Array
    sigma_log: Array

    @property
    def product(self) -> Product:
        """The products without their rows."""
        return Product(read_bytes=self.read_bytes, depth=self.depth, columns=self.columns)

    @property
    def distinct_rows(self) -> list[int]:
        """The row counts that were measured, ascending."""
        return [int(row) for row in np.unique(self.rows)]

    @property
    def distinct_shapes(self) -> int:
        """How many different matrices were measured."""
        return len({*zip(self.depth.tolist(), self.columns.tolist(), strict=True)})

    def shortened(self, depth_power: float) -> Self:
        """The same timings of products whose time grows by this power of their depth."""
        product = shortened(self.product, depth_power)
        return replace(
            self, read_bytes=np.asarray(product.read_bytes), depth=np.asarray(product.depth)
        )

    def ordered(self) -> Self:
        """The same timings by ascending rows."""
        return self.select(np.argsort(self.rows, kind="stable"))

    def part(self, start: int, end: int) -> Self:
        """Timings start..end-1."""
        return self.select(np.arange(start, end))

    def select(self, indices: np.ndarray) -> Self:
        """The timings at `indices`, in that order."""
        return type(self)(
            rows=self.rows[indices],
            read_bytes=self.read_bytes[indices],
            depth=self.depth[indices],
            columns=self.columns[indices],
            seconds=self.seconds[indices],
            sigma_log=self.sigma_log[indices],
        )

    def scale(self, curve_s: Array) -> tuple[float, float]:
        """The log of the factor that fits `curve_s` to the timings best, and its chi²."""
        weights = self.sigma_log**-2.0
        offsets = np.log(self.seconds) - np.log(curve_s)
        scale = float(np.average(offsets, weights=weights))
        return scale, float(np.sum(weights * (offsets - scale) ** 2))
