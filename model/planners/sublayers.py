r"""Which sublayers a draft should skip: as many tokens per second as the losses allow.

Skipping sublayer i saves :math:`w_i` seconds of every draft pass (attention is priced at the
context) and multiplies the acceptance by :math:`a_i`. Losses are taken as independent,

.. math:: \alpha(S) = \alpha_0 \prod_{i \in S} a_i, \qquad
          \text{tok/s}(S, k) = \frac{E(k, \alpha(S))}{T(k) - k \sum_{i \in S} w_i}

where T(k) is the round that skips nothing. The rate grows with the time saved and falls with the
loss :math:`-\sum \log a_i`, so the best set is on the frontier of the two, which a dynamic
program over the sublayers keeps in full: a set is dropped only when another saves at least as
much and loses no more. No discretisation, no heuristic; the answer is exact for this objective.

The objective, tokens per time with attention priced by context, is that of KnapSpec. Independence
is an assumption: sublayers that correct each other's errors lose less or more together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from model.cost.forward import forward_pass
from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.layer import Layer
from model.network.sublayers import Half, Sublayer, lent_caches, sublayers, without
from model.network.weight_format import WeightFormat
from model.planners.layer_skip import NEVER
from model.progress.acceptance import tokens_per_pass
from model.strategies.layer_skip import LayerSkip
from model.strategies.plain import Plain


class Skippable(NamedTuple):
    """A sublayer, the seconds a draft pass saves without it, and the factor on the acceptance."""

    sublayer: Sublayer
    saved_s: float
    acceptance_factor: float


class FrontierPoint(NamedTuple):
    """A set of sublayers that no other set beats in both: time saved and log acceptance lost."""

    saved_ps: int
    loss: float
    chosen: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SublayerPlan:
    """The best set and draft length, and what the objective promises of them."""

    skipped: frozenset[Sublayer]
    draft_length: int
    acceptance: float
    tokens_per_s: float
    plain_tokens_per_s: float

    @property
    def speedup(self) -> float:
        """Over plain decoding."""
        return self.tokens_per_s / self.plain_tokens_per_s


def frontier(candidates: Sequence[Skippable]) -> tuple[FrontierPoint, ...]:
    """Every set that is not beaten in both time saved and acceptance, by rising time saved.

    Times are whole picoseconds, so that sets of equal layers tie exactly and the frontier of a
    network with a few kinds of layer stays small. A factor of 0 is never chosen.
    """
    points = [FrontierPoint(0, 0.0, ())]
    for index, (_, saved_s, factor) in enumerate(candidates):
        if factor <= 0.0:
            continue
        saved_ps, loss = round(saved_s * 1e12), -math.log(factor)
        points += [
            FrontierPoint(each.saved_ps + saved_ps, each.loss + loss, (*each.chosen, index))
            for each in points
        ]
        points.sort(key=lambda each: (-each.saved_ps, each.loss))
        kept: list[FrontierPoint] = []
        least_loss = math.inf
        for each in points:
            if each.loss < least_loss:
                kept.append(each)
                least_loss = each.loss
        points = kept
    return tuple(reversed(points))


def best_sublayers(
    candidates: Sequence[Skippable],
    *,
    round_s: Mapping[int, float],
    plain_s: float,
    base_acceptance: float = 1.0,
) -> SublayerPlan:
    """The set and draft length with the most tokens per second.

    `round_s` is the round of each draft length when nothing is skipped, `plain_s` a plain token;
    `base_acceptance` the acceptance of a draft that skips nothing (1 but for numerical ties).

    Raises:
        InputError: no draft length, or sublayers that save more than a whole round.
    """
    if not round_s:
        raise InputError("draft lengths", "are none", "give one or more")
    points = frontier(candidates)
    saved_s = np.array([each.saved_ps for each in points]) * 1e-12
    acceptance = base_acceptance * np.exp(-np.array([each.loss for each in points]))
    best: SublayerPlan | None = None
    for draft_length, whole_s in round_s.items():
        remaining_s = whole_s - draft_length * saved_s
        if remaining_s[-1] <= 0.0:
            raise InputError(
                f"{draft_length} drafts that save {saved_s[-1]:.3g} s each",
                f"are longer than their round of {whole_s:.3g} s",
                "give times of the same machine and context",
            )
        rates = np.asarray(tokens_per_pass(acceptance, draft_length)) / remaining_s
        top = int(np.argmax(rates))
        if best is None or rates[top] > best.tokens_per_s:
            best = SublayerPlan(
                skipped=frozenset(candidates[i].sublayer for i in points[top].chosen),
                draft_length=draft_length,
                acceptance=float(acceptance[top]),
                tokens_per_s=float(rates[top]),
                plain_tokens_per_s=1.0 / plain_s,
            )
    if best is None:
        raise AssertionError("a draft length gives a plan")
    return best


def plan_sublayers(
    target: Checkpoint,
    machine: Machine,
    *,
    context: float,
    acceptance_factors: Mapping[Sublayer, float],
    draft_lengths: Sequence[int],
) -> SublayerPlan:
    """The best draft of `target` on `machine`, given what each sublayer does to the acceptance.

    Raises:
        InputError: a sublayer the target does not have, or a factor outside [0, 1].
    """
    for sublayer, factor in acceptance_factors.items():
        if not 0.0 <= factor <= 1.0:
            what = f"acceptance factor {factor:g} of {sublayer.half} {sublayer.layer}"
            raise InputError(what, "is not a probability", "give a number in [0, 1]")
    saved_s = sublayer_times(target, machine, context=context)
    for unknown in sorted(set(acceptance_factors) - set(saved_s)):
        what = f"sublayer {unknown.half} of layer {unknown.layer}"
        right = f"layers are numbered 0 to {len(target.architecture.layers) - 1}"
        raise InputError(what, f"is not in {target.architecture.name}", right)
    # A cache that later layers read has to be kept.
    kept = lent_caches(target.architecture)
    candidates = [
        Skippable(sublayer, saved_s[sublayer], factor)
        for sublayer, factor in sorted(acceptance_factors.items())
        if sublayer not in kept
    ]
    whole = LayerSkip(skipped=frozenset(), draft_length=1, acceptance=NEVER)
    round_s = {
        length: float(whole.with_length(length).round(target, machine, context).round_s)
        for length in draft_lengths
    }
    plain_s = float(Plain().round(target, machine, context).round_s)
    best = best_sublayers(candidates, round_s=round_s, plain_s=plain_s)
    if len(best.skipped) < len(saved_s):
        return best
    # Something has to be left to draft with: the best of the plans that keep a sublayer.
    alike = {(each.saved_s, each.acceptance_factor): each for each in candidates}
    plans = (
        best_sublayers(
            [each for each in candidates if each is not left], round_s=round_s, plain_s=plain_s
        )
        for left in alike.values()
    )
    return max(plans, key=lambda plan: plan.tokens_per_s)


def sublayer_times(
    target: Checkpoint, machine: Machine, *, context: float
) -> dict[Sublayer, float]:
    """Device seconds that a pass of one row saves without each sublayer, at a context."""
    whole_s = float(forward_pass(target, machine, rows=1, context=context).device_s)
    by_kind: dict[tuple[Layer, tuple[WeightFormat, ...], Half], float] = {}
    times: dict[Sublayer, float] = {}
    for sublayer in sublayers(target.architecture):
        formats = tuple(target.layer_formats(sublayer.layer).values())
        kind = target.architecture.layers[sublayer.layer], formats, sublayer.half
        if kind not in by_kind:
            rest = without(target, frozenset({sublayer}))
            rest_s = float(forward_pass(rest, machine, rows=1, context=context).device_s)
            by_kind[kind] = max(0.0, whole_s - rest_s)
        times[sublayer] = by_kind[kind]
    return times
