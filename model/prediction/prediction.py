r"""A prediction: throughput and speedup with their intervals, and what the time is spent on.

The estimate is the model at the fitted constants. Its 90 % interval joins independent sources on a
log scale, the spread over the draws of the fit, the residual the fit left on whole passes, and of
rounds of several rows what plain passes do not tell:

.. math:: \sigma^2 = \sigma_{draws}^2 + (\sigma_{residual}\, x)^2 + \sigma_{rows}^2,
          \qquad x = 1 + \sum \log_2 \frac{\text{asked}}{\text{measured}}

x widens the residual; the sum is over rows and context, where they lie beyond what was measured
(of rows, with every law of the machine). A speedup is a ratio of
two passes on the same draw, so what the draws share cancels in it; of the residual, which is
independent from pass to pass at worst, root two times as much remains:

.. math:: \sigma_S^2 = \sigma_{draws}^2 + 2 (\sigma_{residual}\, x)^2 + \sigma_{rows}^2

:math:`\sigma_{rows}` is 0 of one row, and on a machine whose kernels of several rows were measured,
since the residual is then of them as well. Elsewhere their rates are others', and engines differ in
what a round waits for (:mod:`calibrate.validation.several_rows` estimates it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from model.cost.forward import Bound
from model.machine.constant import Origin
from model.machine.profile import Profile
from model.machine.row_law import Shape
from model.network.checkpoint import Checkpoint
from model.prediction.memory import Feasibility, feasibility
from model.strategies.base import AbstractStrategy
from model.strategies.plain import Plain
from model.units import Quantity

Z_90 = 1.6449
"""Half width of a central 90 % interval, in standard deviations."""

TIE = 0.03
"""Speedups within this of 1 are no win and no loss: two runs of one loop differ by as much."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a strategy does for one target on one machine at one context.

    Speeds and their intervals are None where the working set does not fit: the model of a
    resident network says nothing of one that is swapped. The parts are of the resident one.
    All of it is of a cold machine; `sustained_tokens_per_s` is what remains after minutes, None
    where nobody says what does.
    """

    strategy: str
    settings: dict[str, str | int | float | list[float]]
    tokens_per_s: float | None
    interval_90: tuple[float, float] | None
    speedup: float | None
    speedup_interval_90: tuple[float, float] | None
    sustained_tokens_per_s: float | None
    sustained_interval_90: tuple[float, float] | None
    tokens_per_pass: float
    parts_s: tuple[tuple[str, float], ...]
    lower_s: float
    upper_s: float
    bound: Bound
    memory: Feasibility
    origin: Origin
    warnings: tuple[str, ...]

    @property
    def round_s(self) -> float:
        """Seconds per round: the sum of its parts."""
        return sum(part_s for _, part_s in self.parts_s)

    @property
    def verdict(self) -> str:
        """Whether the strategy pays: faster, slower, cannot tell, or does not fit."""
        if self.speedup is None or self.speedup_interval_90 is None:
            return "does not fit"
        if self.strategy == "plain":
            return "baseline"
        low, high = self.speedup_interval_90
        if low > 1.0 and self.speedup > 1.0 + TIE:
            return "faster"
        if high < 1.0 and self.speedup < 1.0 - TIE:
            return "slower"
        return "cannot tell"


def predict(
    strategy: AbstractStrategy, target: Checkpoint, profile: Profile, *, context: float
) -> Prediction:
    """Predict `strategy` for `target` on the machine of `profile` with `context` tokens cached.

    Raises:
        InputError: a weight format the machine was never measured with, or a draft whose
            vocabulary is not the target's.
    """
    machine, sampled = profile.machine, profile.sampled_machine
    baseline = Plain(sequences=strategy.baseline_batch)
    is_plain = strategy == baseline
    tokens = strategy.batch * strategy.tokens_per_pass
    point = strategy.round(target, machine, context)
    plain = point if is_plain else baseline.round(target, machine, context)
    tokens_per_s = tokens / float(point.round_s)
    speedup = tokens_per_s * float(plain.round_s) / baseline.batch

    drawn_s = strategy.round(target, sampled, context).round_s
    drawn_plain_s = drawn_s if is_plain else baseline.round(target, sampled, context).round_s
    hot = sustained(strategy, target, profile, context=context)
    stretch, warnings = extrapolation(profile, strategy.rows, context, sequences=strategy.batch)
    residual = residual_log(profile, strategy.rows, stretch)
    ratio_residual = 0.0 if is_plain else residual_log(profile, strategy.rows, stretch, of=2)
    memory = feasibility(
        strategy.residents(target),
        machine,
        context=context,
        shared_cache_bytes=strategy.shared_cache_bytes(target, context),
    )
    fits = memory.fits
    return Prediction(
        strategy=strategy.name,
        settings=dict(strategy.settings),
        tokens_per_s=tokens_per_s if fits else None,
        interval_90=interval(tokens_per_s, drawn_s, residual) if fits else None,
        speedup=speedup if fits else None,
        speedup_interval_90=(
            interval(speedup, drawn_s / drawn_plain_s, ratio_residual) if fits else None
        ),
        sustained_tokens_per_s=hot[0] if hot and fits else None,
        sustained_interval_90=interval(hot[0], hot[1], residual) if hot and fits else None,
        tokens_per_pass=strategy.tokens_per_pass,
        parts_s=tuple((name, float(part_s)) for name, part_s in point.parts_s),
        lower_s=float(point.lower_s),
        upper_s=float(point.upper_s),
        bound=point.bound,
        memory=memory,
        origin=profile.origin,
        warnings=(*strategy.warnings(target), *warnings),
    )


def sustained(
    strategy: AbstractStrategy, target: Checkpoint, profile: Profile, *, context: float
) -> tuple[float, Quantity] | None:
    """Tokens per second on a hot machine, and their draws' rounds; None where none is known."""
    machine, sampled = profile.hot_machine, profile.sampled_hot_machine
    if machine is None or sampled is None:
        return None
    tokens = strategy.batch * strategy.tokens_per_pass
    hot_s = float(strategy.round(target, machine, context).round_s)
    return tokens / hot_s, strategy.round(target, sampled, context).round_s


def residual_log(profile: Profile, rows: int, stretch: float, *, of: int = 1) -> float:
    """What fits leave on a pass of so many rows, or with `of` 2 on its ratio to another one."""
    header = profile.header
    several = header.several_rows_residual_log if rows > 1 else 0.0
    return math.hypot(math.sqrt(of) * header.residual_log * stretch, several)


def interval(estimate: float, drawn: Quantity, residual_log: float) -> tuple[float, float]:
    """The central 90 % interval about `estimate`, symmetric on a log scale."""
    spread_log = float(np.std(np.log(drawn)))
    width = math.exp(Z_90 * math.hypot(spread_log, residual_log))
    return (estimate / width, estimate * width)


def extrapolation(
    profile: Profile, rows: int, context: float, *, sequences: int = 1
) -> tuple[float, tuple[str, ...]]:
    """How far a question lies beyond the measurements: a factor >= 1, and a warning for each.

    `rows` are of all sequences together, as matrices see them; attention sees one's alone.
    """
    machine = profile.machine
    # A pair of a row and an expert is one row by definition.
    laws = [law for (_, shape), law in machine.laws.items() if shape is not Shape.EXPERT]
    rows_measured = min(
        *(law.rows_measured for law in laws), machine.attention_rows_measured * sequences
    )
    stretch = 1.0
    warnings: list[str] = []
    for what, asked, measured in (
        ("rows", rows, rows_measured),
        ("tokens of context", context, machine.context_measured),
    ):
        if asked > measured:
            stretch += math.log2(asked / measured)
            warnings.append(f"{asked:g} {what} is beyond the {measured:g} that were measured")
    return stretch, tuple(warnings)
