"""A machine profile from published runs: of a chip that has some, or by its data sheet alone.

Every chip is fitted together with all others (:mod:`.joint_fit`), so that the same call serves
both: a chip with few runs leans on its kind, one without any is its kind with the scatter among
chips as its error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from zlib import crc32

import numpy as np

from calibrate.fit.published.joint_fit import JointFit, data_sheet, joint_fit, rates
from calibrate.fit.published.laws import (
    FEWEST_BITS,
    attention_form,
    attention_rates,
    later_regimes,
    law_forms,
    stated_constants,
)
from calibrate.fit.published.timings import LLAMA_CPP, Timing, kernels_of, timings
from calibrate.fit.published.work import LAYER_TERMS, TERMS
from calibrate.published.chips import Chip, chip_of
from calibrate.published.evidence import shipped_runs
from calibrate.published.run_row import PublishedRun
from calibrate.published.runtimes import split_family
from model.errors import InputError
from model.machine.constant import Constant, Origin
from model.machine.kernels.releases import named_release, runtime_name
from model.machine.kernels.runtime_change import as_runtime
from model.machine.profile import Header, Profile
from model.machine.profile_file import with_common_draws
from model.machine.working_set import working_set_share
from model.prediction.prediction import Z_90
from model.units import Array

NEWEST_MLX = "mlx-0.32"
DRAWS = 48
EVIDENCE_UNTIL = "2026-11-29T00:00:00Z"
CONTEXT_MEASURED = 8192
READS_EXPERTS_ONCE = ("llama.cpp-cuda",)
"""Runtimes whose rows share what they read of an expert, at any number of rows."""
SEVERAL_ROWS_LOG = 0.1
"""What rounds of several rows stray on top of plain passes, as studies of them say that were no
part of any fit (:mod:`calibrate.validation.several_rows`; the tests estimate it anew)."""
POOLED_RUNS = 20
"""Runs of a chip that count as much as those of all chips for how far its predictions stray."""


def fit_published(rows: Iterable[PublishedRun], chip: Chip, runtime: str) -> Profile:
    """The profile of a chip under `mlx-0.31`, `mlx-0.32` (or a release of theirs) or `llama.cpp`.

    With `-cuda` behind it: on that back end.

    `rows` are all that may be learned from, those of other chips included; without one of its own
    a chip is known by its data sheet.

    Raises:
        InputError: a chip whose cores are not known, or a runtime that is not.
    """
    name, back_end = split_family(runtime)
    stated_as = runtime if name == LLAMA_CPP or back_end != "metal" else NEWEST_MLX
    profile = stated_profile(rows, chip, stated_as)
    complete = replace(profile, constants=with_common_draws(profile.constants))
    if stated_as == runtime:
        return complete
    changed = as_runtime(complete, runtime_name(named_release(runtime)))
    return replace(changed, header=replace(changed.header, name=profile_name(chip, runtime)))


def scaled_profile(chip: Chip, runtime: str, rows: Iterable[PublishedRun] | None = None) -> Profile:
    """The profile of a chip by its data sheet: what other chips' runs say of its kind.

    `rows` are the shipped runs if left out; the chip's own are not looked at.

    Raises:
        InputError: as for `fit_published`.
    """
    given = shipped_runs() if rows is None else rows
    return fit_published([row for row in given if not is_of(row, chip)], chip, runtime)


def is_of(row: PublishedRun, chip: Chip) -> bool:
    """Whether a run is of this chip with this many cores."""
    found = chip_of(row)
    return isinstance(found, Chip) and found.label == chip.label


def stated_profile(rows: Iterable[PublishedRun], chip: Chip, runtime: str) -> Profile:
    """The profile as it is shipped: only fitted constants have draws.

    Raises:
        InputError: a chip whose cores or memory are not known, or that has no such back end.
    """
    gpu, cores, (name, back_end) = chip.gpu, chip.cores, split_family(runtime)
    if cores is None or not chip.memory_options or (gpu is None) == (back_end == "metal"):
        wrong = f"is not known well enough under {runtime}"
        raise InputError(f"chip {chip.name}", wrong, "name an Apple chip, or calibrate")
    fit = _fit(timings(rows, kernels_of(runtime)), kernels_of(runtime))
    own = [each for each in fit.timings if each.chip.label == chip.label]
    memory_bytes = max(chip.memory_options)
    working_set = round(working_set_share(memory_bytes).share * memory_bytes) if gpu else None
    header = Header(
        name=profile_name(chip, runtime),
        chip=f"Apple {chip.name}, {cores}-core GPU" if gpu else f"{chip.name}, {cores} SMs",
        device=back_end,
        runtime=name,
        created=EVIDENCE_UNTIL,
        memory_bytes=memory_bytes,
        recommended_working_set_bytes=working_set,
        activation_bytes=2,
        context_measured=int(max([CONTEXT_MEASURED, *(each.context for each in own)])),
        residual_log=round(residual_log(fit, chip), 4),
        several_rows_residual_log=SEVERAL_ROWS_LOG,
        laws=law_forms(runtime, chip),
        attention=attention_form(runtime),
        gpu=gpu,
    )
    return Profile(
        header=header,
        constants=_constants(fit, chip, runtime),
        environment={
            "evidence": "published runs, each fitted together with those of all other chips",
            "memory": "the largest this chip is sold with; --memory asks for another",
            "not measured": "host and small kernels are priors; rates of several rows are others'",
        },
        samples=tuple({"id": each.run_id} for each in own),
    )


@lru_cache(maxsize=64)
def _fit(learned: tuple[Timing, ...], kernels: str) -> JointFit:
    return joint_fit(learned, kernels)


def profile_name(chip: Chip, runtime: str) -> str:
    """The name of a profile, such as m4-max-40core-mlx-0.32."""
    cores = "" if chip.gpu is None else f"{chip.gpu.cores}core-"
    return f"{chip.file_name}-{cores}{runtime}"


def residual_log(fit: JointFit, chip: Chip) -> float:
    """How far a prediction strays from a run of a model that the fit has not seen, in logs.

    The error that nine of ten runs keep, as the standard deviation of a normal law; of the chip
    itself as far as it has runs. A chip without any takes the error of chips that were left out,
    less what the scatter among chips, which its constants carry, explains of it.
    """
    of_model = [f"{each.chip.label} {each.target.architecture.name}" for each in fit.timings]
    own = [each.chip.label == chip.label for each in fit.timings]
    errors = fit.left_out(of_model)
    pooled, runs = normal_width(errors), sum(own)
    if not runs:
        of_chip = normal_width(fit.left_out([each.chip.label for each in fit.timings]))
        explained = float(np.median(fit.chip_scatter()))
        return math.sqrt(max(pooled**2, of_chip**2 - explained))
    squares = POOLED_RUNS * pooled**2 + runs * normal_width(errors[own]) ** 2
    return math.sqrt(squares / (POOLED_RUNS + runs))


def normal_width(errors: Array) -> float:
    """The standard deviation of a normal law of which nine in ten are as small as of these."""
    return float(np.quantile(np.abs(errors), 0.9)) / Z_90


def _constants(fit: JointFit, chip: Chip, runtime: str) -> dict[str, Constant]:
    """Everything a profile prices with, by name; fitted ones with draws of one posterior."""
    logs, covariance = fit.constants(chip)
    generator = np.random.default_rng(crc32(profile_name(chip, runtime).encode()))
    drawn = generator.multivariate_normal(logs, covariance, size=DRAWS, method="eigh")
    bandwidth, cores = (np.array(each) for each in data_sheet(chip))
    values = rates(logs, bandwidth, cores, kernels=fit.kernels)
    draws = rates(drawn, bandwidth, cores, kernels=fit.kernels)
    fitted = chip.label in fit.labels
    origin = Origin.PUBLISHED if fitted else Origin.SPEC_SHEET

    def constant(term: str, unit: str) -> Constant:
        index = TERMS.index(term)
        value, sample = values[index], draws[:, index]
        if unit != "s":
            value, sample = 1.0 / value, 1.0 / sample
        return _constant(float(value), sample, unit, origin)

    found = {term: constant(term, "s") for term in LAYER_TERMS}
    for law in law_forms(runtime, chip):
        rate = constant(law.format, "B/s")
        prefixes = [f"{law.name}.{regime.first_row}." for regime in law.regimes]
        found |= {prefix + "bandwidth_bytes_per_s": rate for prefix in prefixes}
        if runtime not in READS_EXPERTS_ONCE:
            found[prefixes[0] + "flops_per_s"] = pair_rate(rate, FEWEST_BITS[law.format])
        found |= {
            f"{law.name}.{form.first_row}.flops_per_s": flops
            for form, flops in later_regimes(law.format, runtime, chip)
        }
    cache = constant("cache", "B/s")
    for regime in attention_form(runtime).regimes:
        found[f"attention.{regime.first_row}.bandwidth_bytes_per_s"] = cache
    if values[TERMS.index("attention")] > 0.0:
        found["attention.1.flops_per_s"] = constant("attention", "FLOP/s")
    return found | attention_rates(runtime, int(cores)) | stated_constants(runtime)


def pair_rate(bandwidth: Constant, bits: float) -> Constant:
    """The arithmetic rate of one row at which weights of so many bits take as long as bytes."""
    flops_per_byte = 2.0 * 8.0 / bits
    return _constant(
        flops_per_byte * bandwidth.value,
        flops_per_byte * bandwidth.draws,
        "FLOP/s",
        bandwidth.origin,
    )


def _constant(value: float, sample: Array, unit: str, origin: Origin) -> Constant:
    spread = float(np.std(np.log(sample)))
    return Constant(
        value=float(f"{value:.6g}"),
        stderr=float(f"{spread * value:.3g}"),
        unit=unit,
        origin=origin,
        draws=np.array([float(f"{draw:.5g}") for draw in sample]),
    )
