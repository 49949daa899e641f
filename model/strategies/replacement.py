"""Another checkpoint in the target's place: fewer bits, a smaller model, a mixture of experts.

The plain way to read fewer bytes. The other network decodes plainly, so its tokens cost what its
own pass costs; what its answers are worth is not a question of speed, and not answered here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.strategies.base import AbstractStrategy, Round, Settings
from model.strategies.plain import Plain
from model.units import Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement(AbstractStrategy):
    """Plain decoding of `other`, compared with plain decoding of the target."""

    other: Checkpoint

    @property
    def name(self) -> str:  # noqa: D102
        return "instead"

    @property
    def settings(self) -> Settings:  # noqa: D102
        return {
            "model": self.other.architecture.name,
            "format": self.other.weight_format.name,
        }

    @property
    def tokens_per_pass(self) -> float:  # noqa: D102
        return 1.0

    @property
    def rows(self) -> int:  # noqa: D102
        return 1

    def round(self, target: Checkpoint, machine: Machine, context: Quantity) -> Round:
        """A plain token of the other network."""
        del target
        self.other.check_context(float(np.max(context)))
        return Plain().round(self.other, machine, context)

    def residents(self, target: Checkpoint) -> tuple[tuple[Checkpoint, int], ...]:
        """The other network alone: it takes the target's place."""
        del target
        return ((self.other, 1),)
