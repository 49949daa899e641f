"""The shipped H200 profile against real runs of a model that its fit has not seen.

Measured 2026-11-29 with MLX 0.32.4 and mlx-lm 0.32.2 on one NVIDIA H200. The overheads of the
profile were fitted to probes and to the runs of Qwen3-1.7B (drafted by Qwen3-0.6B); the runs of
Llama-3.1-8B (drafted by Llama-3.2-1B, and by itself) are scored here. Thresholds are what was
reached, rounded up.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from calibrate.commands.validation_output import percent
from calibrate.comparison import SPEEDUP, THROUGHPUT, Comparison, compare_runs, summarise
from calibrate.fit.calibration import refit_profile
from calibrate.run_record import Run, read_runs
from model.machine.profile import Profile
from model.machine.profile_store import named_profile
from model.machine.row_law import Product, Shape
from model.units import Array

README = Path(__file__).parents[2] / "README.md"
HELD_OUT = "llama-3.1-8b"
FITTED = "qwen3-1.7b"


@pytest.fixture(scope="module")
def profile() -> Profile:
    return named_profile("h200-mlx-0.32.4")


@pytest.fixture(scope="module")
def runs() -> tuple[Run, ...]:
    return read_runs(Path(str(files("calibrate") / "data/runs/h200-mlx-0.32.4.jsonl")))


def scored(profile: Profile, runs: list[Run], quantity: str) -> list[Comparison]:
    return [each for each in compare_runs(runs, profile) if each.quantity == quantity]


def errors(comparisons: list[Comparison]) -> Array:
    """Signed relative errors."""
    return np.array([each.error for each in comparisons if each.error is not None])


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


def test_the_held_out_model_is_predicted(profile: Profile, runs: tuple[Run, ...]) -> None:
    held_out = [run for run in runs if run.target == HELD_OUT and run.draft != run.target]
    comparisons = scored(profile, held_out, THROUGHPUT)
    assert len(comparisons) == 19
    assert all(each.refused is None for each in comparisons)
    assert np.median(np.abs(errors(comparisons))) < 0.06


def test_with_its_own_draft_the_first_run_is_right_and_the_rest_reuse_plans(
    profile: Profile, runs: tuple[Run, ...]
) -> None:
    """One process ran k = 1 first; later runs met draft shapes that cuDNN had planned already."""
    own = [run for run in runs if run.target == HELD_OUT == run.draft]
    first = scored(profile, [run for run in own if run.draft_length == 1], THROUGHPUT)
    later = scored(profile, [run for run in own if run.draft_length > 1], THROUGHPUT)
    assert np.max(np.abs(errors(first))) < 0.06
    assert np.median(errors(later)) < 0.0
    assert np.median(np.abs(errors(later))) < 0.25


def test_every_win_and_loss_of_the_held_out_model_is_told_right(
    profile: Profile, runs: tuple[Run, ...]
) -> None:
    held_out = [run for run in runs if run.target == HELD_OUT]
    comparisons = scored(profile, held_out, SPEEDUP)
    signs = [each.sign_right for each in comparisons if each.sign_right is not None]
    assert len(signs) == len(comparisons) == 24
    assert all(signs)


@pytest.mark.parametrize(
    ("group", "row"),
    [
        ("tokens_per_s, llama-3.1-8b", "k = 1, 2, 4, 7, 8 | {n} | {median} | {p90} | 24 of 24 |"),
        ("tokens_per_s, llama-3.1-8b, plain", "plain | {n} | {median} | {p90} | |"),
        (
            "tokens_per_s, llama-3.1-8b, speculative",
            "Llama-3.2-1B shape | {n} | {median} | {p90} | 14 of 14 |",
        ),
        (
            "tokens_per_s, llama-3.1-8b, speculative, own draft",
            "its own draft | {n} | {median} | {p90} | 10 of 10 |",
        ),
        ("speedup, llama-3.1-8b", "the same runs | {n} | {median} | {p90} | 24 of 24 |"),
        ("tokens_per_s", "All 65 runs together: median {median}, p90 {p90}."),
    ],
)
def test_the_readme_says_what_validate_prints(
    profile: Profile, runs: tuple[Run, ...], group: str, row: str
) -> None:
    found = {each.group: each for each in summarise(compare_runs(runs, profile))}[group]
    said = row.format(n=found.n, median=percent(found.median_error), p90=percent(found.p90_error))
    assert said in README.read_text(encoding="utf-8")


def test_the_profile_is_what_the_fit_makes_of_its_own_samples(
    profile: Profile, runs: tuple[Run, ...]
) -> None:
    fitted = [run for run in runs if run.target == FITTED and run.draft != run.target]
    again = refit_profile(profile, fitted)
    assert again.header.laws == profile.header.laws
    for name, constant in profile.constants.items():
        error = 3 * constant.stderr / max(constant.value, 1e-30)
        assert again.constants[name].value == pytest.approx(constant.value, rel=max(error, 1e-6))
