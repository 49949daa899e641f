r"""Two published speedups of one pair at two draft lengths: what they say without any machine.

With c the cost of a draft step and v(k + 1) that of the verify pass, both in plain passes, a
speedup S at draft length k was made by

.. math:: E(k) = S\,(k c + v(k + 1))

tokens a round. Two draft lengths share their first positions, so whatever the rates by position,

.. math:: E(2) \le E(4) \le 2 E(2) - 1,

the upper end where the second to fourth token are sure; a draft that is longer never commits
fewer tokens. With rates that do not rise from position to position E(4) is at most what one rate
gives. From the lower end follows, whatever was accepted,

.. math:: v(5) \ge \frac{S_2}{S_4} v(3) - c \left(4 - 2 \frac{S_2}{S_4}\right)

which is the published pair's own word on whether checking is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

from model.articles.claim import Word
from model.progress.acceptance import from_tokens_per_pass, tokens_per_pass


class VerifyCosts(NamedTuple):
    """Passes of 3 and of 5 rows, in plain passes."""

    three: float
    five: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPair:
    """The speedups at draft lengths 2 and 4.

    >>> pair = PublishedPair(two=1.2, four=0.75)
    >>> round(pair.least_five_rows(three_rows=1.0, draft_cost=0.15), 3)
    1.48
    """

    two: float
    four: float

    def tokens(self, costs: VerifyCosts, *, draft_cost: float) -> tuple[float, float]:
        """Tokens a round that each speedup took, at these costs: E(2) and E(4)."""
        return (
            self.two * (2.0 * draft_cost + costs.three),
            self.four * (4.0 * draft_cost + costs.five),
        )

    def costs_at(self, acceptance: float, *, draft_cost: float) -> VerifyCosts:
        """The verify costs that give both speedups at one acceptance."""
        return VerifyCosts(
            three=float(tokens_per_pass(acceptance, 2)) / self.two - 2.0 * draft_cost,
            five=float(tokens_per_pass(acceptance, 4)) / self.four - 4.0 * draft_cost,
        )

    def least_five_rows(self, *, three_rows: float, draft_cost: float) -> float:
        """The least that a pass of 5 rows costs, whatever was accepted."""
        ratio = self.two / self.four
        return ratio * three_rows - draft_cost * (4.0 - 2.0 * ratio)


def rates(two: float, four: float) -> Word:
    """Which acceptance by position commits `two` tokens at length 2 and `four` at length 4.

    One rate for all positions counts as falling, of which it is the limit.

    >>> [rates(1.75, four).value for four in (1.74, 1.9, 2.0, 2.6)]
    ['impossible', 'falling', 'rising', 'impossible']
    """
    if not (1.0 <= two <= 3.0 and two <= four <= 2.0 * two - 1.0):
        return Word.IMPOSSIBLE
    one_rate = float(tokens_per_pass(from_tokens_per_pass(two, 2), 4))
    return Word.FALLING if four <= one_rate else Word.RISING
