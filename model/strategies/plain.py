r"""Plain decoding: one token per pass, the baseline of every speedup.

.. math:: t = \max(t_{device}(1), t_{host})

Assumes the loop of mlx-lm's `generate_step`, which builds and submits the next step before it
reads the last token, so that the host is hidden unless it is slower than the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from model.checkpoint import Checkpoint
from model.forward import forward_pass
from model.machine import Machine
from model.pipeline import pipelined_s
from model.strategies.base import AbstractStrategy, Round
from model.units import Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(AbstractStrategy):
    """Autoregressive decoding of one sequence."""

    @property
    def name(self) -> str:  # noqa: D102
        return "plain"

    @property
    def settings(self) -> dict[str, str | int | float | list[float]]:  # noqa: D102
        return {}

    @property
    def tokens_per_pass(self) -> float:  # noqa: D102
        return 1.0

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:  # noqa: D102
        return ()

    @property
    def rows(self) -> int:  # noqa: D102
        return 1

    def round(self, target: Checkpoint, machine: Machine, context: Quantity) -> Round:
        """One pass of one row; `host` is what the device waits for its next pass."""
        cost = forward_pass(target, machine, rows=1, context=context)
        idle_s = pipelined_s(cost) - cost.device_s
        return Round(
            parts_s=(
                ("weights", cost.weights_s),
                ("kv", cost.kv_s),
                ("arithmetic", cost.arithmetic_s),
                ("dispatch", cost.dispatch_s),
                ("host", idle_s),
            ),
            lower_s=np.maximum(cost.lower_s, cost.host_s),
            upper_s=np.maximum(cost.upper_s, cost.host_s),
        )
