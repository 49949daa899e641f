"""A number with its uncertainty and where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import final

from model.units import Array


class Origin(IntEnum):
    """Where a number came from, strongest first; the weakest one travels to the answer."""

    MEASURED = 0
    PUBLISHED = 1
    SPEC_SHEET = 2
    PRIOR = 3

    @property
    def label(self) -> str:
        """The word that is shown and stored."""
        return self.name.lower().replace("_", " ")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A fitted or stated constant: its value, standard error, unit, origin and draws.

    The draws are a sample of what the constant could be given the measurements, one entry per
    bootstrap replicate; entry i of every constant of a profile belongs to the same replicate,
    so that correlations survive into a prediction.
    """

    value: float
    stderr: float
    unit: str
    origin: Origin
    draws: Array

    @property
    def stated(self) -> dict[str, str | float]:
        """What is shown and stored of a constant, its draws apart."""
        return {
            "value": self.value,
            "stderr": self.stderr,
            "unit": self.unit,
            "origin": self.origin.label,
        }
