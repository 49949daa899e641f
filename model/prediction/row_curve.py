r"""What a pass of more rows costs, in passes of one row, and where it jumps.

.. math:: c(M) = t_{device}(M) / t_{device}(1)

A *cliff* is a row that costs far more than the rows before it did on average: MLX walks the
weights once more (a tile), or hands over to another kernel. The numbers of rows just below a cliff
are the cheap ones: a verify pass of k + 1 rows should end there. Where every row costs the same
there is no cliff. What the host pays for a pass of several rows comes
on top and is not in the curve (:class:`model.machine.overheads.Host`). With sequences side by side
a pass has M rows of each, and is compared with the pass of one row of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np

from model.cost.forward import forward_pass
from model.machine.machine import Machine
from model.machine.row_law import RowLaw
from model.network.checkpoint import Checkpoint
from model.units import Array

LEAST_CLIFF = 0.15
"""A row that adds less than this share of a one-row pass is no cliff, however cheap the others."""
STEEPNESS = 1.25
"""A row is a cliff where it costs so many times as much as the rows before it on average."""
LEAST_DROP = 0.1
"""A row more is said to cost less where it saves this share of a one-row pass."""

KERNEL, TILE = "another kernel takes over", "a tile is added"
SLOT, OTHER = "every tile computes a row more", "a smaller matrix or attention changes kernel"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cliff:
    """A row that costs far more than its neighbours: what it adds in one-row passes, and why."""

    row: int
    adds: float
    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowCurve:
    """The device time of passes of 1, 2, ... rows.

    `relative` is in passes of one row. `kernel_rows` are the rows from which another kernel
    serves the matrices that weigh most.
    """

    seconds: tuple[float, ...]
    kernel_rows: tuple[int, ...]
    cliffs: tuple[Cliff, ...]

    @property
    def relative(self) -> tuple[float, ...]:
        """The curve in passes of one row."""
        return tuple(each / self.seconds[0] for each in self.seconds)

    @property
    def cheapest(self) -> tuple[int, ...]:
        """The numbers of rows just below the cliffs."""
        return tuple(cliff.row - 1 for cliff in self.cliffs)

    @property
    def drops(self) -> tuple[int, ...]:
        """Rows whose pass costs less than that of a row fewer, by another kernel."""
        steps = pairwise(self.relative)
        return tuple(
            row for row, (before, after) in enumerate(steps, start=2) if after < before - LEAST_DROP
        )


def row_curve(
    target: Checkpoint, machine: Machine, *, context: float, most_rows: int, sequences: int = 1
) -> RowCurve:
    """Price passes of 1 to `most_rows` rows of each of `sequences`, behind `context` tokens.

    Raises:
        InputError: the machine has no row law for one of the target's weight formats.
    """
    rows = np.arange(1, most_rows + 1).astype(np.float64)
    cost = forward_pass(target, machine, rows=rows, context=context, sequences=sequences)
    seconds = tuple(np.broadcast_to(np.asarray(cost.device_s, float), rows.shape).tolist())
    law = heaviest_law(target, machine)
    cliffs = tuple(
        Cliff(row=row, adds=adds, reason=reason_at(law, row, sequences=sequences))
        for row, adds in jumps(np.array(seconds) / seconds[0])
    )
    first_rows = dict.fromkeys(math.ceil(each.first_row / sequences) for each in law.regimes)
    return RowCurve(
        seconds=seconds,
        kernel_rows=tuple(row for row in first_rows if 1 < row <= most_rows),
        cliffs=cliffs,
    )


def jumps(relative: Array) -> Iterator[tuple[int, float]]:
    """The rows that are cliffs, and what each adds.

    The row before has the lowest average so far since it began to fall, and the cliff ends that.
    """
    average = relative / np.arange(1, len(relative) + 1)
    for before in range(1, len(relative) - 1):
        adds = float(relative[before + 1] - relative[before])
        falling = average[before] <= average[before - 1]
        if falling and adds >= max(LEAST_CLIFF, STEEPNESS * float(average[before])):
            yield before + 2, adds


def heaviest_law(target: Checkpoint, machine: Machine) -> RowLaw:
    """The row law of the matrices that hold most of the network's weights."""
    weights: dict[int, int] = {}
    laws: dict[int, RowLaw] = {}
    for layer, repeats, formats in target.layer_kinds:
        experts = () if layer.experts is None else layer.experts.siblings
        for siblings in (*layer.siblings, *experts):
            matrices = siblings.matrices
            law = machine.law(
                formats[matrices[0].name],
                depth=matrices[0].depth,
                columns=siblings.columns,
                widest=max(each.columns for each in matrices),
            )
            laws[id(law)] = law
            weights[id(law)] = weights.get(id(law), 0) + repeats * siblings.weights
    return laws[max(weights, key=lambda key: weights[key])]


def reason_at(law: RowLaw, row: int, *, sequences: int = 1) -> str:
    """What changes between the row before and this one; matrices see those of all sequences."""
    fewer, rows = (row - 1) * sequences, row * sequences
    before, after = law.regime_at(fewer), law.regime_at(rows)
    if before != after:
        return KERNEL
    if after.tiles(rows) > after.tiles(fewer):
        return TILE
    return SLOT if after.slots(rows) > after.slots(fewer) else OTHER
