r"""Plain decoding: one token per pass and sequence, the baseline of every speedup.

.. math:: t = \max\bigl(t_{device}(B), t_{host}\bigr), \qquad \text{tok/s} = B / t

Assumes the loop of mlx-lm's `generate_step`, which builds and submits the next step before it
reads the last token, so that the host is hidden unless it is slower than the device. A batch of B
sequences reads the weights once for all of them and each cache on its own (`batch_generate`);
its throughput is that of all sequences, at full occupancy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from model.cost.cache_growth import growth_s
from model.cost.forward import forward_pass
from model.cost.pipeline import pipelined_s
from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.strategies.base import AbstractStrategy, Round, Settings, target_parts
from model.units import Quantity

MAX_BATCH = 1024
"""Sequences that one pass may hold; more than any Mac was measured with."""


def check_batch(batch: int) -> None:
    """Refuse a batch that cannot be.

    Raises:
        InputError: a batch outside 1..1024.
    """
    if not 1 <= batch <= MAX_BATCH:
        raise InputError(
            f"batch {batch}", "is out of range", f"give a whole number from 1 to {MAX_BATCH}"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(AbstractStrategy):
    """Autoregressive decoding of `sequences` side by side.

    Raises:
        InputError: a batch outside 1..1024.
    """

    sequences: int = 1

    def __post_init__(self) -> None:
        check_batch(self.sequences)

    @property
    def name(self) -> str:  # noqa: D102
        return "plain" if self.sequences == 1 else "batch"

    @property
    def settings(self) -> Settings:  # noqa: D102
        return {} if self.sequences == 1 else {"batch": self.sequences}

    @property
    def tokens_per_pass(self) -> float:  # noqa: D102
        return 1.0

    @property
    def rows(self) -> int:  # noqa: D102
        return self.sequences

    @property
    def batch(self) -> int:  # noqa: D102
        return self.sequences

    @property
    def baseline_batch(self) -> int:
        """One: what a batch buys is throughput over a single sequence."""
        return 1

    def round(self, target: Checkpoint, machine: Machine, context: Quantity) -> Round:
        """One pass of one row a sequence; `host` is what the device waits for its next pass."""
        cost = forward_pass(target, machine, rows=1, context=context, sequences=self.sequences)
        host_s = cost.host_s + machine.host.read_s
        idle_s = pipelined_s(cost, machine.host.read_s) - cost.device_s
        grown_s = growth_s(target, machine, context=context, sequences=self.sequences)
        return Round(
            parts_s=(*target_parts(cost), ("growth", grown_s), ("host", idle_s)),
            lower_s=np.maximum(cost.lower_s, host_s) + grown_s,
            upper_s=np.maximum(cost.upper_s, host_s) + grown_s,
        )
