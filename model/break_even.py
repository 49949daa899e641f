r"""Break-even: the acceptance speculation needs, and the draft length that pays best.

With :math:`t_1` the time of a plain token, :math:`T_0(k)` a round and :math:`\delta` what a full
accept adds to the next one, speculation wins where

.. math:: g(\alpha) = E(k, \alpha)\, t_1 - T_0(k) - \alpha^k \delta > 0

The smallest root is the break-even acceptance. Where g(1) < 0 no acceptance wins, and that is
the answer: :math:`T_0 + \delta > (k + 1)\, t_1`, a round costs more plain passes than the
k + 1 tokens it can commit at best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from model.acceptance import Acceptance, tokens_per_pass
from model.checkpoint import Checkpoint
from model.machine import Machine
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative
from model.units import Array

GRID = np.linspace(0.0, 1.0, 2049)
LAST_BIT = 1e-12


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundCosts:
    """Costs of speculative rounds by draft length, in seconds, on one machine at one context.

    `missed_s[i]` is the round of `draft_lengths[i]` after a rejection, `catch_up_s` what a full
    accept adds to the next round, `plain_s` a plain token.
    """

    draft_lengths: tuple[int, ...]
    missed_s: Array
    catch_up_s: Array
    plain_s: float

    def speedup(self, acceptance: Acceptance) -> Array:
        """Speedup over plain decoding at each draft length."""
        tokens = np.array([acceptance.tokens_per_pass(k) for k in self.draft_lengths])
        full = np.array([acceptance.all_accepted(k) for k in self.draft_lengths])
        return tokens * self.plain_s / (self.missed_s + full * self.catch_up_s)

    def gain_s(self, acceptance: Array) -> Array:
        """g: plain time saved per round, of shape (acceptances, draft lengths)."""
        lengths = np.array(self.draft_lengths, dtype=float)
        column = np.asarray(acceptance, dtype=float)[:, None]
        committed_s = tokens_per_pass(column, lengths) * self.plain_s
        return committed_s - self.missed_s - column**lengths * self.catch_up_s

    def break_even(self) -> tuple[float | None, ...]:
        """The smallest acceptance that wins, for each draft length; None where none does."""
        gains = self.gain_s(GRID)
        return tuple(
            self._root(column, gains[:, column]) for column in range(len(self.draft_lengths))
        )

    def _root(self, column: int, gains: Array) -> float | None:
        wins = np.flatnonzero(gains > 0.0)
        if not len(wins):
            return None
        if wins[0] == 0:
            return 0.0
        low, high = float(GRID[wins[0] - 1]), float(GRID[wins[0]])
        while high - low > LAST_BIT:
            middle = (low + high) / 2.0
            if self.gain_s(np.array([middle]))[0, column] > 0.0:
                high = middle
            else:
                low = middle
        return high


def round_costs(
    target: Checkpoint,
    draft: Checkpoint,
    machine: Machine,
    *,
    context: float,
    draft_lengths: Sequence[int],
) -> RoundCosts:
    """Price the rounds of every draft length.

    Raises:
        InputError: a draft length no round can have, a draft that does not speak the target's
            tokens, or a weight format that was not measured.
    """
    first = Speculative(
        draft=draft, draft_length=draft_lengths[0], acceptance=Acceptance(by_position=(0.0,))
    )
    rounds = [
        replace(first, draft_length=k).rounds(target, machine, context) for k in draft_lengths
    ]
    return RoundCosts(
        draft_lengths=tuple(draft_lengths),
        missed_s=np.array([float(missed.round_s) for missed, _ in rounds]),
        catch_up_s=np.array(
            [float(caught_up.round_s - missed.round_s) for missed, caught_up in rounds]
        ),
        plain_s=float(Plain().round(target, machine, context).round_s),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BestDraftLength:
    """The draft length with the largest speedup, and what its neighbours lose.

    `regret` maps the neighbours to the share of the best speed that choosing them costs.
    """

    draft_length: int
    speedup: float
    regret: tuple[tuple[int, float], ...]


def best_draft_length(costs: RoundCosts, acceptance: Acceptance) -> BestDraftLength:
    """The arg max of the speedup; a cliff between kernels can put it far from the textbook's."""
    speedup = costs.speedup(acceptance)
    best = int(np.argmax(speedup))
    neighbours = [i for i in (best - 1, best + 1) if 0 <= i < len(speedup)]
    return BestDraftLength(
        draft_length=costs.draft_lengths[best],
        speedup=float(speedup[best]),
        regret=tuple(
            (costs.draft_lengths[i], 1.0 - float(speedup[i] / speedup[best])) for i in neighbours
        ),
    )
