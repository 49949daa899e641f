r"""Costs of rounds over draft lengths and contexts: the vectorised core of sweeps and planners.

A round's price does not depend on the acceptance, only on how many tokens the round before
accepted. With :math:`T_0(k)` the round after a rejection of the first token and
:math:`\delta_j(k)` what it costs more when at least j were accepted, the expected round is a
polynomial in the acceptance,

.. math:: T(k, \alpha) = T_0(k) + \sum_{j=1}^{k} \delta_j(k)\, \alpha^j

and a speedup over any grid of acceptance, draft length and context is two array expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from model.cost.cache_growth import growth_s
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.progress.acceptance import Acceptance, tokens_per_pass
from model.strategies.drafted import AbstractDrafted
from model.strategies.plain import Plain
from model.units import Array, Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundCosts:
    """Seconds of rounds by draft length (first axis), at one context or at several (last axis).

    `missed_s[i]` is the round of `draft_lengths[i]` after a first token that was rejected,
    `catch_up_s[i, j]` what it costs more when more than j tokens were accepted, `growth_s` what
    the caches take for each token that stays, `plain_s` a plain token of the same batch.
    `drafting` is the share of rounds that have a draft at all.
    """

    draft_lengths: tuple[int, ...]
    missed_s: Array
    catch_up_s: Array
    growth_s: Array
    plain_s: Array
    drafting: float

    def speedup(self, acceptance: Acceptance) -> Array:
        """Speedup over plain decoding at each draft length, for rates by position."""
        found: list[Array] = []
        for index, length in enumerate(self.draft_lengths):
            survival = acceptance.survival(length)
            extra_s = np.tensordot(survival, self.catch_up_s[index, :length], axes=1)
            tokens = 1.0 + self.drafting * survival.sum()
            round_s = self.missed_s[index] + extra_s + tokens * self.growth_s
            found.append(tokens * self.plain_s / round_s)
        return np.array(found)

    def speedup_map(self, acceptance: Array) -> Array:
        """Speedups of shape (acceptances, draft lengths[, contexts])."""
        tokens, round_s = self._expected(acceptance)
        return tokens * self.plain_s / round_s

    def gain_s(self, acceptance: Array) -> Array:
        """Plain time that a round saves, of shape (acceptances, draft lengths[, contexts])."""
        tokens, round_s = self._expected(acceptance)
        return tokens * self.plain_s - round_s

    def _expected(self, acceptance: Array) -> tuple[Array, Array]:
        """Tokens and seconds of a round, over the grid."""
        rates = np.asarray(acceptance, dtype=float)
        lengths = np.array(self.draft_lengths, dtype=float)
        drafted = np.asarray(tokens_per_pass(rates[:, None], lengths))
        tokens = 1.0 + self.drafting * (drafted - 1.0)
        round_s = np.broadcast_to(self.missed_s, (len(rates), *self.missed_s.shape)).copy()
        # A draft model catches up in one power only; the others are not worth computing.
        for index, power in np.argwhere(self.catch_up_s.any(axis=tuple(range(2, self._axes)))):
            weight = rates ** (power + 1)
            round_s[:, index] += np.multiply.outer(weight, self.catch_up_s[index, power])
        tokens = tokens.reshape(*tokens.shape, *(1,) * (self._axes - 2))
        return tokens, round_s + tokens * self.growth_s

    @property
    def _axes(self) -> int:
        return self.catch_up_s.ndim


def round_costs(
    strategy: AbstractDrafted,
    target: Checkpoint,
    machine: Machine,
    *,
    context: Quantity,
    draft_lengths: Sequence[int],
) -> RoundCosts:
    """Price the rounds of `strategy` at every draft length; its own length does not matter.

    `context` is a number or a one-dimensional array.

    Raises:
        InputError: a draft length no round can have, a draft that does not speak the target's
            tokens, or a weight format that was not measured.
    """
    longest, shape = max(draft_lengths), np.shape(context)
    missed = np.zeros((len(draft_lengths), *shape))
    catch_up = np.zeros((len(draft_lengths), longest, *shape))
    for index, length in enumerate(draft_lengths):
        rounds = strategy.with_length(length).rounds(target, machine, context)
        seconds = [np.broadcast_to(np.asarray(each.round_s), shape) for each in rounds]
        missed[index] = seconds[0]
        catch_up[index, :length] = np.diff(seconds, axis=0)
    batch = strategy.batch
    grown_s = growth_s(target, machine, context=context, sequences=batch)
    grown_s = grown_s + strategy.draft_growth_s(target, machine, context)
    plain = Plain(sequences=batch).round(target, machine, context)
    return RoundCosts(
        draft_lengths=tuple(draft_lengths),
        missed_s=missed,
        catch_up_s=catch_up,
        growth_s=np.asarray(grown_s, dtype=float),
        plain_s=np.asarray(plain.round_s, dtype=float),
        drafting=strategy.drafting,
    )
