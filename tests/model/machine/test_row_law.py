"""The row law: limits, invariants, and an array call that equals its scalar calls."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.machine.overlap import overlapped
from model.machine.row_law import Product, Regime, RowLaw, Shape, shape_of

costs = st.floats(min_value=1e-9, max_value=1e3)
overlaps = st.sampled_from([1.0, 1.5, 2.0, 4.0, math.inf])


@st.composite
def regimes(draw: st.DrawFn, first_row: int = 1) -> Regime:
    return Regime(
        first_row=first_row,
        tile_rows=draw(st.sampled_from([1.0, 5.0, 16.0, 32.0, math.inf])),
        pads=draw(st.booleans()),
        bandwidth_bytes_per_s=draw(st.floats(min_value=1e9, max_value=1e13)),
        flops_per_s=draw(st.floats(min_value=1e9, max_value=1e15)),
        reread=draw(st.sampled_from([0.0, 0.5, 1.0])),
        fill_columns=draw(st.sampled_from([0.0, 4096.0, 32768.0])),
    )


@st.composite
def products(draw: st.DrawFn) -> Product:
    depth = draw(st.integers(min_value=64, max_value=20_000))
    columns = draw(st.integers(min_value=64, max_value=200_000))
    bits = draw(st.sampled_from([2.5, 4.5, 8.5, 16.0]))
    return Product(read_bytes=depth * columns * bits / 8, depth=depth, columns=columns)


class TestOverlap:
    """Two costs take at least the larger and at most their sum."""

    @given(costs, costs, overlaps)
    def test_between_maximum_and_sum(self, first: float, second: float, overlap: float) -> None:
        time = float(overlapped(first, second, overlap))
        assert max(first, second) * (1 - 1e-12) <= time <= (first + second) * (1 + 1e-12)

    def test_zero_costs_take_no_time(self) -> None:
        assert float(overlapped(0.0, 0.0, 2.0)) == 0.0


class TestRegime:
    """One kernel."""

    def test_no_arithmetic_still_takes_the_time_of_reading(self) -> None:
        regime = Regime(
            first_row=1,
            tile_rows=math.inf,
            pads=False,
            bandwidth_bytes_per_s=1e11,
            flops_per_s=math.inf,
        )
        time = regime.time(Product(read_bytes=1e9, depth=1e4, columns=1e5), 64, math.inf)
        assert float(time.total_s) == pytest.approx(1e-2)

    @pytest.mark.parametrize(
        ("rows", "slots"), [(1, 1), (5, 5), (6, 6), (7, 8), (9, 10), (10, 10), (11, 12)]
    )
    def test_the_wide_kernel_spreads_rows_evenly_over_tiles_of_five(
        self, rows: int, slots: int
    ) -> None:
        """mlx 0.32 `qmv_wide`: v = ceil(M / ceil(M / 5)), so 9 rows cost 10 row slots."""
        wide = Regime(
            first_row=1, tile_rows=5.0, pads=False, bandwidth_bytes_per_s=1.0, flops_per_s=1.0
        )
        assert float(wide.slots(rows)) == slots

    def test_a_padded_tile_charges_for_rows_that_are_not_there(self) -> None:
        tiled = Regime(
            first_row=1, tile_rows=32.0, pads=True, bandwidth_bytes_per_s=1.0, flops_per_s=1.0
        )
        assert [float(tiled.slots(rows)) for rows in (1, 32, 33)] == [32, 32, 64]

    def test_a_narrow_matrix_costs_as_much_as_one_that_fills_the_device(self) -> None:
        regime = Regime(
            first_row=1,
            tile_rows=16.0,
            pads=True,
            bandwidth_bytes_per_s=math.inf,
            flops_per_s=1e12,
            fill_columns=8192.0,
        )
        narrow = regime.time(Product(read_bytes=1.0, depth=4096, columns=1024), 8, math.inf)
        filling = regime.time(Product(read_bytes=1.0, depth=4096, columns=8192), 8, math.inf)
        assert float(narrow.total_s) == float(filling.total_s)

    @given(regimes(), products(), st.integers(min_value=1, max_value=200), overlaps)
    def test_time_lies_between_its_bounds(
        self, regime: Regime, product: Product, rows: int, overlap: float
    ) -> None:
        time = regime.time(product, rows, overlap)
        low = max(float(time.memory_s), float(time.arithmetic_s))
        high = float(time.memory_s) + float(time.arithmetic_s)
        assert low * (1 - 1e-12) <= float(time.total_s) <= high * (1 + 1e-12)

    @given(regimes(), products(), st.integers(min_value=1, max_value=200), overlaps)
    def test_twice_both_rates_takes_half_the_time(
        self, regime: Regime, product: Product, rows: int, overlap: float
    ) -> None:
        twice = Regime(
            first_row=1,
            tile_rows=regime.tile_rows,
            pads=regime.pads,
            bandwidth_bytes_per_s=2 * regime.bandwidth_bytes_per_s,
            flops_per_s=2 * regime.flops_per_s,
            reread=regime.reread,
            fill_columns=regime.fill_columns,
        )
        slow = float(regime.time(product, rows, overlap).total_s)
        assert float(twice.time(product, rows, overlap).total_s) == pytest.approx(slow / 2)


class TestRowLaw:
    """A list of kernels."""

    @given(regimes(), regimes(first_row=8), products(), overlaps)
    def test_an_array_of_rows_equals_its_scalar_calls(
        self, few: Regime, many: Regime, product: Product, overlap: float
    ) -> None:
        law = RowLaw(overlap=overlap, rows_measured=64, regimes=(few, many))
        rows = np.arange(1.0, 20.0)
        together = np.asarray(law.time(product, rows).total_s)
        one_by_one = [float(law.time(product, int(row)).total_s) for row in rows]
        np.testing.assert_allclose(together, one_by_one, rtol=1e-14)

    def test_each_row_count_is_served_by_the_last_regime_that_has_begun(self) -> None:
        def rate(first_row: int, bandwidth: float) -> Regime:
            return Regime(
                first_row=first_row,
                tile_rows=math.inf,
                pads=False,
                bandwidth_bytes_per_s=bandwidth,
                flops_per_s=math.inf,
            )

        law = RowLaw(overlap=math.inf, rows_measured=64, regimes=(rate(1, 1.0), rate(8, 2.0)))
        product = Product(read_bytes=1.0, depth=1, columns=1)
        assert [float(law.time(product, rows).total_s) for rows in (1, 7, 8, 64)] == [
            1,
            1,
            0.5,
            0.5,
        ]

    @given(
        regimes(),
        regimes(first_row=8),
        regimes(first_row=20),
        products(),
        st.integers(min_value=-1, max_value=40),
        st.integers(min_value=1, max_value=64),
    )
    def test_a_law_handed_over_elsewhere_prices_both_sides_as_before(
        self, few: Regime, many: Regime, more: Regime, product: Product, to: int, row: int
    ) -> None:
        law = RowLaw(overlap=2.0, rows_measured=64, regimes=(few, many, more))
        moved = law.handed_over(8, to)
        before = row < to
        expected = law.regime_at(min(row, 7) if before else max(row, 8)).time(product, row, 2.0)
        assert float(moved.time(product, row).total_s) == float(expected.total_s)
        first_rows = [regime.first_row for regime in moved.regimes]
        assert first_rows == sorted(set(first_rows))
        assert first_rows[0] == 1

    @given(regimes(), products(), st.integers(min_value=1, max_value=64), overlaps)
    def test_half_the_speed_takes_twice_the_time(
        self, regime: Regime, product: Product, rows: int, overlap: float
    ) -> None:
        law = RowLaw(overlap=overlap, rows_measured=64, regimes=(regime,))
        fast, slow = (float(each.time(product, rows).total_s) for each in (law, law.at_speed(0.5)))
        assert slow == pytest.approx(2 * fast)

    def test_rates_may_be_arrays_of_draws(self) -> None:
        regime = Regime(
            first_row=1,
            tile_rows=1.0,
            pads=False,
            bandwidth_bytes_per_s=np.array([1e9, 2e9]),
            flops_per_s=np.array([1e12, 1e12]),
        )
        law = RowLaw(overlap=math.inf, rows_measured=1, regimes=(regime,))
        time = law.time(Product(read_bytes=1e9, depth=1, columns=1), 1)
        np.testing.assert_allclose(np.asarray(time.total_s), [1.0, 0.5])


@pytest.mark.parametrize(
    ("depth", "columns", "shape"),
    [
        (4096, 4096, Shape.SQUARE),
        (4096, 6144, Shape.SQUARE),
        (4096, 28672, Shape.WIDE),
        (14336, 4096, Shape.TALL),
        (4096, 128256, Shape.HEAD),
        (2048, 49152, Shape.HEAD),
        (12288, 49152, Shape.HEAD),
        (12288, 45056, Shape.WIDE),
    ],
)
def test_shapes_of_real_matrices(depth: int, columns: int, shape: Shape) -> None:
    assert shape_of(depth=depth, columns=columns) is shape
