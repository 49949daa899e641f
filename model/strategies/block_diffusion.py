r"""Block diffusion: denoise a block of tokens at once, a few of them fixed at every pass.

An answer of n tokens fills :math:`\lceil n / b \rceil` blocks of b tokens; each takes s passes
(:mod:`model.progress.diffusion`),
and what lies behind the end of the answer in the last block is paid for and thrown away:

.. math:: \text{tok/s} = \frac{n}{\sum_{blocks} s\, \bigl(t_{pass}(R, c) + t_{sync}\bigr)},
          \qquad \text{tokens per pass} = \frac{n}{s \lceil n / b \rceil}

R are the rows of a pass. With a block cache they are those of the block, at a context of what was
written before. Without a cache they are the whole canvas, prompt included: either a fixed canvas,
whatever the answer turns out to be, or one that grows block by block. The rows of a mixture of
experts touch almost all experts, and the head is read for every row of the canvas.

Speedups compare with plain decoding of a network of the same shape: a diffusion model itself
cannot decode plainly. Passes are awaited, because the next one depends on which tokens were fixed.
Source: LLaDA2 in mlx-lm PR 1561 (no cache, every pass recomputes the canvas) and Fast-dLLM
(arXiv 2505.22618) for block caches. mlx-vlm 0.7.10 has a block cache, and writes each finished
block to it in a pass of its own, which commits nothing and has to be counted in. Checked with its
loops on MLX's CPU back end alone; stops holding where a cache is refreshed now and then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from model.cost.forward import forward_pass
from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.progress.diffusion import BlockProgress
from model.strategies.base import AbstractStrategy, Round, Settings, expected_round
from model.strategies.drafted import drafted_round
from model.units import Quantity

MOST_BLOCKS_PRICED = 16
"""Blocks that are priced one by one; of a longer answer, this many evenly spaced ones."""

LONGEST_ANSWER = 1_000_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDiffusion(AbstractStrategy):
    """Denoising `answer_tokens` block by block, as fast as `progress` commits them.

    With `cached`, a pass has the rows of one block. Without, it has the prompt and the canvas:
    `canvas_tokens` of them, or all blocks so far where that is None. `new_share` is the share of
    passes that meet new shapes, where it is known of a run; else all are new to its process.

    Raises:
        InputError: an answer of no token or of more than a million, or a block or an answer that
            is longer than the canvas.
    """

    progress: BlockProgress
    answer_tokens: int
    cached: bool = False
    canvas_tokens: int | None = None
    new_share: float | None = None

    def __post_init__(self) -> None:
        answer = f"answer of {self.answer_tokens} tokens"
        if not 1 <= self.answer_tokens <= LONGEST_ANSWER:
            raise InputError(answer, "is out of range", f"give 1 to {LONGEST_ANSWER} tokens")
        if self.canvas_tokens is None:
            return
        block = f"block of {self.progress.block_length} tokens"
        for what, tokens in ((block, self.progress.block_length), (answer, self.answer_tokens)):
            if tokens > self.canvas_tokens:
                wrong = f"is longer than the canvas of {self.canvas_tokens}"
                raise InputError(what, wrong, f"give a canvas of at least {tokens} tokens")

    @property
    def name(self) -> str:  # noqa: D102
        return "diffusion"

    @property
    def settings(self) -> Settings:  # noqa: D102
        found: dict[str, str | int | float | list[float]] = {
            "block_length": self.progress.block_length,
            "committed_per_pass": self.progress.committed_per_pass,
            "answer_tokens": self.answer_tokens,
            "cache": "block" if self.cached else "none",
        }
        return found if self.canvas_tokens is None else found | {"canvas": self.canvas_tokens}

    @property
    def blocks(self) -> int:
        """Blocks that the answer fills, the last one perhaps in part."""
        return math.ceil(self.answer_tokens / self.progress.block_length)

    @property
    def tokens_per_pass(self) -> float:
        """Tokens of the answer per pass; those behind its end are not counted."""
        return float(self.progress.useful_per_pass(self.answer_tokens))

    @property
    def rows(self) -> int:  # noqa: D102
        if self.cached:
            return self.progress.block_length
        return self.canvas_tokens or self.blocks * self.progress.block_length

    def round(self, target: Checkpoint, machine: Machine, context: Quantity) -> Round:
        """The mean denoising pass of the answer, awaited; `context` are the prompt's tokens."""
        count = min(self.blocks, MOST_BLOCKS_PRICED)
        if self.canvas_tokens is not None and not self.cached:
            count = 1
        before = np.linspace(0, self.blocks - 1, count).round().astype(int)
        passes = [
            self.denoising_pass(target, machine, context, block * self.progress.block_length)
            for block in before.tolist()
        ]
        return expected_round(passes, np.full(count, 1.0 / count))

    def denoising_pass(
        self, target: Checkpoint, machine: Machine, context: Quantity, done: int
    ) -> Round:
        """One awaited pass on the block after `done` tokens of the answer."""
        if self.cached:
            rows, past = self.progress.block_length, context + done
            keys = past + rows
        else:
            canvas = self.canvas_tokens or done + self.progress.block_length
            # Without a cache every row attends to every row of the same pass.
            scalar = isinstance(context, int | float)
            rows = past = keys = (
                math.ceil(context) + canvas if scalar else np.ceil(context) + canvas
            )
        cost = forward_pass(
            target, machine, rows=rows, context=past, new_shapes=self.new_shapes, keys=keys
        )
        return drafted_round([], cost, machine)

    @property
    def new_shapes(self) -> float:
        """The share of passes that meet rows and context of which none had been before.

        All passes of a block have the same, and on a fixed canvas all passes of the answer. But the
        one that writes a block to the cache finds the keys in another layout than those that
        denoise it: as part of the cache, and not joined to it. The last block fills its cache, and
        there the two are one. Source: mlx 0.32, `cuda/scaled_dot_product_attention.cpp`, whose
        plans have strides in their keys, and `StaticPrefixKVCache` of mlx-vlm 0.7.10.
        """
        if self.new_share is not None:
            return self.new_share
        blocks = 1 if self.canvas_tokens is not None and not self.cached else self.blocks
        layouts = 2 * blocks - 1 if self.cached else blocks
        return min(1.0, layouts / (self.blocks * self.progress.passes_per_block))
