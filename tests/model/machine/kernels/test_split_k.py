"""16-bit weights before MLX 0.32.1: what fills tiles of 64 rows, and what is cut along K."""

from __future__ import annotations

import pytest

from model.machine.kernels.dispatch import dispatch_of
from model.machine.kernels.gpu import Gpu
from model.machine.kernels.runtime_change import as_runtime
from model.machine.profile_store import named_profile
from model.machine.row_law import Product
from model.network.weight_format import weight_format

M2 = Gpu(generation=14, size="g", cores=10)
BF16 = weight_format("bf16")


@pytest.mark.parametrize(
    ("runtime", "depth", "columns", "expected"),
    [
        # M / 16 in whole numbers is 0 for every M below 16, whatever N.
        ("mlx-0.30", 4096, 14336, [("gemv", 1), ("steel_splitk", 2), ("steel", 16)]),
        ("mlx-0.30", 4096, 4096, [("gemv", 1), ("steel_splitk", 2), ("steel", 16)]),
        # From 0.31.0 on it is rounded up, and K has to be at least N.
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
        ("mlx-0.30", 4096, 14336, False),
    ],
)
def test_only_full_tiles_make_a_step_at_the_second_row(
    runtime: str, depth: int, columns: int, step: bool
) -> None:
    """64 rows of 2.6 TFLOP/s take 2.3 times as long as reading the weights; 16 rows hide in it."""
    machine = as_runtime(named_profile("m2-10core-mlx-0.32"), runtime).machine
    product = Product(read_bytes=BF16.matrix_bytes(columns, depth), depth=depth, columns=columns)
    law = machine.law(BF16, depth=depth, columns=columns)
    one, two = (float(law.time(product, rows).total_s) for rows in (1, 2))
    assert (two > 1.5 * one) == step
    assert two >= one * (1 - 1e-9)
