"""Row laws of a whole profile: each format and shape, and attention, with their constants."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final
from zlib import crc32

import numpy as np

from calibrate.fit.bootstrap import drawn
from calibrate.fit.law_fit import fit_law
from calibrate.fit.observations import NOISE_FLOOR_LOG, Observations
from calibrate.samples import REFERENCE, Sample
from model.machine.constant import Constant, Origin
from model.machine.profile import LawForm, RegimeForm
from model.machine.row_law import RowLaw, shape_of
from model.network.weight_format import weight_format
from model.units import Array

RATES = (("bandwidth_bytes_per_s", "byte/s"), ("flops_per_s", "FLOP/s"))
SMALLEST_SHARE = 0.2
"""Least share of a timing that is left to the product when the kernel's floor is taken off."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedLaw:
    """The form of a law and its constants by full name."""

    form: LawForm
    constants: dict[str, Constant]


def fit_laws(samples: Iterable[Sample], kernel_s: float, jitter_s: float) -> list[FittedLaw]:
    """The law of every format and class of shapes among the linear samples."""
    groups: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.probe == "linear":
            shape = shape_of(depth=sample.number("depth"), columns=sample.number("columns"))
            groups[sample.text("format").removesuffix("-s32"), shape.value].append(sample)
    return [
        fitted(linear_observations(group, kernel_s, jitter_s), format_name, shape)
        for (format_name, shape), group in groups.items()
    ]


def fit_attention(
    samples: Iterable[Sample], kernel_s: float, jitter_s: float, element_bytes: int
) -> FittedLaw:
    """The law of attention over a cache."""
    group = [sample for sample in samples if sample.probe == "attention"]
    observations = attention_observations(group, kernel_s, jitter_s, element_bytes)
    return fitted(observations, "", "")


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
        sigma_log=sigmas_log(samples, jitter_s),
    )


def attention_observations(
    samples: list[Sample], kernel_s: float, jitter_s: float, element_bytes: int
) -> Observations:
    """Attention as a product: the context is its depth, twice the query width its columns."""

    def cache_bytes(sample: Sample) -> float:
        width = sample.number("kv_heads") * sample.number("head_dim")
        return 2.0 * sample.number("context") * width * element_bytes

    def columns(sample: Sample) -> float:
        return 2.0 * sample.number("query_heads") * sample.number("head_dim")

    return Observations(
        rows=np.array([sample.number("rows") for sample in samples], dtype=float),
        read_bytes=np.array([cache_bytes(sample) for sample in samples]),
        depth=np.array([sample.number("context") for sample in samples], dtype=float),
        columns=np.array([columns(sample) for sample in samples]),
        seconds=net_seconds(samples, kernel_s),
        sigma_log=sigmas_log(samples, jitter_s),
    )


def net_seconds(samples: list[Sample], kernel_s: float) -> Array:
    """Times without the kernel's floor, of which a short product cannot be all."""
    gross = np.array([sample.seconds for sample in samples])
    return np.maximum(gross - kernel_s, SMALLEST_SHARE * gross)


def sigmas_log(samples: list[Sample], jitter_s: float) -> Array:
    """Relative uncertainty of the timings.

    Their spread over repeats, and the jitter of one kernel between visits: a busy host adds so
    many microseconds, which is much of a short kernel and nothing of a long one.
    """
    spreads = np.array([sample.spread / math.sqrt(max(sample.repeats, 1)) for sample in samples])
    jitter = np.array([jitter_s / sample.seconds for sample in samples])
    return np.sqrt(NOISE_FLOOR_LOG**2 + spreads**2 + jitter**2)


def reference_jitter_s(samples: Iterable[Sample]) -> float:
    """How much the reference kernel scatters from visit to visit: half its quartile range."""
    seconds = [sample.seconds for sample in samples if sample.probe == REFERENCE]
    if len(seconds) < 2:
        return 0.0
    low, high = np.quantile(seconds, [0.25, 0.75])
    return float(high - low) / 2.0


def fitted(observations: Observations, format_name: str, shape: str) -> FittedLaw:
    """Fit one law and draw its rates."""
    law = fit_law(observations)
    form = LawForm(
        format=format_name,
        shape=shape,
        overlap=None if math.isinf(law.overlap) else law.overlap,
        rows_measured=law.rows_measured,
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
