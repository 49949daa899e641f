r"""Arithmetic rates of kernels that a machine was not measured with, from what others published.

A rate is stated per GPU core, because within a generation compute scales with cores: matrix
products differ by 7 % per core between base, Pro, Max and Ultra. For a machine of C cores

.. math::

   F = C f, \qquad
   \sigma_F / F = \sqrt{(r / 2 f)^2 + t^2 (1 + |g - g_0|)^2}

with f the published rate per core and r its range over the timings it was taken from, t the error
of carrying it to another chip, and g - g_0 the generations it is carried over. It stops holding
where two chips of a generation differ by more than their cores: `qmv_wide` on an M3 Ultra of 80
cores runs 17 % slower per core than on an M3 Max.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import final
from zlib import crc32

from model.catalog import kernel_data
from model.errors import InputError
from model.machine.constant import Constant, Origin
from model.machine.kernels.gpu import Gpu
from model.machine.profile import seeded_draws
from model.typed_json import record_from_json

UNIT_FLOPS_PER_S = 1e12
TRANSFER_ERROR = 0.15
"""Of a rate per core from one chip to another: what separates M3 Max from M3 Ultra."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRate:
    """A rate in 1e12 FLOP/s per core, its range over `n` timings, and the chip it is of."""

    kernel: str
    family: str
    generation: int
    size: str
    per_core: float
    least: float
    most: float
    n: int
    origin: str
    source: str

    def distance(self, gpu: Gpu) -> tuple[int, bool, bool]:
        """How far a GPU is from the one measured: generations, then Ultra or not, then size."""
        ultra = (gpu.size == "d") != (self.size == "d")
        return (abs(gpu.generation - self.generation), ultra, gpu.size != self.size)


@cache
def published_rates() -> tuple[PublishedRate, ...]:
    """Every rate that is shipped."""
    lines = kernel_data("rates")["rates"]
    stated = ({"origin": "published", **line} for line in lines)
    return tuple(record_from_json(PublishedRate, line, "kernel rates") for line in stated)


def published_rate(kernel: str, family: str, gpu: Gpu | None, *, draws: int) -> Constant:
    """The rate of a kernel on a GPU, from the nearest chip that was measured, in FLOP/s.

    `draws` is how many draws to make of it; two calls make the same ones.

    Raises:
        InputError: nobody published a rate of this kernel and family, or the GPU is not known.
    """
    rates = [rate for rate in published_rates() if (rate.kernel, rate.family) == (kernel, family)]
    if not rates or gpu is None:
        raise InputError(
            f"kernel {kernel} for {family} formats",
            "has no published rate",
            "calibrate under the runtime that is asked for",
        )
    nearest = min(rates, key=lambda rate: rate.distance(gpu))
    generations, _, _ = nearest.distance(gpu)
    scatter = (nearest.most - nearest.least) / (2.0 * nearest.per_core)
    error = math.hypot(scatter, TRANSFER_ERROR * (1 + generations))
    value = nearest.per_core * UNIT_FLOPS_PER_S * gpu.cores
    seed = crc32(f"{kernel} {family} {gpu}".encode())
    return Constant(
        value=value,
        stderr=error * value,
        unit="FLOP/s",
        origin=Origin[nearest.origin.upper()],
        draws=seeded_draws(value, error * value, count=draws, seed=seed),
    )
