"""Row laws and stated constants that a published profile has beside what its plain runs tell.

Plain decoding shows kernels for one row only. Which kernel serves more rows, and on which tiles,
is known from MLX's tables (:mod:`model.machine.kernels.dispatch`), its rate from what others
published, per core (:mod:`model.machine.kernels.published_rates`).

llama.cpp's are in :mod:`.llama_cpp`, and those of MLX on CUDA in :mod:`.cuda_rates`.

Routed experts are one product of one row for each (row, expert) pair. On an M1 Ultra rows that all
take the same experts cost as much as rows that take different ones (lablup/mlxcel), so a pair costs
its whole time again, read from memory or not: the one-row kernel has an arithmetic rate at which
the fewest bits of its format take as long as their bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from calibrate.fit.published import llama_cpp
from calibrate.fit.published.cuda_rates import CUDA_RATES
from calibrate.fit.published.joint_fit import ATTENTION_OVERLAP
from calibrate.fit.published.llama_cpp import CoreRate
from calibrate.fit.published.timings import LLAMA_CPP
from calibrate.fit.published.work import FORMATS
from calibrate.published.chips import Chip
from calibrate.published.runtimes import split_family
from model.machine.constant import Constant, Origin
from model.machine.kernels.dispatch import KernelUse, dispatch_of
from model.machine.kernels.published_rates import published_rate
from model.machine.kernels.runtime_change import LARGE_MATRIX
from model.machine.profile import LawForm, RegimeForm
from model.machine.row_law import Shape

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


def stated_constants(runtime: str) -> dict[str, Constant]:
    """Everything that plain passes do not tell, the rates of rows apart."""
    name, back_end = split_family(runtime)
    host = LLAMA_CPP_HOST if name == LLAMA_CPP else MLX_HOST
    rows = llama_cpp.ROWS_S[back_end] if name == LLAMA_CPP else {}
    return {key: stated(*values) for key, values in (SMALL_TERMS | rows | host).items()}


def law_forms(runtime: str, chip: Chip) -> tuple[LawForm, ...]:
    """A law for every format; one shape stands for all, as plain runs do not tell them apart."""
    own = [name for name in FORMATS if "gguf" not in name or runtime.startswith(LLAMA_CPP)]
    return tuple(
        _law(name, Shape.WIDE.value, (form for form, _ in later_regimes(name, runtime, chip)))
        for name in own
    )


def attention_form(runtime: str) -> LawForm:
    """One query row, several that each read the cache, and a kernel for many."""
    if runtime == LLAMA_CPP:
        many = RegimeForm(first_row=20, tile_rows=32.0, pads=True, reread=1.0, fill_columns=0.0)
        return replace(_law("", "", (many,)), overlap=ATTENTION_OVERLAP)
    several = RegimeForm(first_row=2, tile_rows=1.0, pads=False, reread=1.0, fill_columns=0.0)
    many = RegimeForm(first_row=9, tile_rows=32.0, pads=True, reread=1.0, fill_columns=0.0)
    return _law("", "", (several, many))


def _law(name: str, shape: str, later: Iterable[RegimeForm]) -> LawForm:
    return LawForm(
        format=name,
        shape=shape,
        overlap=None,
        rows_measured=ROWS_MEASURED,
        regimes=(ONE_ROW, *later),
    )


def attention_rates(runtime: str, cores: int) -> dict[str, Constant]:
    """Arithmetic of several query rows; of one it is fitted where it shows."""
    later = attention_form(runtime).regimes[1:]
    rate = _of_cores(CoreRate(flops_per_s=ATTENTION_FLOPS_PER_S, error=ATTENTION_ERROR), cores)
    return {f"attention.{form.first_row}.flops_per_s": rate for form in later}


def later_regimes(name: str, runtime: str, chip: Chip) -> Iterator[tuple[RegimeForm, Constant]]:
    """The kernels of a format from its second row on, each with its arithmetic rate."""
    family = name if name in ("fp", "float") else "affine"
    cores = chip.cores or 0
    if runtime == LLAMA_CPP:
        for form, rate in llama_cpp.metal_regimes(cores):
            yield form, _of_cores(rate, cores)
    elif runtime.startswith(LLAMA_CPP):
        for form, rate in llama_cpp.cuda_regimes():
            yield form, _of_cores(rate, cores)
    else:
        for use in kernels_of_rows(family, runtime, chip):
            kernel = use.kernel
            form = RegimeForm(
                first_row=max(use.first_row, 2),
                tile_rows=kernel.tile_rows,
                pads=kernel.pads,
                reread=kernel.reread,
                fill_columns=0.0,
            )
            if chip.gpu is None:
                yield form, _of_cores(CUDA_RATES[kernel.rate, family], cores)
            else:
                yield form, published_rate(kernel.rate, family, chip.gpu, draws=0)


def kernels_of_rows(family: str, runtime: str, chip: Chip) -> Iterator[KernelUse]:
    """The kernels of MLX that serve several rows of a large matrix, by rows."""
    name, back_end = split_family(runtime)
    dispatch = dispatch_of(back_end, name, chip.gpu)
    if dispatch is None:
        raise AssertionError(f"no table of the kernels of {runtime}")
    depth, columns = LARGE_MATRIX[Shape.WIDE]
    uses = dispatch.kernels(family, depth=depth, columns=columns)
    return (use for use in uses if use.last_row != 1)


def _of_cores(rate: CoreRate, cores: int) -> Constant:
    value = rate.flops_per_s * cores
    return stated(value, rate.error * value, "FLOP/s")
