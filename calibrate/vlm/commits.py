r"""Forced commits: how many tokens a denoising pass fixes, whatever the network is sure of.

Random weights cost what real ones cost, but are sure of nothing: on their own they fix one token a
pass, the least that mlx-vlm's loops allow. So the real passes run, and only the number is decided
here. A *schedule* of S steps fixes, in pass i of a block of B,

.. math:: \lfloor (i + 1) B / S \rfloor - \lfloor i B / S \rfloor

tokens. A *coin* fixes :math:`\lfloor c \rfloor` tokens, and one more with probability
:math:`c - \lfloor c \rfloor`, so that the mean is c until a block has fewer left. Which tokens
they are is the network's choice still: those it is surest of. The price is two sorts of one number
for each row of a pass.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import final

from calibrate.run_settings import Settings


@final
class Commits:
    """The numbers for one pass after another; equal settings give equal numbers."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._random = random.Random(settings.seed)
        self._left = self._steps()

    @property
    def forced(self) -> bool:
        """Whether anything is decided here, or the network's confidence decides."""
        return self._settings.steps > 0 or self._settings.committed is not None

    def new_block(self) -> None:
        """A schedule begins anew with each block."""
        self._left = self._steps()

    def next(self) -> int:
        """Tokens that the next pass fixes, 1 or more, where the block has as many left."""
        committed = self._settings.committed
        if committed is None:
            return next(self._left, self._settings.block)
        whole = math.floor(committed)
        return whole + (self._random.random() < committed - whole)

    def _steps(self) -> Iterator[int]:
        block, steps = self._settings.block, self._settings.steps
        return ((step + 1) * block // steps - step * block // steps for step in range(steps))
