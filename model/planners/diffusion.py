r"""Which answers make block diffusion pay: speed over answer length and tokens fixed per pass.

A pass costs the same whatever it fixes, so the answer is a break-even in progress: with
:math:`t_{canvas}` an awaited pass of the canvas and :math:`t_1` a plain token of the rival,

.. math:: \text{tokens per pass needed} = t_{canvas} / t_1

and a short answer gets fewer, because the block is paid for in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.progress.diffusion import BlockProgress
from model.strategies.block_diffusion import BlockDiffusion
from model.strategies.plain import Plain


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionCell:
    """An answer of some length at some commits per pass.

    `committed_per_pass` are tokens fixed in a full block, `tokens_per_pass` those of them that
    belong to the answer, `needed_per_pass` the useful tokens a pass of this price would need to tie
    with the rival, and `passes` what the answer takes. Where a new shape costs (on CUDA), fewer
    passes share that cost and each is dearer, so the tie itself lies somewhat above.
    """

    answer_tokens: int
    committed_per_pass: float
    tokens_per_pass: float
    passes: float
    tokens_per_s: float
    rival_tokens_per_s: float
    needed_per_pass: float


def plan_diffusion(
    target: Checkpoint,
    rival: Checkpoint,
    machine: Machine,
    *,
    context: float,
    block_length: int,
    answer_lengths: Sequence[int],
    committed_per_pass: Sequence[float],
    cached: bool = False,
    canvas_tokens: int | None = None,
) -> tuple[DiffusionCell, ...]:
    """Price every answer length and progress; `rival` decodes plainly on the same machine.

    Raises:
        InputError: a block longer than the canvas, or commits per pass that no block allows.
    """
    plain_s = float(Plain().round(rival, machine, context).round_s)
    cells: list[DiffusionCell] = []
    for committed in committed_per_pass:
        progress = BlockProgress(block_length=block_length, committed_per_pass=committed)
        for answer in answer_lengths:
            strategy = BlockDiffusion(
                progress=progress,
                answer_tokens=answer,
                cached=cached,
                canvas_tokens=canvas_tokens,
            )
            pass_s = float(strategy.round(target, machine, context).round_s)
            cells.append(
                DiffusionCell(
                    answer_tokens=answer,
                    committed_per_pass=committed,
                    tokens_per_pass=strategy.tokens_per_pass,
                    passes=float(progress.passes(answer)),
                    tokens_per_s=strategy.tokens_per_pass / pass_s,
                    rival_tokens_per_s=1.0 / plain_s,
                    needed_per_pass=pass_s / plain_s,
                )
            )
    return tuple(cells)
