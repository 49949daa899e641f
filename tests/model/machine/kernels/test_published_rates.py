"""Published rates: the nearest chip, scaled by cores, with an error that grows with distance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from model.errors import InputError
from model.machine.constant import Origin
from model.machine.kernels.gpu import Gpu
from model.machine.kernels.published_rates import published_rate, published_rates


def rate(kernel: str, family: str, generation: int, size: str, cores: int) -> float:
    gpu = Gpu(generation=generation, size=size, cores=cores)
    return published_rate(kernel, family, gpu, draws=10).value


def test_every_rate_lies_in_its_own_range_and_is_of_a_tabled_kernel() -> None:
    for each in published_rates():
        assert each.least <= each.per_core <= each.most
        assert each.n >= 1
        assert each.origin in ("published", "prior")


@pytest.mark.parametrize(
    ("kernel", "family", "generation", "size", "cores", "expected"),
    [
        # M3 with 10 cores: 10 x what an M3 Max has per core, not what an Ultra has
        ("qmv_wide", "affine", 15, "g", 10, 1.075e12),
        ("qmv_wide", "affine", 15, "d", 80, 7.16e12),
        ("qmm", "affine", 15, "g", 10, 2.811e12),
        ("qmv", "affine", 15, "g", 10, 0.652e12),
        ("qmv", "affine", 16, "s", 20, 1.304e12),  # nothing of M4: one generation back
        ("steel", "float", 15, "g", 10, 2.545e12),
        ("qmv_wide", "fp", 16, "g", 10, 0.703e12),
    ],
)
def test_rates_scale_with_cores(
    kernel: str, family: str, generation: int, size: str, cores: int, expected: float
) -> None:
    assert rate(kernel, family, generation, size, cores) == pytest.approx(expected)


def test_error_is_of_range_and_distance() -> None:
    """M4 Pro by hand: half of 0.3201..0.3229 over 0.3215 is 0.4 %; 15 % a generation and one."""
    here = published_rate("qmm", "affine", Gpu(generation=16, size="s", cores=20), draws=400)
    assert here.stderr / here.value == pytest.approx(math.hypot(0.0044, 0.15), rel=0.01)
    # An M6 takes what is nearest, M4: two generations away.
    far = published_rate("qmm", "affine", Gpu(generation=18, size="s", cores=20), draws=400)
    assert far.stderr / far.value == pytest.approx(0.45, rel=0.01)
    assert float(np.std(far.draws)) == pytest.approx(far.stderr, rel=0.2)
    assert here.origin is Origin.PUBLISHED


def test_a_rate_nobody_measured_is_a_prior() -> None:
    gpu = Gpu(generation=15, size="g", cores=10)
    assert published_rate("gemv_wide", "float", gpu, draws=2).origin is Origin.PRIOR


def test_two_calls_draw_alike() -> None:
    gpu = Gpu(generation=15, size="g", cores=10)
    one, two = (published_rate("qmv", "affine", gpu, draws=50) for _ in range(2))
    np.testing.assert_array_equal(one.draws, two.draws)


def test_no_published_rate_is_one_line() -> None:
    gpu = Gpu(generation=15, size="g", cores=10)
    with pytest.raises(InputError, match="kernel cublas for float formats: has no published rate"):
        published_rate("cublas", "float", gpu, draws=2)
