"""The shipped H200 profile: what it says of kernels, and that its own samples give it again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibrate.fit.calibration import refit_profile, stored_sample
from calibrate.fit.residuals import residuals
from model.machine.profile import Profile
from model.machine.profile_store import named_profile
from model.machine.row_law import Product, Shape

README = Path(__file__).parents[2] / "README.md"


PROFILES = WITH_CUDNN, NO_CUDNN = "h200-mlx-0.32.4", "h200-mlx-0.32.4-no-cudnn"


@pytest.fixture(scope="module")
def profile() -> Profile:
    return named_profile(WITH_CUDNN)


def test_checking_eight_rows_is_cheaper_than_checking_seven(profile: Profile) -> None:
    """MLX's CUDA back end walks quantized weights once per row below 8 rows, then in tiles."""
    law = profile.machine.laws["4bit", Shape.WIDE]
    product = Product(read_bytes=4096 * 28672 * 4.5 / 8, depth=4096, columns=28672)
    one, seven, eight = (float(law.time(product, rows).total_s) for rows in (1, 7, 8))
    assert seven / one == pytest.approx(7, rel=0.1)
    assert eight / one < 2.5
    assert seven / eight > 3.0


@pytest.mark.parametrize(
    ("shape", "depth", "columns"), [(Shape.WIDE, 4096, 28672), (Shape.TALL, 14336, 4096)]
)
def test_the_readme_prices_a_matrix_as_the_profile_does(
    profile: Profile, shape: Shape, depth: int, columns: int
) -> None:
    law = profile.machine.laws["4bit", shape]
    product = Product(read_bytes=depth * columns * 4.5 / 8, depth=depth, columns=columns)
    times = [float(law.time(product, rows).total_s) for rows in (1, 2, 5, 7, 8, 16, 17)]
    row = " | ".join(f"{1e6 * seconds:.0f}" for seconds in times)
    assert f"| {depth} x {columns} | {row} |" in README.read_text(encoding="utf-8")


def test_a_sixteenth_sequence_costs_less_than_reading_the_weights_again() -> None:
    """How much less is told by one machine; by the other it is nothing, give or take a quarter."""
    told, untold = (named_profile(each).constants["apart_reread"] for each in PROFILES)
    assert 0.6 < told.value < 0.7
    assert told.value > 3 * told.stderr
    assert untold.value < untold.stderr


def test_a_pass_is_walked_before_it_is_submitted() -> None:
    """Only passes of many layers tell; those of few are one commit."""
    walked = named_profile(NO_CUDNN).constants["walk_share"]
    assert 0.1 < walked.value < 0.3
    assert "walk_share" not in named_profile(WITH_CUDNN).constants


@pytest.mark.parametrize(
    ("name", "mode", "count", "median", "p90"),
    [
        (WITH_CUDNN, "queued", 84, 0.04, 0.13),
        (NO_CUDNN, "queued", 100, 0.03, 0.09),
        (NO_CUDNN, "submit", 23, 0.03, 0.1),
        (NO_CUDNN, "awaited", 24, 0.04, 0.13),
    ],
)
def test_samples_are_met_by_what_was_fitted_to_them(
    name: str, mode: str, count: int, median: float, p90: float
) -> None:
    """Layers without the host, the host with next to nothing for the device, and both."""
    profile = named_profile(name)
    samples = [stored_sample(each, "a sample") for each in profile.samples]
    chosen = [each for each in samples if dict(each.settings).get("mode") == mode]
    errors = [abs(each.error) for each in residuals(profile, chosen)]
    assert len(errors) == len(chosen) == count
    assert np.median(errors) < median
    assert np.quantile(errors, 0.9) < p90


@pytest.mark.parametrize(
    ("contexts", "count", "median", "p90"), [(8, 84, 0.08, 0.17), (1, 60, 0.08, 0.15)]
)
def test_attention_without_one_kernel_is_met_where_there_is_much_to_attend_to(
    contexts: int, count: int, median: float, p90: float
) -> None:
    """Errors of the whole time, of which floor and traffic are a part."""
    profile = named_profile(NO_CUDNN)
    samples = [stored_sample(each, "a sample") for each in profile.samples]
    errors = [
        abs(each.predicted_s - each.measured_s) / (each.apart_s + each.measured_s)
        for each in residuals(profile, samples)
        if f"contexts={contexts}" in each.settings.split() and "context=128 " not in each.settings
    ]
    assert len(errors) == count
    assert np.median(errors) < median
    assert np.quantile(errors, 0.9) < p90


@pytest.mark.parametrize("name", [WITH_CUDNN, NO_CUDNN])
def test_the_profile_is_what_the_fit_makes_of_its_own_samples(name: str) -> None:
    profile = named_profile(name)
    again = refit_profile(profile)
    assert again.header.laws == profile.header.laws
    for name, constant in profile.constants.items():
        error = 3 * constant.stderr / max(constant.value, 1e-30)
        assert again.constants[name].value == pytest.approx(constant.value, rel=max(error, 1e-6))
