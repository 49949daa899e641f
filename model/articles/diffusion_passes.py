"""Passes of a canvas through a mixture of experts: how long, and what they are spent on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from model.articles.claim import Figure, Panel
from model.cost.forward import PassCost, forward_pass
from model.cost.moe import unique_experts
from model.machine.profile import Profile
from model.network.checkpoint import Checkpoint
from model.network.layer import Experts
from model.prediction.prediction import extrapolation, interval, residual_log
from model.units import MILLI, Array

MOST_ROWS = 1024
SHOWN_ROWS = (16, 32, 64, 96, 256)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """The smallest canvas that takes a given time, its range, and what its pass is spent on.

    `is_found` is False where even `MOST_ROWS` rows take less. `low_rows` and `high_rows` take that
    long at the ends of the 90 % interval of a pass, `hot_rows` on the hot machine. Shares are of
    the pass, `experts_read` of all experts, and `weights_ratio` is the weights read over those of
    one plain token.
    """

    rows: int
    is_found: bool
    low_rows: int
    high_rows: int
    hot_rows: int | None
    pass_s: float
    weights_share: float
    arithmetic_share: float
    experts_read: float
    experts_of_one: float
    weights_ratio: float

    @property
    def text(self) -> str:
        """The canvas as part of a sentence."""
        if not self.is_found:
            return f"no canvas of up to {MOST_ROWS} rows, of which {self.pass_s / MILLI:.0f} ms"
        hot = "" if self.hot_rows is None else f", {self.hot_rows} on a hot laptop"
        return (
            f"a canvas of {self.rows} rows, prompt included "
            f"({self.low_rows} to {self.high_rows}{hot})"
        )


def canvas_pass(target: Checkpoint, profile: Profile, rows: int) -> PassCost:
    """A pass without a cache: every row attends to every row."""
    return forward_pass(target, profile.machine, rows=rows, context=float(rows))


def canvas_that_takes(pass_s: float, target: Checkpoint, profile: Profile) -> Canvas:
    """The smallest canvas whose pass takes `pass_s`, at most `MOST_ROWS`."""
    rows = np.arange(1.0, MOST_ROWS + 1.0)
    swept = forward_pass(target, profile.machine, rows=rows, context=rows)
    seconds = np.asarray(swept.device_s)
    found = first_row(seconds, pass_s)
    low_s, high_s = pass_interval(target, profile, found)
    value_s = float(seconds[found - 1])
    hot = profile.machine.sustained()
    hot_s = (
        None
        if hot is None
        else np.asarray(forward_pass(target, hot, rows=rows, context=rows).device_s)
    )
    cost, one = canvas_pass(target, profile, found), canvas_pass(target, profile, 1)
    return Canvas(
        rows=found,
        is_found=value_s >= pass_s,
        low_rows=first_row(seconds, pass_s * value_s / high_s),
        high_rows=first_row(seconds, pass_s * value_s / low_s),
        hot_rows=None if hot_s is None else first_row(hot_s, pass_s),
        pass_s=value_s,
        weights_share=float(cost.weights_s / cost.device_s),
        arithmetic_share=float(cost.arithmetic_s / cost.device_s),
        experts_read=experts_share(target, found),
        experts_of_one=experts_share(target, 1),
        weights_ratio=float(cost.weights_s / one.weights_s),
    )


def first_row(seconds: Array, at_least_s: float) -> int:
    """The first row count that takes so long; the last one if none does."""
    reached = np.flatnonzero(seconds >= at_least_s)
    return int(reached[0]) + 1 if len(reached) else len(seconds)


def pass_interval(target: Checkpoint, profile: Profile, rows: int) -> tuple[float, float]:
    """The 90 % interval of a pass of the canvas, in seconds."""
    drawn = forward_pass(target, profile.sampled_machine, rows=rows, context=float(rows))
    stretch, _ = extrapolation(profile, rows, float(rows))
    seconds = float(canvas_pass(target, profile, rows).device_s)
    return interval(seconds, drawn.device_s, residual_log(profile, rows, stretch))


def experts_share(target: Checkpoint, rows: int) -> float:
    """The expected share of all experts that so many rows route to."""
    experts = experts_of(target)
    return float(unique_experts(experts, rows)) / experts.num_experts


def experts_of(target: Checkpoint) -> Experts:
    """The experts of the first layer that has any."""
    kinds = target.architecture.layer_kinds
    return next(layer.experts for layer, _ in kinds if layer.experts is not None)


def canvas_panel(target: Checkpoint, profile: Profile, found: int) -> Panel:
    """The pass of several canvases, by its parts."""
    figures: list[Figure] = []
    for rows in sorted({*SHOWN_ROWS, found}):
        cost, case = canvas_pass(target, profile, rows), f"{rows} rows"
        low_s, high_s = pass_interval(target, profile, rows)
        figures += [
            Figure(
                case=case,
                name="ms",
                value=float(cost.device_s) / MILLI,
                interval_90=(low_s / MILLI, high_s / MILLI),
            ),
            Figure(case=case, name="weights ms", value=float(cost.weights_s) / MILLI),
            Figure(case=case, name="arithmetic ms", value=float(cost.arithmetic_s) / MILLI),
            Figure(case=case, name="experts read", value=experts_share(target, rows)),
        ]
    return Panel(title="one pass of a canvas in 4 bits", figures=tuple(figures))
