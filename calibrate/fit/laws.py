"""Row laws of a whole profile: each format and shape, and attention, with their constants."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final
from zlib import crc32

import numpy as np

from calibrate.fit.bootstrap import drawn
from calibrate.fit.fills import common_fills
from calibrate.fit.law_fit import fit_law, residuals_log
from calibrate.fit.observations import NOISE_FLOOR_LOG, Observations
from calibrate.samples import REFERENCE, Sample
from model.machine.constant import Constant, Origin
from model.machine.kernels.dispatch import Dispatch, Kernel, KernelUse
from model.machine.profile import LawForm, RegimeForm
from model.machine.row_law import RowLaw, Shape, shape_of
from model.network.weight_format import weight_format
from model.units import Array, Quantity

RATES = (("bandwidth_bytes_per_s", "byte/s"), ("flops_per_s", "FLOP/s"))
SMALLEST_SHARE = 0.2
"""Least share of a timing that is left to the product when the kernel's floor is taken off."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedLaw:
    """The form of a law and its constants by full name."""

    form: LawForm
    constants: dict[str, Constant]


def fit_laws(
    samples: Iterable[Sample], kernel_s: float, jitter_s: float, dispatch: Dispatch | None = None
) -> list[FittedLaw]:
    """The law of every format and class of shapes among the linear samples.

    `dispatch` knows from which rows the runtime's kernels serve, where its tables cover it.
    """
    groups: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.probe == "linear":
            shape = shape_of(depth=sample.number("depth"), columns=sample.number("columns"))
            groups[sample.text("format").removesuffix("-s32"), shape.value].append(sample)
    seen = {
        key: linear_observations(group, kernel_s, jitter_s).ordered()
        for key, group in groups.items()
    }
    known = {key: known_kernels(group, dispatch) for key, group in groups.items()}
    fills = {
        format_name: common_fills(
            {shape: each for (name, shape), each in seen.items() if name == format_name},
            {shape: each for (name, shape), each in known.items() if name == format_name},
        )
        for format_name in {name for name, _ in groups}
    }
    return [
        fitted(
            seen[format_name, shape],
            format_name,
            shape,
            {use.first_row: use.kernel for use in known[format_name, shape]},
            {} if shape == Shape.HEAD else fills[format_name],
        )
        for format_name, shape in groups
    ]


def known_kernels(samples: Iterable[Sample], dispatch: Dispatch | None) -> tuple[KernelUse, ...]:
    """The kernels that serve all of these matrices alike; none where they are not known to."""
    if dispatch is None:
        return ()
    found = {
        dispatch.kernels(
            weight_format(sample.text("format")).family,
            depth=sample.number("depth"),
            columns=sample.number("columns"),
        )
        for sample in samples
    }
    return found.pop() if len(found) == 1 else ()


def linear_observations(samples: list[Sample], kernel_s: float, jitter_s: float) -> Observations:
    """Products of one matrix each, net of the floor of their kernel."""

    def read_bytes(sample: Sample) -> int:
        stored_as = weight_format(sample.text("format"))
        return stored_as.matrix_bytes(sample.number("columns"), sample.number("depth"))

    return Observations(
        rows=np.array([sample.number("rows") for sample in samples], dtype=float),
        read_bytes=np.array([read_bytes(sample) for sample in samples], dtype=float),
        depth=np.array([sample.number("depth") for sample in samples], dtype=float),
        columns=np.array([sample.number("columns") for sample in samples], dtype=float),
        seconds=net_seconds(samples, kernel_s),
        sigma_log=sigmas_log(samples, jitter_s, kernel_s),
    )


def net_seconds(samples: list[Sample], kernel_s: Quantity) -> Array:
    """Times without the kernel's floor, of which a short product cannot be all."""
    gross = np.array([sample.seconds for sample in samples])
    return np.maximum(gross - kernel_s, SMALLEST_SHARE * gross)


def sigmas_log(samples: list[Sample], jitter_s: float, floor_s: Quantity = 0.0) -> Array:
    """Relative uncertainty of the timings, net of `floor_s`.

    Their spread over repeats, and the jitter of one kernel between visits: a busy host adds so
    many microseconds, which is much of a short kernel and nothing of a long one. What is taken off
    is taken off with its uncertainty: of a kernel that is all floor next to nothing is known.
    """
    gross = np.array([sample.seconds for sample in samples])
    spreads = np.array([sample.spread / math.sqrt(max(sample.repeats, 1)) for sample in samples])
    relative = np.sqrt(NOISE_FLOOR_LOG**2 + spreads**2 + (jitter_s / gross) ** 2)
    return relative * gross / net_seconds(samples, floor_s)


def reference_jitter_s(samples: Iterable[Sample]) -> float:
    """How much the reference kernel scatters from visit to visit: half its quartile range."""
    seconds = [sample.seconds for sample in samples if sample.probe == REFERENCE]
    if len(seconds) < 2:
        return 0.0
    low, high = np.quantile(seconds, [0.25, 0.75])
    return float(high - low) / 2.0


def fitted(
    observations: Observations,
    format_name: str,
    shape: str,
    known: Mapping[int, Kernel | None] | None = None,
    fills: Mapping[int, float] | None = None,
    depth_powers: Sequence[float] = (1.0,),
) -> FittedLaw:
    """Fit one law and draw its rates; the kernels that are known begin where they do.

    Of `depth_powers` the one is taken that leaves the least misfit; the draws of the rates keep it.
    """
    laws = [
        replace(
            fit_law(observations.shortened(power), known, fills),
            depth_power=power,
        )
        for power in depth_powers
    ]
    law = min(laws, key=lambda each: misfit(each, observations))
    form = LawForm(
        format=format_name,
        shape=shape,
        overlap=None if math.isinf(law.overlap) else law.overlap,
        rows_measured=law.rows_measured,
        least_columns=int(min(observations.columns)) if format_name else 0,
        depth_power=law.depth_power,
        regimes=tuple(
            RegimeForm(
                first_row=regime.first_row,
                tile_rows=None if math.isinf(regime.tile_rows) else regime.tile_rows,
                pads=regime.pads,
                reread=float(regime.reread),
                fill_columns=float(regime.fill_columns),
            )
            for regime in law.regimes
        ),
    )
    return FittedLaw(form=form, constants=draw_rates(form, law, observations))


def misfit(law: RowLaw, observations: Observations) -> float:
    """What a law leaves of timings, in units of their uncertainty, squared and summed."""
    left = residuals_log(law, observations) / observations.sigma_log
    return float(np.sum(left**2))


def draw_rates(form: LawForm, law: RowLaw, observations: Observations) -> dict[str, Constant]:
    """The finite rates of a law as constants with bootstrap draws."""
    units: dict[str, str] = {}
    values: dict[str, float] = {}
    for regime in law.regimes:
        for rate, unit in RATES:
            value = float(getattr(regime, rate))
            if math.isfinite(value):
                name = f"{form.name}.{regime.first_row}.{rate}"
                values[name], units[name] = value, unit

    def predict_s(candidate: Array) -> Array:
        assembled = form.assemble(dict(zip(values, candidate.tolist(), strict=True)))
        times = assembled.time(observations.product, observations.rows)
        return np.asarray(times.total_s, dtype=float)

    draws = drawn(
        np.array(list(values.values())),
        predict_s,
        observations.seconds,
        observations.sigma_log,
        seed=crc32(form.name.encode()),
    )
    return {
        name: Constant(
            value=value,
            stderr=float(np.std(column)),
            unit=units[name],
            origin=Origin.MEASURED,
            draws=column,
        )
        for (name, value), column in zip(values.items(), draws.T, strict=True)
    }
