"""The row law against row costs that others published, kernel by kernel.

Sources: ml-explore/mlx PR 3863 (M3 Max, 40 cores, cold weights, min of 15 trials), issue 3839
(M4 Pro, mlx 0.31.2 and 0.32.0) and issue 3852 (M4 Pro, 2- and 4-bit). Times in seconds, or
ratios to one row where the source gives ratios.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibrate.fit.law_fit import fit_law, residuals_log
from calibrate.fit.observations import Observations
from model.machine.kernels.dispatch import dispatch_of
from model.machine.kernels.gpu import Gpu
from model.machine.kernels.published_rates import published_rate
from model.machine.row_law import Product, Regime, RowLaw

M3_MAX_S = {
    1: 0.129e-3,
    2: 0.129e-3,
    4: 0.165e-3,
    6: 0.263e-3,
    8: 0.323e-3,
    9: 0.405e-3,
    10: 0.508e-3,
    12: 0.508e-3,
    14: 0.507e-3,
    16: 0.509e-3,
    17: 0.513e-3,
    24: 0.514e-3,
    32: 0.513e-3,
    33: 1.002e-3,
}
M4_PRO_S = {
    4: {1: 198, 2: 196.02, 3: 223.74, 4: 283.14, 5: 346.5, 8: 562.32, 10: 891, 32: 891},
    2: {1: 121, 2: 157.3, 3: 220.22, 4: 283.14, 5: 346.06, 8: 548.13, 10: 883.3, 32: 883.3},
}
M4_PRO_OLD_RATIO = {1: 1.0, 4: 1.89, 8: 3.44}
"""mlx 0.31.2, 4096 x 24576, 4 bit: the kernel that walks the weights once per row."""


def product(depth: int, columns: int, bits_per_weight: float) -> Product:
    read_bytes = depth * columns * bits_per_weight / 8
    return Product(read_bytes=read_bytes, depth=depth, columns=columns)


def wide_then_tiled(
    *, bandwidth: float, row_flops: float, tiled_flops: float, limit: int
) -> RowLaw:
    """MLX's two quantized kernels on M3 and later, since 0.32.0."""
    wide = Regime(
        first_row=1,
        tile_rows=5.0,
        pads=False,
        bandwidth_bytes_per_s=bandwidth,
        flops_per_s=row_flops,
        reread=1.0,
    )
    tiled = Regime(
        first_row=limit,
        tile_rows=32.0,
        pads=True,
        bandwidth_bytes_per_s=bandwidth,
        flops_per_s=tiled_flops,
    )
    return RowLaw(overlap=math.inf, rows_measured=33, regimes=(wide, tiled))


def observations(times_s: dict[int, float], matrix: Product) -> Observations:
    rows = np.array(list(times_s), dtype=float)
    ones = np.ones_like(rows)
    return Observations(
        rows=rows,
        read_bytes=matrix.read_bytes * ones,
        depth=matrix.depth * ones,
        columns=matrix.columns * ones,
        seconds=np.array(list(times_s.values())),
        sigma_log=0.02 * ones,
    )


@pytest.mark.parametrize("rows", M3_MAX_S)
def test_m3_max_cold_sweep_within_two_percent(rows: int) -> None:
    """Three constants explain 14 timings: 386 GB/s, 4.38 and 11.2 TFLOP/s."""
    law = wide_then_tiled(bandwidth=386e9, row_flops=4.38e12, tiled_flops=11.2e12, limit=10)
    predicted = float(law.time(product(5120, 17408, 4.5), rows).total_s)
    tolerance = 0.015 if rows < 10 else 0.02
    assert predicted == pytest.approx(M3_MAX_S[rows], rel=tolerance)


@pytest.mark.parametrize("bits", M4_PRO_S)
def test_m4_pro_shares_one_row_rate_between_two_and_four_bits(bits: int) -> None:
    """2.5 TFLOP/s a row whatever the bits, so narrow weights stop paying at three rows."""
    sweep = observations(
        {rows: 1e-6 * micro for rows, micro in M4_PRO_S[bits].items()},
        product(5120, 17408, bits + 0.25),
    )
    law = fit_law(sweep, {10: None})
    assert float(law.regimes[0].flops_per_s) == pytest.approx(2.5e12, rel=0.03)
    assert np.max(np.abs(residuals_log(law, sweep))) < 0.05


def test_per_row_kernel_of_mlx_0_31_reproduces_its_slope() -> None:
    """One tile per row, half overlapped with reading: 1.89 at 4 rows, 3.44 at 8."""
    matrix = product(4096, 24576, 4.5)
    per_row = Regime(
        first_row=1,
        tile_rows=1.0,
        pads=False,
        bandwidth_bytes_per_s=float(matrix.read_bytes),
        flops_per_s=2.0 * 4096 * 24576 / 0.43,
    )
    law = RowLaw(overlap=2.0, rows_measured=8, regimes=(per_row,))
    one = float(law.time(matrix, 1).total_s)
    for rows, ratio in M4_PRO_OLD_RATIO.items():
        assert float(law.time(matrix, rows).total_s) / one == pytest.approx(ratio, rel=0.05)


def test_fit_finds_the_wide_kernel_in_the_m3_max_sweep() -> None:
    """From timings alone: a tile of 5 rows, then a padded tile of 32 from row 10 on."""
    law = fit_law(observations(M3_MAX_S, product(5120, 17408, 4.5)))
    wide, tiled = law.regimes
    assert (wide.tile_rows, wide.reread) == (5.0, 1.0)
    assert (tiled.first_row, tiled.tile_rows) == (10, 32.0)
    assert float(wide.bandwidth_bytes_per_s) == pytest.approx(386e9, rel=0.02)
    assert float(wide.flops_per_s) == pytest.approx(4.38e12, rel=0.02)
    residuals = np.abs(residuals_log(law, observations(M3_MAX_S, product(5120, 17408, 4.5))))
    assert np.max(residuals[:6]) < 0.015
    assert np.max(residuals) < 0.02


def tabled_law(
    runtime: str, gpu: Gpu, matrix: Product, *, bandwidth: float, family: str = "affine"
) -> RowLaw:
    """The law of a matrix from the tables alone: kernels by release, published rates by core."""
    dispatch = dispatch_of("metal", runtime, gpu)
    assert dispatch is not None
    regimes = [
        Regime(
            first_row=use.first_row,
            tile_rows=use.kernel.tile_rows,
            pads=use.kernel.pads,
            reread=use.kernel.reread,
            bandwidth_bytes_per_s=bandwidth,
            flops_per_s=published_rate(use.kernel.rate, family, gpu, draws=1).value,
        )
        for use in dispatch.kernels(family, depth=int(matrix.depth), columns=int(matrix.columns))
    ]
    return RowLaw(overlap=math.inf, rows_measured=64, regimes=tuple(regimes))


@pytest.mark.parametrize("rows", M3_MAX_S)
def test_m3_max_sweep_from_its_release_and_cores_alone(rows: int) -> None:
    """mlx 0.32.0 tiles this matrix from row 10 on, as the sweep does; 0.32.1 would from 13."""
    matrix = product(5120, 17408, 4.5)
    gpu = Gpu(generation=15, size="s", cores=40)
    law = tabled_law("mlx-0.32.0", gpu, matrix, bandwidth=386e9)
    assert float(law.time(matrix, rows).total_s) == pytest.approx(M3_MAX_S[rows], rel=0.03)


@pytest.mark.parametrize("rows", M4_PRO_OLD_RATIO)
def test_m4_pro_under_0_31_from_a_rate_of_m3_and_the_floor_of_a_call(rows: int) -> None:
    """Nothing is fitted: the per-row rate per core of an M3 Ultra, 20 cores, 244 GB/s.

    Calls of this source hold 0.15 to 0.25 ms beside the kernel; 0.2 ms is taken. What the test
    does not show: under 0.32.0 the same source saw 1.47 at 4 rows and 2.69 at 8, where the wide
    kernel's rate of another M4 Pro and the same floor say 1.21 and 1.95.
    """
    matrix = product(4096, 24576, 4.5)
    gpu = Gpu(generation=16, size="s", cores=20)
    law = tabled_law("mlx-0.31.2", gpu, matrix, bandwidth=243.7e9)
    floor_s = 0.2e-3
    one_s, many_s = (float(law.time(matrix, count).total_s) + floor_s for count in (1, rows))
    assert many_s / one_s == pytest.approx(M4_PRO_OLD_RATIO[rows], rel=0.05)


ROUNDS = {
    # GPU, share of nominal bandwidth that MLX reads at, overhead per layer, measured round
    "M5 Max": (Gpu(generation=17, size="s", cores=40), 0.84 * 614e9, 33e-6, 1.28),
    "M3 Ultra": (Gpu(generation=15, size="d", cores=80), 0.87 * 819e9, 78e-6, 1.505),
    "M1 Ultra": (Gpu(generation=13, size="d", cores=64), 0.67 * 800e9, 94e-6, 2.71),
}
"""A 12B model of 48 layers in 4 bits, 3 draft tokens: lablup/mlxcel docs/benchmarks.md."""


def verify_pass_in_plain_passes(chip: str) -> float:
    """Four rows over one, from generation, cores and release alone."""
    gpu, bandwidth, layer_s, _ = ROUNDS[chip]
    layer = product(15_360, 15_360, 4.5)  # 12e9 weights over 48 layers, as one large matrix
    law = tabled_law("mlx-0.32.2", gpu, layer, bandwidth=bandwidth)
    one_s, four_s = (float(law.time(layer, rows).total_s) + layer_s for rows in (1, 4))
    return four_s / one_s


def test_only_the_gpu_without_the_wide_kernel_pays_for_checking() -> None:
    """Measured whole rounds: 1.28 on M5 Max, 1.50 on M3 Ultra, 2.71 on M1 Ultra.

    The law tells the M1 Ultra, which walks the weights once a row, from both others, and checks
    never cost more than the rounds they are part of on the M3 Ultra and M5 Max. It does not order
    those two: the M3 Ultra's check is free in it, and the rest of its round is drafts and the
    engine's hook. For the M1 Ultra it says too much, as its rate comes from models whose slope
    per row was twice that of this one.
    """
    passes = {chip: verify_pass_in_plain_passes(chip) for chip in ROUNDS}
    for chip in ("M5 Max", "M3 Ultra"):
        assert 1.0 <= passes[chip] <= ROUNDS[chip][-1]
    assert passes["M1 Ultra"] > 2.0 * max(passes["M5 Max"], passes["M3 Ultra"])
    assert passes["M1 Ultra"] == pytest.approx(ROUNDS["M1 Ultra"][-1], rel=0.3)
