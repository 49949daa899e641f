"""What every strategy is: rounds with a price in named parts, and tokens per round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from model.cost.forward import Bound, PassCost
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.units import Array, Quantity

Settings: TypeAlias = Mapping[str, str | int | float | list[float]]
"""What distinguishes an instance of a strategy, as it appears in a prediction."""

# Parts of a round by what they are bound by.
BOUND_OF_PART = {
    "weights": Bound.MEMORY,
    "kv": Bound.MEMORY,
    "growth": Bound.MEMORY,
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


def target_parts(cost: PassCost) -> tuple[tuple[str, Quantity], ...]:
    """The device's own parts of a pass of the target."""
    return (
        ("weights", cost.weights_s),
        ("kv", cost.kv_s),
        ("arithmetic", cost.arithmetic_s),
        ("dispatch", cost.dispatch_s),
    )


def expected_round(rounds: Sequence[Round], probabilities: Array) -> Round:
    """The mean of rounds that each occur with a probability; parts keep their names.

    The first round stands for itself and the others for what they cost more, so that a mean of
    equal rounds is that round to the last digit.
    """
    first = rounds[0]
    shares: dict[int, float] = {}
    for each, probability in zip(rounds, probabilities.tolist(), strict=True):
        shares[id(each)] = shares.get(id(each), 0.0) + probability
    others = {id(each): each for each in rounds if each is not first}
    if not others:
        return first
    weighted = [(shares[key], other) for key, other in others.items()]
    parts = [part_s for _, part_s in first.parts_s]
    lower_s, upper_s = first.lower_s, first.upper_s
    for share, other in weighted:
        for index, (_, usual_s) in enumerate(first.parts_s):
            parts[index] = parts[index] + share * (other.parts_s[index][1] - usual_s)
        lower_s = lower_s + share * (other.lower_s - first.lower_s)
        upper_s = upper_s + share * (other.upper_s - first.upper_s)
    names = (name for name, _ in first.parts_s)
    return Round(parts_s=tuple(zip(names, parts, strict=True)), lower_s=lower_s, upper_s=upper_s)


class AbstractStrategy(ABC):
    """A way to generate tokens with a target; concrete strategies are final."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The word used on the command line and in records."""

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """What distinguishes this instance, as it appears in a prediction."""

    @property
    @abstractmethod
    def tokens_per_pass(self) -> float:
        """Expected output tokens of one sequence per target pass; 1 for plain decoding."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Rows of the target's pass, those of all sequences."""

    @abstractmethod
    def round(self, target: Checkpoint, machine: Machine, context: Quantity) -> Round:
        """Price one round on `machine` at `context`."""

    @property
    def batch(self) -> int:
        """Sequences that are generated side by side."""
        return 1

    @property
    def baseline_batch(self) -> int:
        """Sequences of the plain decoding that a speedup compares with."""
        return self.batch

    def residents(self, target: Checkpoint) -> tuple[tuple[Checkpoint, int], ...]:
        """Whose weights and caches must be in memory, each with its number of caches."""
        return ((target, self.batch),)

    def shared_cache_bytes(self, target: Checkpoint, context: float) -> float:
        """Bytes of caches over weights that are in memory anyway, beside the target's own."""
        del target, context
        return 0.0

    def warnings(self, target: Checkpoint) -> tuple[str, ...]:
        """What this strategy assumes of a target that may not hold."""
        del target
        return ()
