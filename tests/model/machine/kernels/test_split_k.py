"""16-bit weights before MLX 0.32.1: what fills tiles of 64 rows, and what is cut along K."""

from __future__ import annotations

import pytest

from model.catalog import kernel_data
from model.machine.kernels.dispatch import dispatch_of
from model.machine.kernels.gpu import Gpu
from model.machine.kernels.runtime_change import as_runtime
from model.machine.profile_store import named_profile
from model.machine.row_law import Cut, Product, Regime
from model.network.weight_format import weight_format

FRAGMENT = 8
RATED_TILE = (64, 32)
"""The tile of steel and of llama.cpp's kernel, of whose timings its rate is."""
TILES = {"steel_32": (32, 32), "steel_splitk_16": (16, 32), "steel_splitk": (16, 32)}
M2 = Gpu(generation=14, size="g", cores=10)
BF16 = weight_format("bf16")


@pytest.mark.parametrize(
    ("runtime", "depth", "columns", "expected"),
    [
        # M / 16 in whole numbers is 0 for every M below 16, whatever N.
        ("mlx-0.17", 4096, 14336, [("gemv", 1), ("steel_splitk_16", 2), ("steel_32", 16)]),
        ("mlx-0.29", 4096, 14336, [("gemv", 1), ("steel_splitk_16", 2), ("steel", 16)]),
        ("mlx-0.29", 4096, 4096, [("gemv", 1), ("steel_splitk_16", 2), ("steel", 16)]),
        # From 0.30.5 on it is rounded up, and K has to be at least N.
        ("mlx-0.31", 4096, 14336, [("gemv", 1), ("steel", 2)]),
        ("mlx-0.31", 14336, 4096, [("gemv", 1), ("steel_splitk", 2)]),
        ("mlx-0.32", 14336, 4096, [("gemv", 1), ("steel_splitk", 2)]),
    ],
)
def test_which_kernel_serves_several_rows(
    runtime: str, depth: int, columns: int, expected: list[tuple[str, int]]
) -> None:
    dispatch = dispatch_of("metal", runtime, M2)
    assert dispatch is not None
    uses = dispatch.kernels("float", depth=depth, columns=columns)
    assert [(use.kernel.name, use.first_row) for use in uses] == expected


@pytest.mark.parametrize(
    ("runtime", "depth", "columns", "step"),
    [
        ("mlx-0.31", 4096, 14336, True),
        ("mlx-0.31", 14336, 4096, False),
        ("mlx-0.29", 4096, 14336, False),
    ],
)
def test_only_full_tiles_make_a_step_at_the_second_row(
    runtime: str, depth: int, columns: int, step: bool
) -> None:
    """64 rows of 2.6 TFLOP/s take 2.3 times as long as reading the weights; 16 rows of half that
    rate 1.15 times."""
    machine = as_runtime(named_profile("m2-10core-mlx-0.32"), runtime).machine
    product = Product(read_bytes=BF16.matrix_bytes(columns, depth), depth=depth, columns=columns)
    law = machine.law(BF16, depth=depth, columns=columns)
    one, two = (float(law.time(product, rows).total_s) for rows in (1, 2))
    assert (two > 1.5 * one) == step
    assert two >= one * (1 - 1e-9)


def loads_of_a_product(rows: int, columns: int) -> float:
    """Fragments that each of 2 x 2 simdgroups loads for one product of two of them."""
    tall, wide = rows // (2 * FRAGMENT), columns // (2 * FRAGMENT)
    return (tall + wide) / (tall * wide)


@pytest.mark.parametrize("name", TILES)
def test_the_effort_of_a_tile_is_what_its_fragments_take_to_load(name: str) -> None:
    effort = loads_of_a_product(*TILES[name]) / loads_of_a_product(*RATED_TILE)
    assert kernel_data("metal")["kernels"][name]["effort"] == pytest.approx(effort, rel=1e-3)


def test_partial_sums_move_128_bytes_for_each_output_and_row() -> None:
    """Before 0.30.5, of a vicuna-7b: 178 MB a row, 1.9 ms at the 95 GB/s of an M2."""
    machine = as_runtime(named_profile("m2-10core-mlx-0.32"), "mlx-0.17").machine
    matrices = {(4096, 4096): 4 * 32, (4096, 11008): 2 * 32, (11008, 4096): 32, (4096, 32000): 1}
    row_s = moved_bytes = 0.0
    for (depth, columns), count in matrices.items():
        law = machine.law(BF16, depth=depth, columns=columns)
        product = Product(
            read_bytes=BF16.matrix_bytes(columns, depth), depth=depth, columns=columns
        )
        four, five = (float(law.time(product, rows).total_s) for rows in (4, 5))
        row_s += count * (five - four)
        moved_bytes += count * 128.0 * columns
    assert moved_bytes == pytest.approx(178e6, rel=0.02)
    bandwidth = float(machine.law(BF16, depth=4096, columns=4096).regimes[0].bandwidth_bytes_per_s)
    assert row_s == pytest.approx(moved_bytes / bandwidth, rel=1e-6)


def test_a_cut_with_nothing_to_add_up_is_a_tile_and_an_effort() -> None:
    regime = Regime(
        first_row=2, tile_rows=64, pads=True, bandwidth_bytes_per_s=1e11, flops_per_s=2e12
    )
    product = Product(read_bytes=2.0 * 4096 * 4096, depth=4096, columns=4096)
    plain, cut = (
        each.time(product, 4, 2.0)
        for each in (regime, regime.cut(Cut(tile_rows=16, effort=2.0, sum_s=1.0)))
    )
    assert cut.memory_s == plain.memory_s
    assert cut.arithmetic_s == pytest.approx(plain.arithmetic_s / 2.0)
    summed = regime.cut(Cut(tile_rows=16, effort=2.0, partial_sums=16, sum_s=1e-3))
    extra_s = 128.0 * 4 * 4096 / 1e11 + 1e-3
    for part in ("memory_s", "total_s"):
        now, before = getattr(summed.time(product, 4, 2.0), part), getattr(cut, part)
        assert now == pytest.approx(before + extra_s)


def test_few_threadgroups_leave_a_wide_gpu_idle() -> None:
    """128 threadgroups of 4096 columns keep 10 cores busy and not 76."""
    per_core: dict[str, float] = {}
    for name, cores in (("m2-10core-mlx-0.32", 10), ("m2-ultra-76core-mlx-0.32", 76)):
        machine = as_runtime(named_profile(name), "mlx-0.17").machine
        law = machine.law(BF16, depth=11008, columns=4096)
        product = Product(read_bytes=BF16.matrix_bytes(4096, 11008), depth=11008, columns=4096)
        per_core[name] = float(law.time(product, 16).arithmetic_s) * cores
    alone, many = per_core.values()
    assert many / alone == pytest.approx(320 * 76 / 4096, rel=0.03)
