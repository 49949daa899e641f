r"""Progress: how many tokens a round commits, and the names its acceptance goes by.

A draft of length k is checked from the left; with :math:`p_i` the probability that position i is
accepted given that all before it were, a round commits

.. math:: E(k) = 1 + \sum_{j=1}^{k} \prod_{i \le j} p_i
          \;=\; \frac{1 - \alpha^{k+1}}{1 - \alpha} \quad (p_i = \alpha)

tokens: the accepted ones and one of the target's own (Leviathan et al., 2023, arXiv 2211.17192).
Published "acceptance" is at least five numbers, and each has its own name here:

* `acceptance`: :math:`\alpha`, a probability per position;
* `accepted_fraction`: accepted / drafted = (E - 1) / k;
* `draft_share`: accepted / output = (E - 1) / E, what counting mlx-lm's `from_draft` gives;
* `tokens_per_pass`: E itself;
* `survival`: the share of rounds that accepted positions 1..j, for each j.

Real drafts are not independent from position to position; where rates per position are known,
use them. The conversions to :math:`\alpha` are exact for independent positions only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from model.errors import InputError
from model.units import Array, Quantity

MAX_DRAFT_LENGTH = 64
"""Longest draft that is priced; the longest block drafter in use proposes 16 tokens."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Acceptance probability by position; the last one holds for every later position.

    Raises:
        InputError: no position, or a value outside [0, 1].

    >>> round(Acceptance(by_position=(0.8,)).tokens_per_pass(4), 6)
    3.3616
    >>> round(Acceptance(by_position=(0.9, 0.5)).tokens_per_pass(2), 6)
    2.35
    """

    by_position: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.by_position:
            raise InputError("acceptance", "has no position", "give one number in [0, 1] or more")
        for value in self.by_position:
            if not 0.0 <= value <= 1.0:
                raise InputError(
                    f"acceptance {value:g}", "is not a probability", "give a number in [0, 1]"
                )

    def survival(self, draft_length: int) -> Array:
        """Probability that positions 1..j are all accepted, for j = 1..`draft_length`."""
        return _survival(self.by_position, draft_length)

    def tokens_per_pass(self, draft_length: int) -> float:
        """E(k): expected tokens that one round commits."""
        return 1.0 + float(np.sum(self.survival(draft_length)))

    def accepted_counts(self, draft_length: int) -> Array:
        """Probability that a round accepts exactly n draft tokens, for n = 0..`draft_length`.

        >>> Acceptance(by_position=(0.5,)).accepted_counts(2).tolist()
        [0.5, 0.25, 0.25]
        """
        at_least = np.concatenate(([1.0], self.survival(draft_length), [0.0]))
        return at_least[:-1] - at_least[1:]


@lru_cache(maxsize=1024)
def _survival(by_position: tuple[float, ...], draft_length: int) -> Array:
    last = len(by_position) - 1
    rates = [by_position[min(position, last)] for position in range(draft_length)]
    survival = np.cumprod(rates).astype(np.float64)
    survival.flags.writeable = False  # it is shared
    return survival


def tokens_per_pass(acceptance: Quantity, draft_length: Quantity) -> Quantity:
    r"""E(k) for independent positions, elementwise.

    The sum of powers is evaluated as it stands near :math:`\alpha = 1`, where the closed form
    loses its digits.

    >>> [round(float(tokens_per_pass(acceptance, 4)), 6) for acceptance in (0.0, 0.8, 1.0)]
    [1.0, 3.3616, 5.0]
    """
    gap = 1.0 - np.asarray(acceptance, dtype=float)
    near_one = gap < 1e-6
    safe_gap = np.where(near_one, 1.0, gap)
    closed = (1.0 - (1.0 - safe_gap) ** (np.asarray(draft_length) + 1.0)) / safe_gap
    # Expansion of the sum about alpha = 1, to second order in the gap.
    k = np.asarray(draft_length, dtype=float)
    expanded = (k + 1.0) * (1.0 - k / 2.0 * gap + k * (k - 1.0) / 6.0 * gap**2)
    result = np.where(near_one, expanded, closed)
    return float(result) if result.ndim == 0 else result


def from_tokens_per_pass(tokens: float, draft_length: int) -> float:
    """The acceptance of independent positions that commits `tokens` per round.

    Solved by Newton's method from 1, where E is steepest: E is convex and increasing, so every
    step stays above the root.

    Raises:
        InputError: `tokens` outside [1, k + 1], which no acceptance can give.

    >>> round(from_tokens_per_pass(3.3616, 4), 6)
    0.8
    """
    if not 1.0 <= tokens <= draft_length + 1.0:
        raise InputError(
            f"{tokens:g} tokens per pass",
            f"is impossible with draft length {draft_length}",
            f"give a number in [1, {draft_length + 1}]",
        )
    powers = np.arange(1, draft_length + 1)
    acceptance = 1.0
    for _ in range(60):
        excess = 1.0 + float(np.sum(acceptance**powers)) - tokens
        slope = float(np.sum(powers * acceptance ** (powers - 1)))
        step = excess / slope
        acceptance -= step
        if abs(step) < 1e-15:
            break
    return max(acceptance, 0.0)


def from_accepted_fraction(fraction: float, draft_length: int) -> float:
    """The acceptance whose accepted / drafted is `fraction`: E = 1 + fraction k.

    Raises:
        InputError: a fraction outside [0, 1].

    >>> round(from_accepted_fraction(0.5904, 4), 6)
    0.8
    """
    if not 0.0 <= fraction <= 1.0:
        raise InputError(f"accepted fraction {fraction:g}", "is not a share", "give [0, 1]")
    return from_tokens_per_pass(1.0 + fraction * draft_length, draft_length)


def from_draft_share(share: float, draft_length: int) -> float:
    """The acceptance whose accepted / output is `share`: E = 1 / (1 - share).

    Raises:
        InputError: a share above k / (k + 1), which no acceptance can give.
    """
    limit = draft_length / (draft_length + 1.0)
    if not 0.0 <= share <= limit:
        raise InputError(
            f"draft share {share:g}",
            f"is impossible with draft length {draft_length}",
            f"give a number in [0, {limit:.3g}]",
        )
    # At the limit 1 / (1 - share) may round to a hair above k + 1.
    return from_tokens_per_pass(min(1.0 / (1.0 - share), draft_length + 1.0), draft_length)


def from_survival(shares: Sequence[float]) -> Acceptance:
    """The acceptance by position of shares S_j of all rounds that accepted positions 1..j.

    p_j = S_j / S_(j-1). Engines that print acceptance "by depth" count accepted over drafted at
    each depth, and as every round drafts every depth, that is S_j and not p_j. After a share of 0
    no position is reached, and 0 is as good a rate there as any.

    Raises:
        InputError: no share, a share outside [0, 1], or one larger than the share before it.

    >>> [round(rate, 3) for rate in from_survival((0.9, 0.72, 0.36)).by_position]
    [0.9, 0.8, 0.5]
    """
    rates: list[float] = []
    before = 1.0
    for share in shares:
        if not 0.0 <= share <= before:
            raise InputError(
                f"survival {share:g}",
                f"is not a share of the {before:g} before it",
                f"give a number in [0, {before:g}]",
            )
        rates.append(share / before if before > 0.0 else 0.0)
        before = share
    return Acceptance(by_position=tuple(rates))
