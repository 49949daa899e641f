"""Row laws and stated constants that a published profile has beside what its plain runs tell.

Plain decoding shows kernels for one row only. Which kernel serves more rows, and on which tiles,
is known from MLX's tables (:mod:`model.machine.kernels.dispatch`), its rate from what others
published, per core (:mod:`model.machine.kernels.published_rates`).

llama.cpp has no such table here. Its law is read off batched decoding on an M2 Ultra, 76 cores
(ggml-org/llama.cpp, benches of build b828e18c7): Qwen2.5-Coder-7B in Q8_0 takes 15.1, 18.3, 31.4,
49.8 and 52.4 ms for 2, 4, 8, 16 and 32 rows. That is one tile of 4 rows up to 4, two at 8, and a
padded tile of 32 from 9 rows on; 0.053e12 FLOP/s per core in small tiles and 0.12e12 in large ones,
0.075e12 and 0.10e12 for gemma-3-4b in Q4_0. An M4 gains 1.22 from 8 rows of a 27B model: 0.041e12.
One chip and two formats carry this, so the errors are wide.

Routed experts are one product of one row for each (row, expert) pair. On an M1 Ultra rows that all
take the same experts cost as much as rows that take different ones (lablup/mlxcel), so a pair costs
its whole time again, read from memory or not: the one-row kernel has an arithmetic rate at which
the fewest bits of its format take as long as their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibrate.fit.published.timings import LLAMA_CPP
from calibrate.fit.published.work import FORMATS
from model.machine.constant import Constant, Origin
from model.machine.kernels.dispatch import dispatch_of
from model.machine.kernels.gpu import Gpu
from model.machine.kernels.published_rates import published_rate
from model.machine.kernels.runtime_change import LARGE_MATRIX
from model.machine.profile import LawForm, RegimeForm
from model.machine.row_law import Shape

FEW_ROWS_FLOPS_PER_S, FEW_ROWS_ERROR = 0.055e12, 0.35
MANY_ROWS_FLOPS_PER_S, MANY_ROWS_ERROR = 0.11e12, 0.30
"""Of llama.cpp, per core, and relative standard errors."""
LARGE_TILE_ROWS = 32.0
ATTENTION_FLOPS_PER_S, ATTENTION_ERROR = 0.1e12, 0.5
"""Per core, for several query rows; a prior, as in the profile of the base M3."""
ROWS_MEASURED = 32

MLX_HOST = {
    "build_layer_s": (1.7e-5, 8e-6),
    "build_pass_s": (5e-5, 3e-5),
    "submit_layer_s": (1.4e-5, 7e-6),
    "submit_pass_s": (5e-5, 3e-5),
    "sync_s": (2.5e-4, 8e-5),
}
"""Values and standard errors. The host of a plain pass is hidden, so runs bound it: 30 layers of
smollm-135m take 1.14 ms on an M5 Max, 2.5 ms on an M1 Ultra (lablup/mlxcel). `sync_s`: mlx-lm issue
250, as in the M3 prior."""
LLAMA_CPP_HOST = {
    "build_layer_s": (5e-6, 3e-6),
    "build_pass_s": (5e-5, 3e-5),
    "submit_layer_s": (1e-5, 6e-6),
    "submit_pass_s": (5e-5, 3e-5),
    "sync_s": (1e-4, 6e-5),
}
"""A graph that is built in C++ and kept; nobody published these, so half of each is its error."""
SMALL_TERMS = {
    "kernel_s": (2.5e-6, 0.0),
    "pass_s": (6e-5, 0.0),
    "logit_s": (2e-10, 0.0),
    "more_rows_layer_s": (0.0, 0.0),
    "element_s": (0.0, 0.0),
    "reshape_s": (0.0, 0.0),
}
"""Kept at what the fit of plain passes assumes, so without an error of their own."""

FEWEST_BITS = {
    "affine": 3.5,
    "4bit": 4.25,
    "8bit": 8.5,
    "gguf-q4_0": 4.5,
    "fp": 4.25,
    "float": 16.0,
}
"""Bits per weight of the smallest type that each law serves, but for rare ones of 1 and 2 bits."""

ONE_ROW = RegimeForm(first_row=1, tile_rows=1.0, pads=False, reread=0.0, fill_columns=0.0)


def stated(value: float, stderr: float, unit: str = "s", origin: Origin = Origin.PRIOR) -> Constant:
    """A constant without draws: a reader makes them from its error, seeded by its name."""
    return Constant(value=value, stderr=stderr, unit=unit, origin=origin, draws=np.empty(0))


def stated_constants(kernels: str) -> dict[str, Constant]:
    """Everything that plain passes do not tell, the rates of rows apart."""
    host = LLAMA_CPP_HOST if kernels == LLAMA_CPP else MLX_HOST
    return {name: stated(*values) for name, values in (SMALL_TERMS | host).items()}


def law_forms(runtime: str, gpu: Gpu) -> tuple[LawForm, ...]:
    """A law for every format; one shape stands for all, as plain runs do not tell them apart."""
    own = FORMATS if runtime == LLAMA_CPP else [name for name in FORMATS if "gguf" not in name]
    return tuple(
        _law(name, Shape.WIDE.value, (form for form, _ in later_regimes(name, runtime, gpu)))
        for name in own
    )


def attention_form() -> LawForm:
    """One query row, several that each read the cache, and a kernel for many."""
    several = RegimeForm(first_row=2, tile_rows=1.0, pads=False, reread=1.0, fill_columns=0.0)
    many = RegimeForm(first_row=9, tile_rows=32.0, pads=True, reread=1.0, fill_columns=0.0)
    return _law("", "", (several, many))


def _law(name: str, shape: str, later: Iterator[RegimeForm] | tuple[RegimeForm, ...]) -> LawForm:
    return LawForm(
        format=name,
        shape=shape,
        overlap=None,
        rows_measured=ROWS_MEASURED,
        regimes=(ONE_ROW, *later),
    )


def attention_rates(cores: int) -> dict[str, Constant]:
    """Arithmetic of several query rows."""
    value = ATTENTION_FLOPS_PER_S * cores
    rate = stated(value, ATTENTION_ERROR * value, "FLOP/s")
    return {f"attention.{row}.flops_per_s": rate for row in (2, 9)}


def later_regimes(name: str, runtime: str, gpu: Gpu) -> Iterator[tuple[RegimeForm, Constant]]:
    """The kernels of a format from its second row on, each with its arithmetic rate."""
    family = name if name in ("fp", "float") else "affine"
    if runtime == LLAMA_CPP:
        tiles = 8.0 if family == "float" else 4.0
        for first_row, tile_rows, per_core, error in (
            (2, tiles, FEW_ROWS_FLOPS_PER_S, FEW_ROWS_ERROR),
            (9, LARGE_TILE_ROWS, MANY_ROWS_FLOPS_PER_S, MANY_ROWS_ERROR),
        ):
            rate = stated(per_core * gpu.cores, error * per_core * gpu.cores, "FLOP/s")
            yield (
                RegimeForm(
                    first_row=first_row,
                    tile_rows=tile_rows,
                    pads=tile_rows == LARGE_TILE_ROWS,
                    reread=1.0,
                    fill_columns=0.0,
                ),
                rate,
            )
        return
    dispatch = dispatch_of("metal", runtime, gpu)
    if dispatch is None:
        raise AssertionError(f"no table of the kernels of {runtime}")
    depth, columns = LARGE_MATRIX[Shape.WIDE]
    for use in dispatch.kernels(family, depth=depth, columns=columns):
        if use.last_row == 1:
            continue
        kernel = use.kernel
        form = RegimeForm(
            first_row=max(use.first_row, 2),
            tile_rows=kernel.tile_rows,
            pads=kernel.pads,
            reread=kernel.reread,
            fill_columns=0.0,
        )
        yield form, published_rate(kernel.rate, family, gpu, draws=0)
