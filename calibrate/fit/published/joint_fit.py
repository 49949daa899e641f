r"""All chips fitted together: each to its own runs, and to what the others say of its kind.

The time of a plain pass on a chip with constants :math:`\theta` is linear in its work
(:mod:`.work`). The kernel for one row of b bits reads and unpacks at once, and the two overlap
with exponent 2, halfway between none and perfect:

.. math::

   \frac{1}{B_b} = \Bigl[\Bigl(\frac{1}{B}\Bigr)^2
                 + \Bigl(\frac{8 u}{b\, cores}\Bigr)^2\Bigr]^{1/2}

so wide chips, whose memory outgrows their cores, lose at few bits. 16-bit weights are not
unpacked. Where attention works head by head, reading a cache and the operations of all heads
overlap likewise. Constants are those of :mod:`.chip_effects`; an engine other than the reference
one has a factor of its own on every time.

The estimate is the most probable one (Gauss-Newton on log times), with Cauchy weights that are
twice as sharp on the slow side: heat, paging and other work make a run slow, nothing makes it fast.
Its uncertainty is that of the linearised fit at the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from calibrate.fit.published.chip_effects import EFFECTS, design, prior_values, prior_widths
from calibrate.fit.published.timings import LLAMA_CPP, REFERENCE_ENGINES, Timing
from calibrate.fit.published.work import COUNTED, FORMATS, TERMS, work_of
from calibrate.published.chips import Chip
from model.machine.overlap import overlapped
from model.units import Array

SCATTER_LOG = 0.05
"""Of one run about its chip's law, when nothing disturbs it."""
FAST_CUT, SLOW_CUT = 2.0, 1.0
"""Scatters from which a run loses weight, by its sign."""
ENGINE_WIDTH_LOG = 0.05
STATED_S = {"kernel_s": 2.5e-6, "pass_s": 6e-5, "logit_s": 2e-10}
"""Terms too small to be seen in a plain pass, kept at the values of the M3 prior."""
ATTENTION_OVERLAP = 4.0
"""Of reading a cache and attending to it head by head: nearly perfect, and smooth for the fit."""
MIXED_FORMATS = ("4bit", "affine", "fp")
"""Formats that llama.cpp has as K types, blocks of 256 weights with scales in two steps, or as
mxfp4, whose values it looks up in a table."""
DIFFERENCE = 1e-4
ITERATIONS = 60
LARGEST_STEP = 1.0


def rates(constants: Array, bandwidth: Array, cores: Array, *, kernels: str) -> Array:
    """Seconds per unit of each of `TERMS`: shape (..., terms) for logs of shape (..., effects).

    Of llama.cpp's kernels formats of less than 8 bits are K types; on Metal its attention works
    head by head.
    """
    mixed = kernels.startswith(LLAMA_CPP)
    values = dict(zip(EFFECTS, np.moveaxis(np.exp(constants), -1, 0), strict=True))
    byte_s = 1.0 / (values["bandwidth_share"] * bandwidth)
    columns: list[Array] = []
    for name, bits in FORMATS.items():
        factor = values["mixed_unpacking"] if mixed and name in MIXED_FORMATS else 1.0
        unpack_s = 0.0 if name == "float" else factor * values["unpack_core_s"] / cores
        columns.append(np.hypot(byte_s, 8.0 * unpack_s / bits))
    columns.append(byte_s * values["cache_slowdown"])
    by_head = kernels == LLAMA_CPP
    columns.append(values["attention_core_s"] / cores if by_head else np.zeros_like(byte_s))
    columns += [values.get(name, np.full_like(byte_s, STATED_S.get(name))) for name in COUNTED]
    return np.stack(columns, axis=-1)


def pass_seconds(work: Array, per_unit: Array) -> Array:
    """The time of passes: all terms, but that reading caches and attending to them overlap."""
    times = work * per_unit
    cache_s, attention_s = times[..., TERMS.index("cache")], times[..., TERMS.index("attention")]
    attended_s = overlapped(cache_s, attention_s, ATTENTION_OVERLAP)
    return np.sum(times, axis=-1) - cache_s - attention_s + attended_s


def data_sheet(chip: Chip) -> tuple[float, float]:
    """Nominal bandwidth and GPU cores."""
    if chip.cores is None or chip.nominal_bandwidth_bytes_per_s is None:
        raise AssertionError("only chips with a stated bandwidth and cores are fitted")
    return chip.nominal_bandwidth_bytes_per_s, float(chip.cores)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class JointFit:
    """The terms of all chips at the optimum, and their covariance."""

    kernels: str
    timings: tuple[Timing, ...]
    labels: tuple[str, ...]
    terms: Array
    covariance: Array
    residuals: Array
    jacobian: Array
    weights: Array

    def chip_design(self, chip: Chip) -> Array:
        """Which terms make up the constants of a chip: (constants, terms), engines included."""
        index = self.labels.index(chip.label) if chip.label in self.labels else None
        matrix = design(chip, index, len(self.labels))
        return np.pad(matrix, ((0, 0), (0, len(self.terms) - matrix.shape[1])))

    def constants(self, chip: Chip) -> tuple[Array, Array]:
        """Logs of a chip's constants and their covariance; a chip without rows strays freely."""
        matrix = self.chip_design(chip)
        covariance = matrix @ self.covariance @ matrix.T
        if chip.label not in self.labels:
            covariance = covariance + np.diag([each.chip**2 for each in EFFECTS.values()])
        return prior_values() + matrix @ self.terms, covariance

    def seconds(self, timing: Timing) -> float:
        """The time of a pass on its chip, by the reference engine."""
        constants, _ = self.constants(timing.chip)
        bandwidth, cores = (np.array(each) for each in data_sheet(timing.chip))
        per_unit = rates(constants, bandwidth, cores, kernels=self.kernels)
        return float(pass_seconds(work_of(timing.target, timing.context), per_unit))

    def chip_scatter(self) -> Array:
        """Variance of each run's log time that chips alike in their data sheets leave open."""
        widths = np.array([each.chip for each in EFFECTS.values()])
        first = len(prior_widths(0))
        own = self.jacobian[:, first : first + len(widths) * len(self.labels)]
        return np.square(own) @ np.tile(widths**2, len(self.labels))

    def left_out(self, groups: Sequence[str]) -> Array:
        """Residuals in logs that each run would have if its group had not been learned from.

        Exact for the linearised fit: with H the share of its group's own residuals in a fit,
        e = (1 - H)^-1 r.
        """
        errors = np.empty_like(self.residuals)
        for group in set(groups):
            members = np.flatnonzero([each == group for each in groups])
            own = self.jacobian[members]
            share = own @ self.covariance @ own.T * self.weights[members]
            left = np.eye(len(members)) - share
            errors[members] = np.linalg.solve(left, self.residuals[members])
        return errors


def joint_fit(timings: tuple[Timing, ...], kernels: str) -> JointFit:
    """Fit every chip that the timings hold, all of them of the same kernels."""
    chips = {each.chip.label: each.chip for each in timings}
    labels = tuple(sorted(chips))
    engines = sorted({each.engine for each in timings} - set(REFERENCE_ENGINES))
    widths = np.concatenate([prior_widths(len(labels)), np.full(len(engines), ENGINE_WIDTH_LOG)])
    first_engine = len(widths) - len(engines)
    places = np.array([labels.index(each.chip.label) for each in timings], dtype=int)
    designs = np.array(
        [
            np.pad(design(chips[each], i, len(labels)), ((0, 0), (0, len(engines))))
            for i, each in enumerate(labels)
        ]
    ).reshape(len(labels), len(EFFECTS), len(widths))
    sheets = np.array([data_sheet(chips[each]) for each in labels]).reshape(len(labels), 2)
    work = np.array([work_of(each.target, each.context) for each in timings])
    work = work.reshape(len(timings), len(TERMS))
    on_engine = np.zeros((len(timings), len(widths)))
    for row, timing in enumerate(timings):
        if timing.engine in engines:
            on_engine[row, first_engine + engines.index(timing.engine)] = 1.0
    measured = np.log([each.seconds for each in timings])

    def predicted(terms: Array) -> tuple[Array, Array]:
        """Log times and their derivatives by terms."""
        constants = prior_values() + designs @ terms

        def log_times(at: Array) -> Array:
            per_unit = rates(at, *sheets.T, kernels=kernels)[places]
            return np.log(pass_seconds(work, per_unit))

        at_optimum, jacobian = log_times(constants), on_engine.copy()
        for index in range(len(EFFECTS)):
            moved = constants.copy()
            moved[:, index] += DIFFERENCE
            slope = (log_times(moved) - at_optimum) / DIFFERENCE
            jacobian += slope[:, None] * designs[places, index]
        return at_optimum + on_engine @ terms, jacobian

    terms, prior = np.zeros(len(widths)), np.diag(1.0 / widths**2)
    weights, curvature = np.ones(len(timings)), prior
    values, jacobian = predicted(terms)
    for _ in range(ITERATIONS):
        scaled = (measured - values) / SCATTER_LOG
        cut = np.where(scaled > 0.0, SLOW_CUT, FAST_CUT)
        weights = 1.0 / (1.0 + (scaled / cut) ** 2) / SCATTER_LOG**2
        curvature = jacobian.T @ (weights[:, None] * jacobian) + prior
        gradient = jacobian.T @ (weights * (measured - values)) - prior @ terms
        step = np.clip(np.linalg.solve(curvature, gradient), -LARGEST_STEP, LARGEST_STEP)
        terms = terms + step
        values, jacobian = predicted(terms)
        if np.max(np.abs(step), initial=0.0) < DIFFERENCE:
            break
    return JointFit(
        kernels=kernels,
        timings=timings,
        labels=labels,
        terms=terms,
        covariance=np.asarray(np.linalg.inv(curvature), dtype=float),
        residuals=measured - values,
        jacobian=jacobian,
        weights=weights,
    )
