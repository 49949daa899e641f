"""The columns that fill a device: told by the shapes that can tell, for those that cannot."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibrate.fit.fills import common_fills
from calibrate.fit.law_fit import fit_law
from calibrate.fit.observations import Observations
from model.machine.kernels.dispatch import Kernel, KernelUse
from model.machine.row_law import Product, Regime, RowLaw

TILED = Kernel(name="tiled", tile_rows=32.0, pads=True, reread=1.0, rate="tiled")
VECTOR = Kernel(name="vector", tile_rows=1.0, pads=False, reread=1.0, rate="vector")
KNOWN = (
    KernelUse(first_row=1, last_row=16, kernel=VECTOR),
    KernelUse(first_row=17, last_row=None, kernel=TILED),
)
FILL_COLUMNS = 16_384.0
ROWS = (1, 2, 4, 8, 16, 20, 24, 32)


def law(flops_per_s: float) -> RowLaw:
    shared = {"bandwidth_bytes_per_s": math.inf, "flops_per_s": flops_per_s, "reread": 1.0}
    return RowLaw(
        overlap=math.inf,
        rows_measured=32,
        regimes=(
            Regime(first_row=1, tile_rows=1.0, pads=False, **shared),
            Regime(first_row=17, tile_rows=32.0, pads=True, fill_columns=FILL_COLUMNS, **shared),
        ),
    )


def timed(planted: RowLaw, *shapes: tuple[int, int]) -> Observations:
    cells = [(row, depth, columns) for row in ROWS for depth, columns in shapes]
    rows, depth, columns = (np.array(each, dtype=float) for each in zip(*cells, strict=True))
    product = Product(read_bytes=depth * columns / 2, depth=depth, columns=columns)
    return Observations(
        rows=rows,
        read_bytes=depth * columns / 2,
        depth=depth,
        columns=columns,
        seconds=np.asarray(planted.time(product, rows).total_s),
        sigma_log=np.full(len(rows), 0.02),
    )


SEEN = {
    "square": timed(law(1e13), (2048, 2048), (8192, 8192), (16_384, 20_480)),
    "wide": timed(law(1.2e13), (2048, 16_384), (4096, 28_672)),
}


def test_narrow_shapes_tell_for_wide_ones() -> None:
    found = common_fills(SEEN, dict.fromkeys(SEEN, KNOWN))
    assert found == {17: pytest.approx(FILL_COLUMNS)}
    product = Product(read_bytes=2048 * 5120 / 2, depth=2048, columns=5120)
    known = {use.first_row: use.kernel for use in KNOWN}
    expected_s = float(law(1.2e13).time(product, 20).total_s)
    told = fit_law(SEEN["wide"], known, found)
    assert float(told.time(product, 20).total_s) == pytest.approx(expected_s, rel=0.02)
    alone = fit_law(SEEN["wide"], known)
    assert float(alone.time(product, 20).total_s) < expected_s / 2


def test_a_known_kernel_begins_where_it_begins_and_not_where_it_was_timed() -> None:
    found = fit_law(SEEN["wide"], {use.first_row: use.kernel for use in KNOWN})
    assert [each.first_row for each in found.regimes] == [1, 17]


def test_classes_served_by_different_kernels_share_no_fill() -> None:
    assert common_fills(SEEN, {"square": KNOWN, "wide": KNOWN[:1]}) == {}


def test_a_head_does_not_tell() -> None:
    seen = SEEN | {"head": timed(law(1e13), (2048, 128_256))}
    known = dict.fromkeys(SEEN, KNOWN) | {"head": ()}
    assert common_fills(seen, known) == common_fills(SEEN, dict.fromkeys(SEEN, KNOWN))
