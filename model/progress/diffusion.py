r"""Block diffusion: tokens that a denoising pass commits, and the passes that an answer needs.

The model fills a block of B positions in several passes and then starts the next block. Of the
tokens that it commits, c per pass, an answer of n tokens uses n: the last block is paid in full,

.. math:: \text{passes}(n) = \lceil n / B \rceil \, \frac{B}{c}, \qquad
   \text{useful per pass}(n) = \frac{n}{\text{passes}(n)} \le c .

Committed per pass comes from one of three places: a fixed schedule (B tokens in S steps), the
commits of a run that commits what it is sure enough of, or published rows. Assumed: all blocks of
an answer take equally many passes, and a block is not left early when the answer ends inside it.
A pass that only writes the finished block to a cache commits nothing and has to be counted in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from model.errors import InputError
from model.progress.published import TaskProgress, published_progress
from model.progress.vocabulary import Method
from model.units import Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlockProgress:
    """A block length, and how many of its tokens a pass commits on average.

    Raises:
        InputError: no position in a block, or tokens per pass outside (0, block length].

    >>> progress = from_steps(block_length=32, denoising_steps=8)
    >>> progress.committed_per_pass, progress.passes(40), progress.useful_per_pass(40)
    (4.0, 16.0, 2.5)
    """

    block_length: int
    committed_per_pass: float

    def __post_init__(self) -> None:
        if self.block_length < 1:
            raise InputError(f"block length {self.block_length}", "is no block", "give 1 or more")
        if not 0.0 < self.committed_per_pass <= self.block_length:
            wrong = f"is impossible in blocks of {self.block_length}"
            right = f"give a number above 0 and up to {self.block_length}"
            raise InputError(f"{self.committed_per_pass:g} tokens per pass", wrong, right)

    @property
    def passes_per_block(self) -> float:
        """Denoising passes that fill a block, on average."""
        return self.block_length / self.committed_per_pass

    def committed_tokens(self, answer_tokens: Quantity) -> Quantity:
        """Tokens that are committed for an answer: whole blocks, elementwise.

        Raises:
            InputError: an answer of less than one token.
        """
        answer = np.asarray(answer_tokens, dtype=float)
        if not np.all(answer >= 1.0):
            raise InputError(f"answer of {np.min(answer):g} tokens", "is none", "give 1 or more")
        committed = np.ceil(answer / self.block_length) * self.block_length
        return float(committed) if committed.ndim == 0 else committed

    def passes(self, answer_tokens: Quantity) -> Quantity:
        """Denoising passes for an answer, elementwise; InputError for less than one token."""
        return self.committed_tokens(answer_tokens) / self.committed_per_pass

    def useful_per_pass(self, answer_tokens: Quantity) -> Quantity:
        """Tokens of the answer per pass, elementwise; InputError for less than one token."""
        return answer_tokens / self.passes(answer_tokens)


def from_steps(*, block_length: int, denoising_steps: int) -> BlockProgress:
    """A schedule that fills every block in so many steps: B / S tokens per pass.

    Raises:
        InputError: no step, or more steps than positions, of which some would commit nothing.
    """
    if not 1 <= denoising_steps <= block_length:
        wrong = f"do not fill blocks of {block_length}"
        raise InputError(f"{denoising_steps} denoising steps", wrong, f"give 1 to {block_length}")
    return BlockProgress(
        block_length=block_length, committed_per_pass=block_length / denoising_steps
    )


def from_trace(commits: Sequence[int], *, block_length: int) -> BlockProgress:
    """The mean of a run's commits, one number for each of its passes, zeros and all.

    Only whole blocks give the mean that the answer length is priced with.

    Raises:
        InputError: no pass, a count outside [0, block length], or not one token committed.

    >>> from_trace([1, 2, 5, 0], block_length=8).passes_per_block
    4.0
    """
    outside = [count for count in commits if not 0 <= count <= block_length]
    if outside:
        wrong = f"cannot be committed in a block of {block_length}"
        raise InputError(f"{outside[0]} tokens", wrong, f"give counts of 0 to {block_length}")
    if not any(commits):
        raise InputError("the trace", "commits nothing", "give the commits of each pass of a run")
    return BlockProgress(block_length=block_length, committed_per_pass=sum(commits) / len(commits))


def published_commits(task: str) -> TaskProgress:
    """Published tokens per forward pass of diffusion models on a task, with pairs and spread.

    They are committed over all passes of whole benchmarks, and belong to the block length and
    confidence threshold of their model, which the rows do not state.

    Raises:
        InputError: an unknown task, or one without rows.

    >>> published_commits("math").tokens_per_pass.pairs
    4
    """
    return published_progress(Method.BLOCK_DIFFUSION, task)
