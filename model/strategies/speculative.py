r"""Speculative decoding with a draft model: guess k tokens, check them in one pass.

A round is k draft passes of one row and one target pass of k + 1 rows, queued without waiting,
then one read of the tokens:

.. math::

   T_r(k) = \Bigl\{ t_{draft}(r),\; (k - 1)\, t_{draft}(1),\; t_{target}(k + 1)
          \Bigr\}_{pipeline} + t_{sync}, \qquad
   S = \frac{E(k)\, t_{plain}}{(1 - P_{all})\, T_1(k) + P_{all}\, T_2(k)}

The braces are the recurrence of :mod:`model.pipeline`. After a round that accepted its whole
draft, the draft has not seen its own last token, so its first pass has r = 2 rows; that happens
with probability :math:`P_{all} = \prod p_i`.

Assumes greedy decoding or exact-match sampling as in mlx-lm 0.32's `speculative_generate_step`,
and caches that can be trimmed. Leviathan et al. 2023 (arXiv 2211.17192) price a verify pass as
one plain pass; here it costs what the row law says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from model.acceptance import MAX_DRAFT_LENGTH, Acceptance
from model.checkpoint import Checkpoint
from model.errors import InputError
from model.forward import PassCost, forward_pass
from model.machine import Machine
from model.pipeline import awaited_s
from model.strategies.base import AbstractStrategy, Round, mixed
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
        missed, caught_up = self.rounds(target, machine, context)
        return mixed(missed, caught_up, self.acceptance.all_accepted(self.draft_length))

    def rounds(
        self, target: Checkpoint, machine: Machine, context: Quantity
    ) -> tuple[Round, Round]:
        """A round after one that rejected something, and a round after a full accept.

        Neither depends on the acceptance.
        """
        check_vocabulary(target, self.draft)
        one = forward_pass(self.draft, machine, rows=1, context=context)
        two = forward_pass(self.draft, machine, rows=2, context=context)
        verify = forward_pass(target, machine, rows=self.rows, context=context)
        later = [one] * (self.draft_length - 1)
        sync_s = machine.host.sync_s
        return (
            drafted_round([one, *later], verify, sync_s),
            drafted_round([two, *later], verify, sync_s),
        )


def drafted_round(drafts: Sequence[PassCost], verify: PassCost, sync_s: Quantity) -> Round:
    """The round of these draft passes and this verify pass, queued and read once."""
    draft_s = total_s(cost.device_s for cost in drafts)
    idle_s = awaited_s([*drafts, verify], sync_s) - sync_s - draft_s - verify.device_s
    return Round(
        parts_s=(
            ("draft", draft_s),
            ("weights", verify.weights_s),
            ("kv", verify.kv_s),
            ("arithmetic", verify.arithmetic_s),
            ("dispatch", verify.dispatch_s),
            ("host", idle_s),
            ("sync", sync_s),
        ),
        lower_s=total_s(cost.lower_s for cost in drafts) + verify.lower_s + idle_s + sync_s,
        upper_s=total_s(cost.upper_s for cost in drafts) + verify.upper_s + idle_s + sync_s,
    )


def total_s(seconds: Iterable[Quantity]) -> Quantity:
    """The sum of times, numbers or arrays."""
    whole: Quantity = 0.0
    for each in seconds:
        whole = whole + each
    return whole


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
