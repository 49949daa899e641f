"""A first look at a device, in a second: enough to choose sizes and to guess times."""

from __future__ import annotations

import time

from calibrate import kernels, mlx_device
from calibrate.session import Speed
from calibrate.timing import Clock, Pace, Workload, chain_length, summarise, visit

PACE = Pace(repetition_s=0.005, repeats=2, most_repeats=8, check_tries=3, limit_s=1.0)
SIDES = (512, 1024, 2048, 4096, 8192)
LONG_ENOUGH_S = 1e-3
ROWS = 4
"""Few enough for the per-row kernels, the dearest a row can meet."""


def first_look(clock: Clock = time.perf_counter) -> Speed:
    """Time one tiny kernel, then ever larger matrices until one is more than its launch."""
    kernel_s = seconds(kernels.op_chain(), clock)
    name = "fp32" if mlx_device.on_processor() else "bf16"
    side, product_s = 0, 0.0
    for side in SIDES:
        product_s = square_s(name, side, 1, clock)
        if product_s > LONG_ENOUGH_S:
            break
    entry_bytes = 4 if mlx_device.on_processor() else 2
    quantized = "4bit-s32" if mlx_device.on_processor() else "4bit"
    rows_s = square_s(quantized, side, ROWS, clock)
    mlx_device.release()
    return Speed(
        row_weights_per_s=ROWS * side * side / rows_s,
        bytes_per_s=entry_bytes * side * side / product_s,
        kernel_s=kernel_s,
    )


def square_s(format_name: str, side: int, rows: int, clock: Clock) -> float:
    """Seconds of one square matrix and its link."""
    mlx_device.release()
    matrices = kernels.Matrices(format_name, side, side)
    return seconds(kernels.linear_chain(matrices, depth=side, columns=side, rows=rows), clock)


def seconds(workload: Workload, clock: Clock) -> float:
    """Seconds per unit, roughly."""
    units = chain_length(workload, clock, PACE, 0.0)
    return summarise([visit(workload, clock, PACE, units, check=False)]).seconds
