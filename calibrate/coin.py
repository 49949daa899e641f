"""The coin of a forced acceptance: how many draft tokens each round accepts."""

from __future__ import annotations

import random
from typing import final


@final
class Coin:
    """Draws how many of a round's draft tokens are accepted; equal seeds draw equal rounds."""

    def __init__(self, acceptance: float, seed: int) -> None:
        self._acceptance = acceptance
        self._random = random.Random(seed)

    def accepted(self, drafted: int) -> int:
        """Accepted draft tokens of a round, before the first that is not."""
        count = 0
        while count < drafted and self._random.random() < self._acceptance:
            count += 1
        return count
