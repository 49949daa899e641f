"""The shipped profiles of published runs: what the shipped runs make of them, and how far they err.

Runs are plain decoding of one sequence that others measured. Held out are whole models within a
chip (by the linearised fit, which the unit tests compare with fits that leave models out) and
whole chips (by fits without them). Thresholds are what was reached on 2026-11-29, rounded up. What
remains has names:

* M1 Ultra: checkpoints whose scales are in 16-bit floats of the newer kind (Qwen3, Gemma, OLMo 3,
  gpt-oss) are up to 30 % slower than the model says and older ones up to 20 % faster. M1 has no
  such floats in hardware; a target does not say which it holds.
* M5, 10 cores: of one study 13 models beyond 7B ran 25 to 65 % slower than its own smaller ones
  allow (:mod:`calibrate.audit.scaling`); they are not learned from.
* llama.cpp's K types: their speed of unpacking differs twofold between the chips (and the years
  of the builds) that were published, more than cores and generation explain.
* Batches: llama.cpp of the M2 Ultra and the GB10. Rates of rows were read off three of the six
  networks (:mod:`calibrate.fit.published.llama_cpp`); the other three are scored apart.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibrate.fit.published.build import CUDA_RUNTIMES, RUNTIMES, shipped_profiles
from calibrate.fit.published.held_out import (
    errors_of_chips,
    errors_of_models,
    held_out_rows,
    learned,
    relative,
)
from calibrate.fit.published.llama_cpp import BATCHED_ON
from calibrate.fit.published.profiles import profile_name, stated_profile
from calibrate.fit.published.timings import LLAMA_CPP
from calibrate.published.chips import Chip
from calibrate.published.evidence import shipped_runs
from calibrate.published.names import target_of
from model.catalog import packaged_profile_names, packaged_profile_text
from model.cost.forward import forward_pass
from model.machine.profile_store import named_profile
from model.network.checkpoint import Checkpoint
from model.network.target import load_target
from model.strategies.plain import Plain

NAMES = list(shipped_profiles())
BATCHED = {
    "m2-ultra-76core-llama.cpp": ("M2 Ultra", "llama.cpp (Metal)"),
    "dgx-spark-gb10-llama.cpp-cuda": ("DGX Spark (GB10)", "llama.cpp (CUDA)"),
}


@pytest.mark.parametrize(
    ("runtime", "count", "median", "p90"),
    [
        ("mlx-0.32", 416, 0.053, 0.153),
        (LLAMA_CPP, 244, 0.045, 0.152),
        ("mlx-0.32-cuda", 17, 0.05, 0.21),
        ("llama.cpp-cuda", 49, 0.04, 0.09),
    ],
)
def test_models_that_a_chip_was_not_fitted_on(
    runtime: str, count: int, median: float, p90: float
) -> None:
    errors = relative(errors_of_models(runtime))
    assert len(errors) == count
    assert np.median(errors) < median
    assert np.quantile(errors, 0.9) < p90


def test_mlx_without_m1_whose_newer_floats_are_emulated() -> None:
    kept = [not each.chip.label.startswith("M1") for each in learned("mlx-0.32")]
    errors = relative(errors_of_models("mlx-0.32")[kept])
    assert np.median(errors) < 0.046
    assert np.quantile(errors, 0.9) < 0.13


@pytest.mark.parametrize("profile", list(BATCHED))
@pytest.mark.parametrize(
    ("learned_from", "median", "p90"), [(True, 0.06, 0.22), (False, 0.115, 0.305)]
)
def test_batches_of_llama_cpp(profile: str, learned_from: bool, median: float, p90: float) -> None:
    chip, runtime = BATCHED[profile]
    machine = named_profile(profile).machine
    errors: list[float] = []
    for row in shipped_runs():
        if row.strategy != "batch" or (row.chip, row.runtime) != (chip, runtime):
            continue
        target = target_of(row)
        assert isinstance(target, Checkpoint)
        if (target.architecture.name in BATCHED_ON) is learned_from:
            one = Plain(sequences=row.batch).round(target, machine, row.context_tokens or 0.0)
            measured = row.decode_tokens_per_s or 0.0
            errors.append(abs(row.batch / float(one.round_s) / measured - 1.0))
    assert len(errors) == 45
    assert np.median(errors) < median
    assert np.quantile(errors, 0.9) < p90


@pytest.mark.parametrize(
    ("runtime", "median", "p90"), [("mlx-0.32", 0.095, 0.23), (LLAMA_CPP, 0.12, 0.36)]
)
def test_chips_that_are_known_by_their_data_sheet(runtime: str, median: float, p90: float) -> None:
    errors = relative(np.array([error for error, _ in errors_of_chips(runtime)]))
    assert np.median(errors) < median
    assert np.quantile(errors, 0.9) < p90


@pytest.mark.parametrize("runtime", [*RUNTIMES, *CUDA_RUNTIMES])
def test_the_readme_says_what_make_profiles_prints(runtime: str) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    for name, count, median, p90 in held_out_rows(runtime):
        assert f"| {name} | {count} | {100 * median:.1f} % | {100 * p90:.1f} % |" in readme


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_nine_of_ten_runs_of_a_chip_left_out_are_in_the_interval(runtime: str) -> None:
    held = np.mean([inside for _, inside in errors_of_chips(runtime)])
    assert 0.85 <= held <= 0.96


@pytest.mark.parametrize(("chip", "runtime"), NAMES)
def test_every_chip_has_a_profile_of_modest_size(chip: Chip, runtime: str) -> None:
    name = profile_name(chip, runtime)
    assert name in packaged_profile_names()
    assert len(packaged_profile_text(name)) < 38_000
    profile = named_profile(name)
    fitted = {each.run_id for each in learned(runtime) if each.chip.label == chip.label}
    assert {sample["id"] for sample in profile.samples} == fitted


@pytest.mark.parametrize(
    ("chip", "runtime"),
    [each for each in NAMES if each[0].label in ("M4 Max 40-core", "M3 8-core")],
)
def test_the_shipped_file_is_what_the_fit_makes(chip: Chip, runtime: str) -> None:
    made, shipped = (
        stated_profile(shipped_runs(), chip, runtime),
        named_profile(profile_name(chip, runtime)),
    )
    assert made.header == shipped.header
    assert made.samples == shipped.samples
    for name, constant in made.constants.items():
        # Linear algebra differs in its last digits between processors.
        assert shipped.constants[name].value == pytest.approx(constant.value, rel=1e-3)
        assert shipped.constants[name].origin == constant.origin


def test_no_row_of_a_study_that_may_not_be_altered_is_used() -> None:
    assert not any("guruswami" in row.source for row in shipped_runs())


def test_what_a_mixture_costs_at_four_precisions_of_one_model() -> None:
    """mlx-lm BENCHMARKS.md, M4 Max, 2,048 tokens: 113.3, 101.0, 94.2 and 83.2 tok/s.

    From 4 to 8 bits the bytes that a token reads grow 1.9 times, its time 1.36 times: the rest is
    48 layers of experts whose small kernels cost the same at any precision.
    """
    machine = named_profile("m4-max-40core-mlx-0.32").machine
    for stored_as, rate in (("4bit", 113.33), ("5bit", 101.0), ("6bit", 94.16), ("8bit", 83.16)):
        target = load_target("qwen3-30b-a3b", stored_as)
        seconds = float(Plain().round(target, machine, 2048.0).round_s)
        assert 1.0 / seconds == pytest.approx(rate, rel=0.06)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_more_cores_lose_less_to_unpacking(runtime: str) -> None:
    """At 4 bits an Ultra reaches a smaller share of its bus than a base chip does."""
    shares: list[float] = []
    for name, bus in (("m2-10core", 102.4e9), ("m2-ultra-76core", 800e9)):
        constants = named_profile(f"{name}-{runtime}").constants
        rates = [
            constants[f"{key}.wide.1.bandwidth_bytes_per_s"].value for key in ("4bit", "float")
        ]
        assert rates[0] < rates[1] < bus
        shares.append(rates[0] / bus)
    assert shares[1] < shares[0]


def test_experts_are_paid_for_pair_by_pair() -> None:
    """vllm-mlx issue 763: a 30B-A3B checked at widths 1, 2, 3, 5, 8 in 8.5, 13.5, ... 28.1 ms.

    Its chip is not stated, so the shape is compared: 3.3 times for 8 rows. Dense models of this
    kernel read their weights once for up to 5 rows and twice for 8.
    """
    machine = named_profile("m4-max-40core-mlx-0.32").machine
    target = load_target("qwen3-30b-a3b", "4bit")
    seconds = [
        float(forward_pass(target, machine, rows=rows, context=512.0).device_s)
        for rows in (1, 2, 3, 5, 8)
    ]
    assert seconds[4] / seconds[0] == pytest.approx(28.13 / 8.47, rel=0.25)
