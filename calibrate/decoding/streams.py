"""What every decoding loop is: from where a text starts to the tokens that go on from there.

All loops are greedy, and an end-of-sequence token does not end them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias

from calibrate.decoding.start import Start

Arrivals: TypeAlias = Generator[tuple[int, bool], None, None]
"""Tokens, each with whether the draft proposed it. A token of the target ends a round."""
Loop: TypeAlias = Callable[[Start, int], Arrivals]
"""From a start and a number of tokens to at least as many arrivals, the last round whole."""
