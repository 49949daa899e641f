"""Arithmetic rates of MLX's CUDA kernels on a GB10, per multiprocessor, from what others published.

`qmv` and `qmm_sm80_16` from whole passes of Qwen3-1.7B, Qwen3-4B and Llama-3.1-8B in 4 bits over 1
to 10 rows, in units of the plain step (lablup/mlxcel, prompt-lookup-governor-gb10-2026-10-02.md):
of the 8B each row beyond the second adds 0.52 of a step of 19.6 ms, and 8 rows, padded to 16, take
2.95. Larger tiles from a kernel of 4096 x 5120 in 8 bits, 309 us for 128 rows, and 16-bit products
from 8192 x 8192 at 128 rows, 687 us (ml-explore/mlx PR 3137). Formats of microscaled floats run the
same kernels.
"""

from __future__ import annotations

from calibrate.fit.published.llama_cpp import CoreRate

OF_INTEGERS = {
    "qmv": CoreRate(flops_per_s=0.031e12, error=0.2),
    "qmm_sm80_16": CoreRate(flops_per_s=0.09e12, error=0.3),
    "qmm_sm80_32": CoreRate(flops_per_s=0.18e12, error=0.5),
    "qmm_sm80_64": CoreRate(flops_per_s=0.36e12, error=0.5),
}
CUDA_RATES = {
    **{(name, family): rate for name, rate in OF_INTEGERS.items() for family in ("affine", "fp")},
    ("cublas", "float"): CoreRate(flops_per_s=0.52e12, error=0.2),
}
"""By the rate's name in the tables of kernels and the family of formats."""
