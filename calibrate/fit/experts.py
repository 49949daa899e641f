r"""The law of gathered experts, from chains of expert layers.

A chain's link is one layer: its gathered products, and small kernels whatever the tokens. With D
distinct experts of W bytes and P pairs of a row and an expert,

.. math:: t = t_{layer} + \begin{cases} 2 P K N / F & \text{each pair a product of its own} \\
          D W / B & \text{the pairs of an expert together} \end{cases}

Which of the two holds, before and after mlx-lm begins to sort the pairs by expert, is taken from
the timings (the least :math:`\chi^2` with the price of :mod:`calibrate.fit.law_fit`).
:math:`t_{layer}` is one for all formats. The probe leaves the router's small kernels out and has a
norm and an activation that a decoder layer is charged for already; they are taken to cancel.

Source: mlx-lm 0.32, `models/switch_layers.py`, which sorts 64 pairs and more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias, final
from zlib import crc32

import numpy as np
from scipy.optimize import least_squares

from calibrate.fit.bootstrap import drawn
from calibrate.fit.laws import FittedLaw, sigmas_log
from calibrate.samples import Sample
from model.cost.moe import distinct_by_chance
from model.machine.constant import Constant, Origin
from model.machine.profile import LawForm, RegimeForm
from model.machine.row_law import Shape
from model.network.weight_format import weight_format
from model.units import Array

SORTED_PAIRS = 64
PRODUCTS = 2
"""Products that the cost model counts of an expert layer: gate and up as one, and down."""
LAYER = "experts_layer_s"
BYTES, PAIRS = "bandwidth_bytes_per_s", "flops_per_s"
UNITS = {BYTES: "byte/s", PAIRS: "FLOP/s", LAYER: "s"}
Kernels: TypeAlias = tuple[tuple[int, str], ...]
"""From how many pairs each kernel serves, and the rate that binds it."""
FORMS = ((1,), (1, SORTED_PAIRS))
"""The first pairs of the kernels: one kernel for all, or another one for pairs that are sorted."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpertTimings:
    """Timings of the expert layers of one format; what is read and multiplied is of a layer."""

    format: str
    pairs: Array
    read_bytes: Array
    flops: Array
    seconds: Array
    sigma_log: Array

    def work(self, rate: str) -> Array:
        """What a kernel that is bound so has to do."""
        return self.read_bytes if rate == BYTES else self.flops

    def columns(self, kernels: Kernels) -> Array:
        """The work of each kernel in each timing, and none where another one serves it."""
        first_pairs = [first for first, _ in kernels]
        serving = np.searchsorted(first_pairs, self.pairs, side="right") - 1
        each = [np.where(serving == i, self.work(rate), 0.0) for i, (_, rate) in enumerate(kernels)]
        return np.stack(each, axis=-1)


def fit_experts(
    samples: Sequence[Sample], kernel_s: float, jitter_s: float
) -> tuple[list[FittedLaw], dict[str, Constant]]:
    """The laws of gathered experts and the constant of their layers; nothing without a probe."""
    groups: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.probe == "experts":
            groups[sample.text("format").removesuffix("-s32")].append(sample)
    if not groups:
        return [], {}
    timings = [timings_of(name, group, jitter_s) for name, group in groups.items()]
    kernels = [chosen_kernels(each) for each in timings]
    constants = joint_constants(timings, kernels, PRODUCTS * kernel_s)
    laws = [
        FittedLaw(
            form=form(each, served),
            constants={
                name: constant
                for name, constant in constants.items()
                if name.startswith(f"{each.format}.")
            },
        )
        for each, served in zip(timings, kernels, strict=True)
    ]
    return laws, {LAYER: constants[LAYER]}


def timings_of(name: str, samples: list[Sample], jitter_s: float) -> ExpertTimings:
    """The expert layers of one format as arrays; experts are drawn by chance, each token anew."""

    def numbers(setting: str) -> Array:
        return np.array([sample.number(setting) for sample in samples], dtype=float)

    tokens, top_k, experts = numbers("tokens"), numbers("top_k"), numbers("num_experts")
    hidden, intermediate = numbers("hidden"), numbers("intermediate")
    stored_as = weight_format(name)
    expert_bytes = np.array(
        [
            3.0 * stored_as.matrix_bytes(sample.number("intermediate"), sample.number("hidden"))
            for sample in samples
        ]
    )
    return ExpertTimings(
        format=name,
        pairs=tokens * top_k,
        read_bytes=expert_bytes * distinct_by_chance(experts, top_k, tokens),
        flops=tokens * top_k * 3.0 * 2.0 * hidden * intermediate,
        seconds=np.array([sample.seconds for sample in samples]),
        sigma_log=sigmas_log(samples, jitter_s),
    )


def chosen_kernels(timings: ExpertTimings) -> Kernels:
    """The kernels that explain the timings of a format best, each with one rate."""
    price = max(math.log(len(timings.seconds)), 2.0)
    candidates: list[tuple[float, Kernels]] = []
    for first_pairs in FORMS:
        if any(not np.any(timings.pairs >= first) for first in first_pairs):
            continue
        for rates in product((PAIRS, BYTES), repeat=len(first_pairs)):
            kernels = tuple(zip(first_pairs, rates, strict=True))
            solved = solve([timings], [kernels])
            misfit = float(np.sum(missed(solved, [timings], [kernels]) ** 2))
            candidates.append((misfit + price * len(kernels), kernels))
    return min(candidates)[1]


def predicted_s(values: Array, timings: list[ExpertTimings], kernels: list[Kernels]) -> Array:
    """Times of all timings; `values` are the layer's seconds, then the rates of all kernels."""
    times: list[Array] = []
    start = 1
    for each, served in zip(timings, kernels, strict=True):
        rates = values[start : start + len(served)]
        times.append(values[0] + each.columns(served) @ (1.0 / rates))
        start += len(served)
    return np.concatenate(times)


def missed(values: Array, timings: list[ExpertTimings], kernels: list[Kernels]) -> Array:
    """Log of predicted over measured, in units of the scatter."""
    seconds = np.concatenate([each.seconds for each in timings])
    sigma_log = np.concatenate([each.sigma_log for each in timings])
    return np.log(predicted_s(values, timings, kernels) / seconds) / sigma_log


def solve(timings: list[ExpertTimings], kernels: list[Kernels]) -> Array:
    """The layer's seconds and the rates by least squares on log times, a robust loss."""
    start = [0.5 * min(float(np.min(each.seconds)) for each in timings)]
    for each, served in zip(timings, kernels, strict=True):
        start += [
            float(np.median(column[column > 0.0] / each.seconds[column > 0.0]))
            for column in each.columns(served).T
        ]

    def residuals(logs: Array) -> Array:
        return missed(np.exp(logs), timings, kernels)

    return np.exp(least_squares(residuals, np.log(start), loss="soft_l1", max_nfev=200).x)


def joint_constants(
    timings: list[ExpertTimings], kernels: list[Kernels], counted_s: float
) -> dict[str, Constant]:
    """All constants by full name; `counted_s` of a layer is priced as kernels elsewhere."""
    names = [LAYER]
    for each, served in zip(timings, kernels, strict=True):
        prefix = f"{each.format}.{Shape.EXPERT.value}"
        names += [f"{prefix}.{first}.{rate}" for first, rate in served]
    values = solve(timings, kernels)
    draws = drawn(
        values,
        lambda candidate: predicted_s(candidate, timings, kernels),
        np.concatenate([each.seconds for each in timings]),
        np.concatenate([each.sigma_log for each in timings]),
        seed=crc32(Shape.EXPERT.value.encode()),
    )
    values[0] = max(values[0] - counted_s, 0.0)
    draws[:, 0] = np.maximum(draws[:, 0] - counted_s, 0.0)
    return {
        name: Constant(
            value=float(value),
            stderr=float(np.std(column)),
            unit=UNITS[name.rpartition(".")[2]],
            origin=Origin.MEASURED,
            draws=column,
        )
        for name, value, column in zip(names, values, draws.T, strict=True)
    }


def form(timings: ExpertTimings, kernels: Kernels) -> LawForm:
    """The law of one format, whose rows are pairs."""
    return LawForm(
        format=timings.format,
        shape=Shape.EXPERT.value,
        overlap=None,
        rows_measured=int(np.max(timings.pairs)),
        regimes=tuple(
            RegimeForm(first_row=first, tile_rows=1.0, pads=False, reread=0.0, fill_columns=0.0)
            for first, _ in kernels
        ),
    )
