"""Work in a dependent chain: each unit takes the last one's output, as decoding does.

Independent operations overlap on MLX's devices, and decoding has none. The graph is built outside
the clock, because real decoding builds the next pass while this one runs, and so it is submitted,
where the device can be kept busy meanwhile (:mod:`calibrate.head_start`); elsewhere it is submitted
in a few pieces, so that the runtime's own walk over a long graph hides behind the device.
"""

# MLX's stubs leave some arguments untyped, those of `eval` among them.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias, final

import mlx.core as mx

from calibrate.head_start import ELEMENTS_AHEAD, KERNELS_AHEAD, HeadStart
from calibrate.mlx_device import on_processor
from calibrate.timing import LONGEST_CHAIN, Job

Step: TypeAlias = Callable[[mx.array, int], mx.array]

PIECES = 8
"""Submissions per chain."""


@final
class Chain:
    """Units of work of which each takes the last one's output: `step(value, turn) -> value`.

    Turns go on from chain to chain, so that a short chain does not meet the same copy again. A
    unit is of `kernels` kernels at most, which read `elements` numbers: so many units can be
    submitted ahead of the device (:mod:`calibrate.head_start`).
    """

    def __init__(self, start: mx.array, step: Step, *, kernels: int = 1, elements: int = 0) -> None:
        self.start = start
        self.step = step
        self._ahead = head_start()
        self._longest_ahead = max(
            1, min(KERNELS_AHEAD // kernels, ELEMENTS_AHEAD // max(elements, 1))
        )
        self._turns = itertools.count()
        mx.eval(start)

    @property
    def longest(self) -> int:
        """Units that one chain may have."""
        return LONGEST_CHAIN if self._ahead is None else self._longest_ahead

    @property
    def is_ahead(self) -> bool:
        """Whether units are submitted before the clock starts."""
        return self._ahead is not None

    def prepare(self, units: int) -> Job:
        """Submit `units` steps ahead of the device if that can be; the job does what is left."""
        if self._ahead is not None:
            submitted = self._ahead.submitted(lambda: self._built(units))
            if submitted is not None:
                return lambda: mx.eval(submitted[-1])
            self._ahead = None
        return submission(self._built(units))

    def _built(self, units: int) -> list[mx.array]:
        """The graph of `units` steps, in a few pieces."""
        stride = math.ceil(units / PIECES)
        pieces: list[mx.array] = []
        value = self.start
        for done in range(1, units + 1):
            value = self.step(value, next(self._turns))
            if done % stride == 0 or done == units:
                pieces.append(value)
        mx.synchronize()
        return pieces


def submission(graphs: Sequence[mx.array]) -> Job:
    """The job that submits graphs one after the other without waiting, then waits for the last."""

    def job() -> None:
        for graph in graphs:
            mx.async_eval(graph)
        mx.eval(graphs[-1])

    return job


@cache
def head_start() -> HeadStart | None:
    """The head start of this process's device; a processor is its own host and has none."""
    return None if on_processor() else HeadStart()
