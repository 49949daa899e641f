"""What every strategy is: rounds with a price in named parts, and tokens per round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from model.checkpoint import Checkpoint
from model.forward import Bound
from model.machine import Machine
from model.units import Quantity

# Parts of a round by what they are bound by.
BOUND_OF_PART = {
    "weights": Bound.MEMORY,
    "kv": Bound.MEMORY,
    "arithmetic": Bound.COMPUTE,
    "draft": Bound.DRAFT,
    "dispatch": Bound.OVERHEAD,
    "host": Bound.OVERHEAD,
    "sync": Bound.OVERHEAD,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Round:
    """The time of one round in named parts, and the bounds of that time, in seconds."""

    parts_s: tuple[tuple[str, Quantity], ...]
    lower_s: Quantity
    upper_s: Quantity

    @property
    def round_s(self) -> Quantity:
        """The whole round: the sum of its parts."""
        seconds: Quantity = 0.0
        for _, part_s in self.parts_s:
            seconds = seconds + part_s
        return seconds

    @property
    def bound(self) -> Bound:
        """What takes the largest share of a round (of numbers, not of arrays)."""
        shares = dict.fromkeys(Bound, 0.0)
        for name, part_s in self.parts_s:
            shares[BOUND_OF_PART[name]] += float(part_s)
        return max(shares, key=lambda bound: shares[bound])


def mixed(usual: Round, other: Round, share: Quantity) -> Round:
    """The expected round when `share` of all rounds are the other kind; parts keep their names."""

    def mean(one_s: Quantity, other_s: Quantity) -> Quantity:
        return one_s + share * (other_s - one_s)

    pairs = zip(usual.parts_s, other.parts_s, strict=True)
    return Round(
        parts_s=tuple((name, mean(one_s, other_s)) for (name, one_s), (_, other_s) in pairs),
        lower_s=mean(usual.lower_s, other.lower_s),
        upper_s=mean(usual.upper_s, other.upper_s),
    )


class AbstractStrategy(ABC):
    """A way to generate tokens with a target; concrete strategies are final."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The word used on the command line and in records."""

    @property
    @abstractmethod
    def settings(self) -> dict[str, str | int | float | list[float]]:
        """What distinguishes this instance, as it appears in a prediction."""

    @property
    @abstractmethod
    def tokens_per_pass(self) -> float:
        """Expected output tokens per target pass; 1 for plain decoding."""

    @property
    @abstractmethod
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Weights that must be in memory beside the target's."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Rows of the target's pass."""

    @abstractmethod
    def round(self, target: Checkpoint, machine: Machine, context: Quantity) -> Round:
        """Price one round on `machine` at `context`."""
