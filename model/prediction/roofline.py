r"""The roofline of a pass: what a machine could compute at an intensity, and what it does.

The intensity of a pass is what it computes over what it must read, the weights and the caches once
each,

.. math:: I(M) = \frac{M F}{W + C}, \qquad
          \text{attainable} = \min(B I, P)

with F the FLOP of a row, W the bytes of the weights that are met and C those of the caches. B and
P are the bandwidth and the arithmetic rate of the kernel that serves the matrices that hold most
weights: every kernel has roofs of its own. What is attained is M F over the device's time, so
dispatch, padding and weights that are read again all show as distance from the roof.

Source: Williams, Waterman and Patterson 2009. A kernel whose rate was never seen to bind has no
ceiling here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import final

from model.cost.forward import Bound, forward_pass
from model.cost.moe import unique_experts
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.prediction.row_curve import heaviest_law


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """The two roofs of a kernel, and the rows that it serves; None: as many as there are.

    A rate that was never seen to bind is None.
    """

    first_row: int
    last_row: int | None
    bandwidth_bytes_per_s: float | None
    flops_per_s: float | None

    def attainable(self, intensity: float) -> float:
        """FLOP/s that the kernel could do at an intensity in FLOP/byte."""
        bandwidth, flops = self.bandwidth_bytes_per_s, self.flops_per_s
        by_memory = math.inf if bandwidth is None else bandwidth * intensity
        return min(by_memory, math.inf if flops is None else flops)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PassPoint:
    """A pass under the roof of its kernel: intensity in FLOP/byte, rates in FLOP/s.

    `roof_flops_per_s` is None where no rate of its kernel was seen to bind.
    """

    rows: int
    intensity: float
    attained_flops_per_s: float
    roof_flops_per_s: float | None
    under: Bound


def roofs(target: Checkpoint, machine: Machine) -> tuple[Roof, ...]:
    """The roofs of every kernel, by the rows it serves.

    Raises:
        InputError: the machine has no row law for one of the target's weight formats.
    """
    regimes = heaviest_law(target, machine).regimes
    ends = [after.first_row - 1 for _, after in pairwise(regimes)]
    return tuple(
        Roof(
            first_row=regime.first_row,
            last_row=end,
            bandwidth_bytes_per_s=_seen(float(regime.bandwidth_bytes_per_s)),
            flops_per_s=_seen(float(regime.flops_per_s)),
        )
        for regime, end in zip(regimes, [*ends, None], strict=True)
    )


def _seen(rate: float) -> float | None:
    return None if math.isinf(rate) else rate


def pass_point(
    target: Checkpoint, machine: Machine, *, rows: int, context: float, sequences: int = 1
) -> PassPoint:
    """A pass of `rows` tokens of each sequence under its roof.

    Raises:
        InputError: the machine has no row law for one of the target's weight formats.
    """
    flops = rows * sequences * float(target.architecture.flops_per_row(context))
    intensity = flops / read_bytes(target, rows=rows, context=context, sequences=sequences)
    cost = forward_pass(target, machine, rows=rows, context=context, sequences=sequences)
    served = [each for each in roofs(target, machine) if each.first_row <= rows * sequences][-1]
    top = served.attainable(intensity)
    by_arithmetic = served.flops_per_s is not None and top == served.flops_per_s
    return PassPoint(
        rows=rows * sequences,
        intensity=intensity,
        attained_flops_per_s=flops / float(cost.device_s),
        roof_flops_per_s=_seen(top),
        under=Bound.COMPUTE if by_arithmetic else Bound.MEMORY,
    )


def read_bytes(target: Checkpoint, *, rows: int, context: float, sequences: int = 1) -> float:
    """Bytes that a pass has to read at least: weights once, experts as they are met, caches."""
    loops = target.architecture.loops
    weights = float(target.weight_bytes_per_token)
    caches = 0.0
    for kind in target.layer_kinds:
        experts, mixer = kind.layer.experts, kind.layer.mixer
        if experts is not None:
            more = float(unique_experts(experts, rows * sequences)) - experts.top_k
            weights += loops * kind.repeats * more * target.expert_bytes(kind)
        if mixer is not None:
            read = mixer.cache_read(context, target.cache_element_bytes)
            caches += loops * kind.repeats * float(read.read_bytes)
    return weights + sequences * caches
