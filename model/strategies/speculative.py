r"""Speculative decoding with a draft model: guess k tokens, check them in one pass.

The k draft passes have one row each, but for the first after a round that accepted its whole
draft: the draft has not seen its own last token then, so that pass has two.

.. math:: T(n) = \bigl\{ t_{draft}(1 + [n = k]),\; (k - 1)\, t_{draft}(1),\;
          t_{target}(k + 1) \bigr\}_{pipeline} + t_{sync}

Rounds, speedup and assumptions are those of :mod:`model.strategies.drafted`. Source: mlx-lm
0.32.2, `speculative_generate_step`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.cost.cache_growth import growth_s
from model.cost.forward import PassCost, forward_pass
from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.strategies.base import Settings
from model.strategies.drafted import AbstractDrafted
from model.units import Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Speculative(AbstractDrafted):
    """Speculative decoding with `draft` proposing `draft_length` tokens a round."""

    draft: Checkpoint

    @property
    def name(self) -> str:  # noqa: D102
        return "speculative"

    @property
    def settings(self) -> Settings:  # noqa: D102
        return {
            "draft": self.draft.architecture.name,
            "draft_format": self.draft.weight_format.name,
            **self.drafted_settings,
        }

    def draft_pass(
        self, target: Checkpoint, machine: Machine, context: Quantity, rows: int
    ) -> PassCost:
        """One pass of the draft model.

        Raises:
            InputError: the draft's vocabulary is not the target's.
        """
        check_vocabulary(target, self.draft)
        return forward_pass(
            self.draft, machine, rows=rows, context=context, sequences=self.sequences
        )

    def draft_growth_s(  # noqa: D102
        self, target: Checkpoint, machine: Machine, context: Quantity
    ) -> Quantity:
        del target
        return growth_s(self.draft, machine, context=context, sequences=self.sequences)

    def residents(self, target: Checkpoint) -> tuple[tuple[Checkpoint, int], ...]:  # noqa: D102
        return ((target, self.sequences), (self.draft, self.sequences))

    def warnings(self, target: Checkpoint) -> tuple[str, ...]:  # noqa: D102
        return self.rewind_warnings(target, self.draft)


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
