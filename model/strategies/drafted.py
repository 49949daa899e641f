r"""Rounds of draft and verify: whatever guesses, the target checks all guesses in one pass.

A round is some draft passes and one target pass of k + 1 rows, queued without waiting, then one
read of the tokens. What the first draft pass has to catch up on depends on n, the draft tokens
that the round before accepted:

.. math::

   T(n) = \Bigl\{ t_{draft,1}(n), \dots, t_{draft,d},\; t_{target}(k + 1)
          \Bigr\}_{pipeline} + t_{sync}, \qquad
   S = \frac{E(k)\; t_{plain}}{\sum_n P_n\, T(n)}

The braces are the recurrence of :mod:`model.cost.pipeline`; :math:`P_n = (1 - p_{n+1})
\prod_{i \le n} p_i` for n < k, and :math:`P_k = \prod p_i`.

Assumes greedy decoding or exact-match sampling as in mlx-lm 0.32's `speculative_generate_step`,
and caches that can be trimmed. Leviathan et al. 2023 (arXiv 2211.17192) price a verify pass as
one plain pass; here it costs what the row law says. With a batch, every sequence has its own
accepted number and all share the pass; the catch-up is then the mean over sequences.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from model.cost.cache_growth import growth_s
from model.cost.forward import PassCost, forward_pass
from model.cost.pipeline import awaited_s
from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.progress.acceptance import MAX_DRAFT_LENGTH, Acceptance
from model.strategies.base import (
    AbstractStrategy,
    Round,
    Settings,
    expected_round,
    target_parts,
)
from model.strategies.plain import check_batch
from model.units import Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractDrafted(AbstractStrategy):
    """A strategy whose rounds draft `draft_length` tokens of each sequence and verify them.

    Raises:
        InputError: a draft length outside 1..64, or a batch outside 1..1024.
    """

    draft_length: int
    acceptance: Acceptance
    sequences: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.draft_length <= MAX_DRAFT_LENGTH:
            raise InputError(
                f"draft length {self.draft_length}",
                "is not a length a round can have",
                f"give a whole number from 1 to {MAX_DRAFT_LENGTH}",
            )
        check_batch(self.sequences)

    def with_length(self, draft_length: int) -> Self:
        """The same strategy with another draft length."""
        return replace(self, draft_length=draft_length)

    def with_acceptance(self, acceptance: Acceptance) -> Self:
        """The same strategy with another acceptance."""
        return replace(self, acceptance=acceptance)

    @property
    def drafting(self) -> float:
        """The share of rounds that have a draft; the others commit one token."""
        return 1.0

    @property
    def tokens_per_pass(self) -> float:  # noqa: D102
        drafted = self.acceptance.tokens_per_pass(self.draft_length)
        return self.drafting * drafted + 1.0 - self.drafting

    @property
    def batch(self) -> int:  # noqa: D102
        return self.sequences

    @property
    def verified_rows(self) -> int:
        """Rows of the verify pass for each sequence: the draft and the token before it."""
        return self.draft_length + 1

    @property
    def rows(self) -> int:  # noqa: D102
        return self.verified_rows * self.sequences

    @property
    def reads(self) -> int:
        """How often the host waits for the device in a round."""
        return 1

    def first_rows(self, accepted: int) -> int:
        """Rows of a round's first draft pass after a round that accepted `accepted`; 0: none.

        A draft that keeps its own cache lacks its last token after a full accept, and no other.
        """
        return 2 if accepted == self.draft_length else 1

    @property
    def later_rows(self) -> tuple[int, ...]:
        """Rows of every further draft pass of a round: one for each further token."""
        return (1,) * (self.draft_length - 1)

    @abstractmethod
    def draft_pass(
        self, target: Checkpoint, machine: Machine, context: Quantity, rows: int
    ) -> PassCost:
        """One pass of the draft over `rows` tokens of each sequence."""

    def later_pass(
        self, target: Checkpoint, machine: Machine, context: Quantity, rows: int
    ) -> PassCost:
        """A further pass of the draft; like the first unless a draft skips something then."""
        return self.draft_pass(target, machine, context, rows)

    def draft_growth_s(self, target: Checkpoint, machine: Machine, context: Quantity) -> Quantity:
        """Making room in the draft's own cache, for each token that stays."""
        del target, machine, context
        return 0.0

    @property
    def drafted_settings(self) -> Settings:
        """The settings that every drafted strategy has."""
        found: dict[str, str | int | float | list[float]] = {
            "draft_length": self.draft_length,
            "acceptance": list(self.acceptance.by_position),
        }
        return found if self.sequences == 1 else found | {"batch": self.sequences}

    def rewind_warnings(self, *networks: Checkpoint) -> tuple[str, ...]:
        """A warning for each network whose state rejected tokens cannot be taken out of."""
        return tuple(
            f"{each.architecture.name} has recurrent layers: mlx-lm cannot take rejected tokens "
            "back, a runtime that can pays for copies of the state on top"
            for each in networks
            if not each.architecture.can_rewind
        )

    def verify_pass(self, target: Checkpoint, machine: Machine, context: Quantity) -> PassCost:
        """The target's pass over the draft and the token before it."""
        rows = self.verified_rows
        return forward_pass(target, machine, rows=rows, context=context, sequences=self.sequences)

    def round(self, target: Checkpoint, machine: Machine, context: Quantity) -> Round:
        """Draft, verify, read: `host` is what the device waits for, beyond its own work.

        Raises:
            InputError: a draft that does not speak the target's tokens.
        """
        rounds = self.rounds(target, machine, context)
        grown_s = growth_s(target, machine, context=context, sequences=self.sequences)
        grown_s = grown_s + self.draft_growth_s(target, machine, context)
        usual = expected_round(rounds, self.acceptance.accepted_counts(self.draft_length))
        growth = self.tokens_per_pass * grown_s
        return Round(
            parts_s=(*usual.parts_s, ("growth", growth)),
            lower_s=usual.lower_s + growth,
            upper_s=usual.upper_s + growth,
        )

    def rounds(self, target: Checkpoint, machine: Machine, context: Quantity) -> tuple[Round, ...]:
        """The round after one that accepted n tokens, for n = 0..k, without the caches' growth.

        None of them depends on the acceptance.
        """
        verify = self.verify_pass(target, machine, context)
        further = {
            rows: self.later_pass(target, machine, context, rows) for rows in set(self.later_rows)
        }
        later = [further[rows] for rows in self.later_rows]

        def round_after(rows: int) -> Round:
            first = [self.draft_pass(target, machine, context, rows)] if rows else []
            return drafted_round([*first, *later], verify, machine, reads=self.reads)

        first_rows = [self.first_rows(accepted) for accepted in range(self.draft_length + 1)]
        kinds = {rows: round_after(rows) for rows in set(first_rows)}
        return tuple(kinds[rows] for rows in first_rows)


def drafted_round(
    drafts: Sequence[PassCost], verify: PassCost, machine: Machine, *, reads: int = 1
) -> Round:
    """The round of these draft passes and this verify pass, queued and then read."""
    sync_s = reads * machine.host.sync_s
    draft_s: Quantity = 0.0
    lower_s, upper_s = verify.lower_s, verify.upper_s
    for cost in drafts:
        draft_s = draft_s + cost.device_s
        lower_s, upper_s = lower_s + cost.lower_s, upper_s + cost.upper_s
    idle_s = awaited_s([*drafts, verify], sync_s) - sync_s - draft_s - verify.device_s
    return Round(
        parts_s=(
            ("draft", draft_s),
            *target_parts(verify),
            ("host", idle_s),
            ("sync", sync_s),
        ),
        lower_s=lower_s + idle_s + sync_s,
        upper_s=upper_s + idle_s + sync_s,
    )
