r"""Speculative decoding with a draft model: guess k tokens, check them in one pass.

A round is k draft passes of one row and one target pass of k + 1 rows, queued without waiting,
then one read of the tokens:

.. math::

   T(k) = \Bigl\{ k\, t_{draft}(1),\; t_{target}(k + 1) \Bigr\}_{pipeline} + t_{sync}
          + P_{all} \bigl(t_{draft}(2) - t_{draft}(1)\bigr), \qquad
   S = \frac{E(k)\, t_{plain}}{T(k)}

The braces are the recurrence of :mod:`model.pipeline`. After a round that accepted its whole
draft, the draft has not seen its own last token, so its next pass has two rows; that happens
with probability :math:`P_{all} = \prod p_i`.

Assumes greedy decoding or exact-match sampling as in mlx-lm 0.32's `speculative_generate_step`,
and caches that can be trimmed. Draft length 0 is the same loop without a draft: plain decoding
that waits for every token. Leviathan et al. 2023 (arXiv 2211.17192) price a verify pass as one
plain pass; here it costs what the row law says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.acceptance import MAX_DRAFT_LENGTH, Acceptance
from model.checkpoint import Checkpoint
from model.errors import InputError
from model.forward import forward_pass
from model.machine import Machine
from model.pipeline import awaited_s
from model.strategies.base import AbstractStrategy, Round
from model.units import Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Speculative(AbstractStrategy):
    """Speculative decoding with `draft` proposing `draft_length` tokens a round.

    Raises:
        InputError: a draft length outside 1..64.
    """

    draft: Checkpoint
    draft_length: int
    acceptance: Acceptance

    def __post_init__(self) -> None:
        if not 1 <= self.draft_length <= MAX_DRAFT_LENGTH:
            raise InputError(
                f"draft length {self.draft_length}",
                "is not a length a round can have",
                f"give a whole number from 1 to {MAX_DRAFT_LENGTH}",
            )

    @property
    def name(self) -> str:  # noqa: D102
        return "speculative"

    @property
    def settings(self) -> dict[str, str | int | float | list[float]]:  # noqa: D102
        return {
            "draft": self.draft.architecture.name,
            "draft_format": self.draft.weight_format.name,
            "draft_length": self.draft_length,
            "acceptance": list(self.acceptance.by_position),
        }

    @property
    def tokens_per_pass(self) -> float:  # noqa: D102
        return self.acceptance.tokens_per_pass(self.draft_length)

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:  # noqa: D102
        return (self.draft,)

    @property
    def rows(self) -> int:  # noqa: D102
        return self.draft_length + 1

    def round(self, target: Checkpoint, machine: Machine, context: Quantity) -> Round:
        """Draft, verify, read: `host` is what the device waits for, beyond its own work.

        Raises:
            InputError: the draft's vocabulary is not the target's.
        """
        round_, catch_up_s = self.missed_round(target, machine, context)
        expected_s = self.acceptance.all_accepted(self.draft_length) * catch_up_s
        return Round(
            parts_s=tuple(
                (name, part_s + expected_s if name == "draft" else part_s)
                for name, part_s in round_.parts_s
            ),
            lower_s=round_.lower_s + expected_s,
            upper_s=round_.upper_s + expected_s,
        )

    def missed_round(
        self, target: Checkpoint, machine: Machine, context: Quantity
    ) -> tuple[Round, Quantity]:
        """A round after one that rejected something, and what it costs more after a full accept.

        Neither depends on the acceptance.
        """
        check_vocabulary(target, self.draft)
        one = forward_pass(self.draft, machine, rows=1, context=context)
        two = forward_pass(self.draft, machine, rows=2, context=context)
        verify = forward_pass(target, machine, rows=self.rows, context=context)
        sync_s = machine.host.sync_s
        draft_s = self.draft_length * one.device_s
        waited_s = awaited_s([one] * self.draft_length + [verify], sync_s)
        idle_s = waited_s - sync_s - draft_s - verify.device_s
        round_ = Round(
            parts_s=(
                ("draft", draft_s),
                ("weights", verify.weights_s),
                ("kv", verify.kv_s),
                ("arithmetic", verify.arithmetic_s),
                ("dispatch", verify.dispatch_s),
                ("host", idle_s),
                ("sync", sync_s),
            ),
            lower_s=self.draft_length * one.lower_s + verify.lower_s + idle_s + sync_s,
            upper_s=self.draft_length * one.upper_s + verify.upper_s + idle_s + sync_s,
        )
        return round_, two.device_s - one.device_s


def check_vocabulary(target: Checkpoint, draft: Checkpoint) -> None:
    """Refuse a draft that does not speak the target's tokens.

    Sizes of one model type may differ by up to 1 %: some families pad the same vocabulary to
    different multiples (Qwen2.5: 151,936 and 152,064).

    Raises:
        InputError: the vocabularies differ.
    """
    ours, theirs = target.architecture, draft.architecture
    gap = abs(ours.vocab_size - theirs.vocab_size)
    padded = ours.model_type == theirs.model_type and gap <= 0.01 * ours.vocab_size
    if gap and not padded:
        raise InputError(
            f"draft {theirs.name}",
            f"has a vocabulary of {theirs.vocab_size} tokens, {ours.name} has {ours.vocab_size}",
            "choose a draft of the same family",
        )
