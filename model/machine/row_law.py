r"""The row law: how the time of one matrix product grows with its rows.

Decoding multiplies M rows (1 for plain decoding, k + 1 for a verify pass, the canvas for
diffusion) by a weight matrix of P = K N weights that occupies W bytes. Which kernel the runtime
picks depends on M, so the law is a list of *kernel regimes*, each valid from its `first_row`
on. A regime works on tiles of :math:`\tau` rows:

.. math::

   n = \lceil M / \tau \rceil, \qquad
   v = \tau \text{ if the kernel pads, else } \lceil M / n \rceil

   t_{memory} = \frac{W}{B} \bigl(1 + \rho (n - 1)\bigr), \qquad
   t_{arithmetic} = \frac{n v \, 2 K \max(N, N_{fill} / n)}{F}

and the two overlap as in :mod:`model.machine.overlap`. B is bandwidth, F the arithmetic rate,
:math:`\rho` the share of the weights that each further tile reads again from memory, and
:math:`N_{fill}` the number of output columns that keeps every core of the device busy: a kernel
that does not split K walks it serially, so with fewer columns part of the device idles.

* :math:`\tau = 1`: a matrix-vector kernel, once per row.
* :math:`\tau = 5`: MLX's wide kernel on M3 and later, since mlx 0.32.0.
* :math:`\tau = 16, 32, 64`: tiled matrix products, padded to their tile.
* :math:`\tau = \infty`: one tile whatever the rows.

A kernel that cuts K into S parts writes S sums of 4 bytes for each output, which a kernel of its
own reads back once all are there. Both come after the product:

.. math:: t_{sums} = \frac{8 S\, M N}{B} + t_{kernel}

Attention obeys the same law with the cache as its matrix: K the context, N twice the query
width, W the bytes of keys and values.

Source of the kernels: mlx 0.32, `backend/metal/quantized.cpp`, `backend/metal/matmul.cpp`
(`steel_gemm_splitk_axpby`) and `backend/cuda/quantized`. The law is of one product in a dependent
chain with weights in DRAM; it stops holding where a matrix fits in a cache, and beyond the rows
that were measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import final

import numpy as np

from model.machine.overlap import larger, overlapped
from model.units import Array, Quantity


class Shape(StrEnum):
    """Classes of matrix shapes whose kernels behave alike."""

    SQUARE = "square"
    WIDE = "wide"
    TALL = "tall"
    HEAD = "head"
    EXPERT = "expert"
    """Gathered experts, whatever their shape; rows of its law are pairs of a row and an expert."""


SUM_BYTES = 4.0
"""Of a partial sum, in 32 bits."""
REFERENCE_DEPTH = 4096.0
"""Where rates are those of the law whatever its `depth_power`."""
HEAD_COLUMNS = 32_768
"""Columns from which a matrix is a head: only vocabularies are this wide."""


def shape_of(*, depth: int, columns: int) -> Shape:
    """The class of a matrix of `columns` outputs and `depth` inputs.

    >>> shape_of(depth=4096, columns=28672).value, shape_of(depth=14336, columns=4096).value
    ('wide', 'tall')
    """
    if columns >= HEAD_COLUMNS and columns >= 4 * depth:
        return Shape.HEAD
    if columns > 2 * depth:
        return Shape.WIDE
    if depth > 2 * columns:
        return Shape.TALL
    return Shape.SQUARE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A matrix product without its rows: what has to be read and multiplied.

    `read_bytes` W, `depth` K and `columns` N; arrays broadcast (a cache has one depth per
    context).
    """

    read_bytes: Quantity
    depth: Quantity
    columns: Quantity


def shortened(product: Product, depth_power: float) -> Product:
    """The product that takes, in proportion to its depth, what this one takes by its power."""
    share = np.maximum(product.depth, 1.0) / REFERENCE_DEPTH
    factor = share ** (depth_power - 1.0)
    return replace(product, read_bytes=product.read_bytes * factor, depth=product.depth * factor)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProductTime:
    """The time of a product and the two costs it overlaps, in seconds."""

    memory_s: Quantity
    arithmetic_s: Quantity
    total_s: Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How a runtime cuts one matrix, where a law is of the common kernel of a class of shapes.

    `effort` is the time of a product over that in the common kernel's tile, and `sum_s` what the
    kernel waits for that adds up `partial_sums` of each output.
    """

    tile_rows: float
    effort: float = 1.0
    fill_columns: float = 0.0
    partial_sums: float = 0.0
    sum_s: Quantity = 0.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """One kernel: the rows from which it is used, its tile, and its measured rates."""

    first_row: int
    tile_rows: float
    pads: bool
    bandwidth_bytes_per_s: Quantity
    flops_per_s: Quantity
    reread: Quantity = 0.0
    fill_columns: Quantity = 0.0
    partial_sums: float = 0.0
    sum_s: Quantity = 0.0

    def tiles(self, rows: Quantity) -> Array:
        """How often the weights are walked: n."""
        return np.maximum(1.0, np.ceil(np.divide(rows, self.tile_rows)))

    def slots(self, rows: Quantity) -> Array:
        """Rows that are computed, padding included: n v."""
        tiles = self.tiles(rows)
        padded = self.pads and not math.isinf(self.tile_rows)
        return tiles * (self.tile_rows if padded else np.ceil(np.divide(rows, tiles)))

    def time(self, product: Product, rows: Quantity, overlap: float) -> ProductTime:
        """Price `product` for `rows`, as if this regime were valid for them."""
        if isinstance(rows, int):
            tiles, slots = _tiling(rows, self.tile_rows, self.pads)
        else:
            tiles, slots = self.tiles(rows), self.slots(rows)
        read_s = product.read_bytes / self.bandwidth_bytes_per_s
        memory_s = read_s * (1.0 + self.reread * (tiles - 1.0))
        columns = larger(product.columns, self.fill_columns / tiles)
        arithmetic_s = slots * 2.0 * product.depth * columns / self.flops_per_s
        total_s = overlapped(memory_s, arithmetic_s, overlap)
        if self.partial_sums:
            sums_s = self.sums_s(product, rows)
            memory_s, total_s = memory_s + sums_s, total_s + sums_s
        return ProductTime(memory_s=memory_s, arithmetic_s=arithmetic_s, total_s=total_s)

    def sums_s(self, product: Product, rows: Quantity) -> Quantity:
        """What writing, reading and adding the partial sums of a product take."""
        moved_bytes = 2.0 * SUM_BYTES * self.partial_sums * rows * product.columns
        return moved_bytes / self.bandwidth_bytes_per_s + self.sum_s

    def cut(self, how: Cut) -> Regime:
        """The same kernel on other tiles: its rate is what those leave of it."""
        return replace(
            self,
            tile_rows=how.tile_rows,
            flops_per_s=self.flops_per_s / how.effort,
            fill_columns=how.fill_columns,
            partial_sums=how.partial_sums,
            sum_s=how.sum_s,
        )


@lru_cache(maxsize=4096)
def _tiling(rows: int, tile_rows: float, pads: bool) -> tuple[float, float]:
    """Tiles and slots of a whole number of rows: a pass asks for the same few again and again."""
    regime = Regime(
        first_row=1, tile_rows=tile_rows, pads=pads, bandwidth_bytes_per_s=1.0, flops_per_s=1.0
    )
    return float(regime.tiles(rows)), float(regime.slots(rows))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowLaw:
    """The regimes of one weight format and one class of shapes on one machine, by first row.

    It was measured with matrices of `least_columns` outputs and more; 0 where nobody says. Its time
    grows with depth to the power of `depth_power`, about `REFERENCE_DEPTH`: a library that cuts a
    deep product up does more of it side by side the deeper it is. 1 is that of every other kernel.

    >>> law = RowLaw(overlap=math.inf, rows_measured=9, regimes=(
    ...     Regime(first_row=1, tile_rows=5, pads=False,
    ...            bandwidth_bytes_per_s=386e9, flops_per_s=4.38e12, reread=1.0),))
    >>> product = Product(read_bytes=50.1e6, depth=5120, columns=17408)
    >>> [round(1e3 * float(law.time(product, rows).total_s), 3) for rows in (1, 4, 6, 9)]
    [0.13, 0.163, 0.26, 0.407]
    """

    overlap: float
    rows_measured: int
    regimes: tuple[Regime, ...]
    least_columns: int = 0
    depth_power: float = 1.0

    def regime_at(self, rows: int) -> Regime:
        """The kernel that the runtime picks for `rows`."""
        return [regime for regime in self.regimes if regime.first_row <= rows][-1]

    def handed_over(self, at: int, to: int) -> RowLaw:
        """The law of a matrix for which the kernels from row `at` on take over at row `to`.

        Runtimes choose kernels by matrix, a law is of a class of shapes: where a matrix is handed
        over earlier or later, the kernels on both sides keep their rates. With `to` at most 1
        there are none before.

        >>> regime = Regime(first_row=1, tile_rows=5, pads=False,
        ...                 bandwidth_bytes_per_s=1e11, flops_per_s=1e12)
        >>> law = RowLaw(overlap=math.inf, rows_measured=64, regimes=(
        ...     regime, replace(regime, first_row=13, tile_rows=32)))
        >>> [each.first_row for each in law.handed_over(13, 15).regimes]
        [1, 15]
        """
        if at == to:
            return self
        before = [each for each in self.regimes if each.first_row < min(at, to)]
        after = [each for each in self.regimes if each.first_row >= at]
        after = [replace(each, first_row=max(each.first_row, to)) for each in after]
        after[0] = replace(after[0], first_row=max(to, 1))
        # Of several that would start together only the last is ever used.
        starts = {each.first_row: each for each in (*before, *after)}
        return replace(self, regimes=tuple(starts.values()))

    def with_cuts(self, cuts: Mapping[int, Cut]) -> RowLaw:
        """The law of a matrix that the kernels from these rows on cut into narrower tiles.

        A law is of a class of shapes, measured or published for its common kernel. Tiles that are
        as wide or wider, and rows at which no kernel begins, change nothing.
        """
        narrower = {
            each.first_row: cuts[each.first_row]
            for each in self.regimes
            if each.pads
            and each.first_row in cuts
            and cuts[each.first_row].tile_rows < each.tile_rows
        }
        if not narrower:
            return self
        regimes = (
            each.cut(narrower[each.first_row]) if each.first_row in narrower else each
            for each in self.regimes
        )
        return replace(self, regimes=tuple(regimes))

    def at_speed(self, share: Quantity) -> RowLaw:
        """The law of the same kernels with every rate multiplied by `share`."""
        regimes = (
            replace(
                each,
                bandwidth_bytes_per_s=each.bandwidth_bytes_per_s * share,
                flops_per_s=each.flops_per_s * share,
            )
            for each in self.regimes
        )
        return replace(self, regimes=tuple(regimes))

    def time(self, product: Product, rows: Quantity) -> ProductTime:
        """Price `product` for `rows` (>= 1), a number or an array; everything broadcasts."""
        if self.depth_power != 1.0:
            product = shortened(product, self.depth_power)
        if isinstance(rows, int) or np.ndim(rows) == 0:
            return self.regime_at(int(rows)).time(product, rows, self.overlap)
        first_rows = [regime.first_row for regime in self.regimes]
        chosen = np.searchsorted(first_rows, rows, side="right") - 1
        times = [regime.time(product, rows, self.overlap) for regime in self.regimes]

        def pick(parts: list[Quantity]) -> Quantity:
            return np.choose(np.broadcast_arrays(chosen, *parts)[0], np.broadcast_arrays(*parts))

        return ProductTime(
            memory_s=pick([time.memory_s for time in times]),
            arithmetic_s=pick([time.arithmetic_s for time in times]),
            total_s=pick([time.total_s for time in times]),
        )
