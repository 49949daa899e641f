"""Profiles from published runs: what is learned from, and that the fit finds what was there."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from calibrate.fit.published.chip_effects import EFFECTS, design, prior_values, prior_widths
from calibrate.fit.published.joint_fit import JointFit, data_sheet, joint_fit, pass_seconds, rates
from calibrate.fit.published.profiles import fit_published, profile_name, scaled_profile
from calibrate.fit.published.timings import Timing, is_unusual, timings
from calibrate.fit.published.work import FORMATS, TERMS, work_of
from calibrate.published.chips import Chip, chip_bins
from calibrate.published.evidence import shipped_runs
from calibrate.published.run_row import PublishedRun
from model.errors import InputError
from model.machine.constant import Origin
from model.network.target import load_target
from model.units import GIB, Array

MODELS = (
    *(("qwen3-0.6b", "4bit"), ("llama-3.2-3b", "4bit"), ("llama-3.1-8b", "4bit")),
    *(("llama-3.1-8b", "8bit"), ("qwen2.5-14b", "4bit"), ("llama-3.1-8b", "bf16")),
    *(("qwen3-30b-a3b", "4bit"), ("gemma-3-4b", "4bit"), ("qwen3.5-9b", "4bit")),
)
TRUTH = {"bandwidth_share": 0.8, "layer_s": 9e-5, "experts_layer_s": 2e-4, "unpack_core_s": 4e-11}


def chip(name: str, cores: int) -> Chip:
    bins = chip_bins()[name.lower()]
    return next(each for each in bins if each.gpu is not None and each.gpu.cores == cores)


(GB10,) = chip_bins()["dgx spark (gb10)"]
M4_MAX, M3_ULTRA, M2 = chip("M4 Max", 40), chip("M3 Ultra", 60), chip("M2", 10)


def constants(**values: float) -> Array:
    typical = dict(zip(EFFECTS, np.exp(prior_values()), strict=True))
    return np.log(np.array(list((typical | values).values())))


def made_up(chips: tuple[Chip, ...], logs: Array, *, contexts: tuple[float, ...]) -> list[Timing]:
    """What machines with these constants would have taken, without noise."""
    made: list[Timing] = []
    for each in chips:
        bandwidth, cores = (np.array(number) for number in data_sheet(each))
        per_unit = rates(logs, bandwidth, cores, kernels="mlx")
        for name, stored_as in MODELS:
            target = load_target(name, stored_as)
            made += [
                Timing(
                    run_id=f"{each.label} {name} {stored_as} {context:.0f}",
                    chip=each,
                    engine="mlx-lm",
                    target=target,
                    context=context,
                    seconds=float(work_of(target, context) @ per_unit),
                )
                for context in contexts
            ]
    return made


def worst_error(fit: JointFit, made: list[Timing]) -> float:
    return max(abs(math.log(each.seconds / fit.seconds(each))) for each in made)


def row(**cells: object) -> PublishedRun:
    """A shipped plain run of Llama-3.1-8B on an M4 Max, or anything else, with other cells."""
    base = next(
        each
        for each in shipped_runs()
        if each.chip == "M4 Max" and each.target.startswith("Qwen3-4B") and each.quant == "4bit"
    )
    return replace(base, **cells)  # type: ignore[arg-type]


def test_work_counts_bytes_by_format_and_layers_by_kind() -> None:
    target = load_target("qwen3-30b-a3b", "4bit")
    work = dict(zip(TERMS, work_of(target, 0.0), strict=True))
    matrices = sum(work[name] for name in FORMATS)
    # All that a token reads but the norms, which are in no matrix.
    norms = 48 * (2 * 2048 + 2 * 128) * 2 + 2048 * 2
    assert matrices == pytest.approx(target.weight_bytes_per_token - norms, rel=1e-9)
    assert work["8bit"] == 48 * 128 * 2048 * 8.5 / 8  # routers are protected
    assert (work["layer_s"], work["experts_layer_s"], work["pass_s"]) == (48, 48, 1)
    assert work["cache"] == 0.0


def test_a_cache_is_read_once_and_copied_once_in_256_tokens() -> None:
    target = load_target("llama-3.1-8b", "4bit")
    cache = work_of(target, 1024.0)[TERMS.index("cache")]
    # 32 layers x 8 heads x 128 x 2 (keys and values) x 2 bytes = 131,072 bytes a token
    assert cache == pytest.approx(1024 * 131_072 * (1 + 2 / 256))


def test_reading_and_unpacking_overlap_with_exponent_two() -> None:
    logs = constants(bandwidth_share=0.5, unpack_core_s=4.5e-9 / 8)
    # A byte in 1 / (0.5 * 2e9) = 1 ns; 8 / 4.5 weights of a byte in 4.5 / 8 ns each at one core.
    per_unit = rates(logs, np.array(2e9), np.array(1.0), kernels="mlx")
    found = dict(zip(TERMS, per_unit, strict=True))
    assert found["4bit"] == pytest.approx(math.sqrt(2) * 1e-9)
    assert found["float"] == pytest.approx(1e-9)


def test_the_fit_finds_the_constants_that_made_the_times() -> None:
    logs = constants(**TRUTH)
    made = made_up((M4_MAX, M3_ULTRA, M2), logs, contexts=(0.0, 8192.0))
    fit = joint_fit(tuple(made), "mlx")
    assert worst_error(fit, made) < 0.02
    found, covariance = fit.constants(M4_MAX)
    for index, name in enumerate(EFFECTS):
        if name in ("bandwidth_share", "layer_s", "experts_layer_s"):
            assert abs(found[index] - logs[index]) < 3.0 * math.sqrt(covariance[index, index])


def test_a_chip_without_runs_is_told_from_its_kind_with_a_wider_error() -> None:
    logs = constants(**TRUTH)
    made = made_up((M4_MAX, M3_ULTRA, M2), logs, contexts=(0.0,))
    fit = joint_fit(tuple(each for each in made if each.chip != M4_MAX), "mlx")
    unseen = [each for each in made if each.chip == M4_MAX]
    # These constants are far from the priors; two other chips already tell most of that.
    assert worst_error(fit, unseen) < 0.5 * worst_error(joint_fit((), "mlx"), unseen)
    _, apart = fit.constants(M4_MAX)
    _, seen = joint_fit(tuple(made), "mlx").constants(M4_MAX)
    of_llama_cpp = ("mixed_unpacking", "attention_core_s")
    told = [index for index, name in enumerate(EFFECTS) if name not in of_llama_cpp]
    assert np.all(np.diag(apart)[told] > np.diag(seen)[told])


def test_a_run_that_was_disturbed_moves_little() -> None:
    made = made_up((M4_MAX, M3_ULTRA), constants(**TRUTH), contexts=(0.0,))
    slow = replace(made[2], seconds=2.0 * made[2].seconds)
    fit = joint_fit((*made[:2], slow, *made[3:]), "mlx")
    assert worst_error(fit, made) < 0.03


def test_errors_of_a_model_left_out_are_those_of_a_fit_without_it() -> None:
    generator = np.random.default_rng(7)
    made = [
        replace(each, seconds=each.seconds * math.exp(0.03 * generator.standard_normal()))
        for each in made_up((M4_MAX, M3_ULTRA), constants(**TRUTH), contexts=(0.0, 4096.0))
    ]
    names = [each.target.architecture.name for each in made]
    left_out = joint_fit(tuple(made), "mlx").left_out(names)
    without = joint_fit(
        tuple(t for t, n in zip(made, names, strict=True) if n != MODELS[4][0]), "mlx"
    )
    for timing, name, error in zip(made, names, left_out, strict=True):
        if name == MODELS[4][0]:
            assert error == pytest.approx(
                math.log(timing.seconds / without.seconds(timing)), abs=0.01
            )


def test_chips_deviate_from_their_kind_only_where_they_have_runs() -> None:
    fitted, unfitted = design(M4_MAX, 0, 2), design(M4_MAX, None, 2)
    first = len(prior_widths(0))
    assert np.array_equal(fitted[:, :first], unfitted[:, :first])
    assert np.array_equal(fitted[:, first : first + len(EFFECTS)], np.eye(len(EFFECTS)))
    assert not unfitted[:, first:].any()


@pytest.mark.parametrize(
    "cells",
    [
        {"trust": "low"},
        {"decode_tokens_per_s": None},
        {"batch": 4},
        {"notes": "THERMALLY THROTTLED after the first runs"},
        {"locator": "cycle 1 hot_2k_tps"},
        {"notes": "overhead/fp32 path"},
        {"memory_bytes": 2 * GIB},  # 2.3 GB of weights
        {"target": "a model nobody knows"},
        {"quant": "own mix"},
        {"chip": "RTX 4090", "gpu_cores": None},
        {"runtime": "own engine"},
        {"strategy": "speculative", "baseline_tokens_per_s": None},
        {"strategy": "speculative", "baseline_tokens_per_s": 50.0, "trust": "medium"},
    ],
)
def test_what_is_not_learned_from(cells: dict[str, object]) -> None:
    assert len(timings([row()], "mlx")) == 1
    assert timings([row(**cells)], "mlx") == ()


def test_a_baseline_of_high_trust_is_learned_from_as_a_plain_run() -> None:
    baseline = row(strategy="speculative", baseline_tokens_per_s=50.0, trust="high")
    (timing,) = timings([baseline, replace(baseline, id="again")], "mlx")
    assert timing.seconds == 0.02
    assert timings([baseline], "llama.cpp") == ()


def test_a_machine_that_recovered_is_cold_again() -> None:
    assert is_unusual(row(locator="cycle 1 hot_2k_tps"))
    assert not is_unusual(row(locator="cycle recovered hot_2k_tps"))


def test_a_profile_names_the_rows_it_was_fitted_on() -> None:
    rows = [each for each in shipped_runs() if each.chip in ("M4 Max", "M4 Pro")]
    fitted = fit_published(rows, M4_MAX, "mlx-0.32")
    learned = timings(rows, "mlx")
    own = {each.run_id for each in learned if each.chip.label == M4_MAX.label}
    assert {sample["id"] for sample in fitted.samples} == own
    assert fitted.header.name == profile_name(M4_MAX, "mlx-0.32") == "m4-max-40core-mlx-0.32"
    assert fitted.constants["layer_s"].origin == Origin.PUBLISHED
    scaled = scaled_profile(M4_MAX, "mlx-0.32", rows)
    assert scaled.samples == ()
    assert scaled.constants["layer_s"].origin == Origin.SPEC_SHEET
    name = "4bit.wide.1.bandwidth_bytes_per_s"
    assert scaled.constants[name].stderr > fitted.constants[name].stderr


def test_older_releases_of_mlx_keep_one_row_and_change_more() -> None:
    rows = [each for each in shipped_runs() if each.chip == "M4 Max"]
    new = fit_published(rows, M4_MAX, "mlx-0.32").machine
    old = fit_published(rows, M4_MAX, "mlx-0.31").machine
    target = load_target("llama-3.1-8b", "4bit")
    laws = [machine.law(target.weight_format, depth=4096, columns=28672) for machine in (old, new)]
    assert laws[0].regimes[0] == laws[1].regimes[0]
    assert [law.regime_at(4).tile_rows for law in laws] == [1.0, 5.0]


@pytest.mark.parametrize(
    ("unknown", "runtime"),
    [
        (replace(M2, gpu=None), "mlx-0.32"),
        (M2, "llama.cpp-cuda"),
        (replace(GB10, cores=None), "llama.cpp-cuda"),
    ],
)
def test_a_chip_without_cores_or_that_back_end_is_refused(unknown: Chip, runtime: str) -> None:
    with pytest.raises(InputError, match=f"is not known well enough under {runtime}"):
        fit_published([], unknown, runtime)


def test_reading_a_cache_and_attending_to_it_head_by_head_overlap() -> None:
    """A byte in 1 ns, an operation in 3e-11 s of a core; the longer nearly hides the shorter."""
    logs = constants(bandwidth_share=0.5, cache_slowdown=1.0, attention_core_s=3e-11)
    work = np.zeros(len(TERMS))
    work[TERMS.index("cache")], work[TERMS.index("attention")] = 100.0, 1e4
    of_llama_cpp, of_mlx = (
        float(pass_seconds(work, rates(logs, np.array(2e9), np.array(1.0), kernels=kernels)))
        for kernels in ("llama.cpp", "mlx")
    )
    assert of_mlx == pytest.approx(100e-9)
    assert of_llama_cpp == pytest.approx(300e-9 * (1 + (1 / 3) ** 4) ** 0.25)


def test_a_gb10_is_fitted_by_itself_and_priced_with_the_tables_of_cuda() -> None:
    profile = fit_published(shipped_runs(), GB10, "mlx-0.32-cuda")
    header = profile.header
    assert header.name == "dgx-spark-gb10-mlx-0.32-cuda"
    assert (header.device, header.runtime, header.gpu) == ("cuda", "mlx-0.32", None)
    assert profile.machine.dispatch is not None
    assert header.recommended_working_set_bytes is None
    # Per-row kernels below 8 rows, tiles from there on.
    (law,) = (law for law in header.laws if law.format == "4bit")
    assert [regime.first_row for regime in law.regimes] == [1, 2, 8, 17, 33]
