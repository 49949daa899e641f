"""The row law against row costs measured on an NVIDIA H200: fitted on half, scored on the rest.

MLX 0.32.4, CUDA 13 back end, 2026-11-29; one linear layer, K = 4096 and N = 14336, 16 distinct
matrices in rotation, microseconds per call, median.
"""

from __future__ import annotations

import numpy as np
import pytest

from calibrate.fit.law_fit import fit_law, residuals_log
from calibrate.fit.observations import Observations

ROWS = np.array([1, 2, 3, 4, 5, 6, 8, 12, 16, 17, 32, 64], dtype=float)
TIMES_US = {
    4.5: [41.6, 74.8, 106.4, 138.2, 170.0, 203.2, 37.4, 37.6, 37.5, 60.9, 60.2, 69.9],
    8.5: [34.0, 57.9, 82.7, 107.8, 130.7, 156.1, 34.9, 34.4, 35.2, 49.6, 48.4, 54.0],
    16.0: [31.1, 34.4, 34.9, 34.4, 34.3, 34.4, 34.7, 34.6, 34.4, 36.0, 37.3, 39.1],
}
# mlx/backend/cuda/quantized: a vector kernel below 8 rows, then tiles of 16, 32 and 64 rows;
# 16-bit floats leave the vector kernel at 2 rows.
BOUNDARIES = {4.5: (8, 17, 33), 8.5: (8, 17, 33), 16.0: (2, 17, 33)}
FITTED_ROWS = (1, 2, 6, 8, 17, 64)


def sweep(bits_per_weight: float) -> Observations:
    ones = np.ones_like(ROWS)
    return Observations(
        rows=ROWS,
        read_bytes=4096 * 14336 * bits_per_weight / 8 * ones,
        depth=4096 * ones,
        columns=14336 * ones,
        seconds=1e-6 * np.array(TIMES_US[bits_per_weight]),
        sigma_log=0.02 * ones,
    )


@pytest.mark.parametrize("bits_per_weight", TIMES_US)
def test_half_of_the_table_predicts_the_other_half_within_six_percent(
    bits_per_weight: float,
) -> None:
    everything = sweep(bits_per_weight)
    fitted = np.isin(ROWS, FITTED_ROWS)
    assert np.sum(fitted) == len(ROWS) // 2
    known = dict.fromkeys(BOUNDARIES[bits_per_weight])
    law = fit_law(everything.select(np.flatnonzero(fitted)), known)
    unseen = residuals_log(law, everything)[~fitted]
    assert np.max(np.abs(unseen)) < 0.06


@pytest.mark.parametrize("bits_per_weight", [4.5, 8.5])
def test_the_fit_finds_the_cliff_between_seven_and_eight_rows(bits_per_weight: float) -> None:
    law = fit_law(sweep(bits_per_weight))
    assert 8 in [regime.first_row for regime in law.regimes]
    times = law.time(sweep(bits_per_weight).product, ROWS).total_s
    five, eight = np.asarray(times)[[4, 6]]
    assert five / eight > 3.5
