r"""Prompt lookup: guess that the text goes on as it did the last time the same words occurred.

The draft is a search for the last n tokens in the text so far: no pass at all, and nothing in
memory. When the search finds nothing the round is a plain pass, but an awaited one, since the
tokens have to be looked at before the next search. With m the share of rounds that find a match,

.. math:: T = m\, t_{target}(k + 1) + (1 - m)\, t_{target}(1) + t_{sync}, \qquad
          E = m\, E(k) + 1 - m

In a batch one match makes the pass as wide for every sequence, so that m becomes
:math:`1 - (1 - m)^B` in T but not in E.

Assumes k tokens are proposed at every match. The search runs on the host between rounds, where
nothing hides it, and is priced at nothing: microseconds for a few thousand tokens, not measured.
Sources: the n-gram decoders of transformers (`prompt_lookup_num_tokens`) and vLLM; not in mlx-lm
0.32.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from model.cost.forward import PassCost, forward_pass
from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.strategies.base import Round, Settings, expected_round
from model.strategies.drafted import AbstractDrafted, drafted_round
from model.units import Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PromptLookup(AbstractDrafted):
    """Drafts copied from the text; `match` is the share of rounds that find one.

    Raises:
        InputError: a draft length or batch out of range, or a share outside [0, 1].
    """

    match: float = 1.0

    def __post_init__(self) -> None:
        AbstractDrafted.__post_init__(self)
        if not 0.0 <= self.match <= 1.0:
            raise InputError(
                f"match {self.match:g}", "is not a share of rounds", "give a number in [0, 1]"
            )

    @property
    def name(self) -> str:  # noqa: D102
        return "prompt-lookup"

    @property
    def settings(self) -> Settings:  # noqa: D102
        return {**self.drafted_settings, "match": self.match}

    @property
    def drafting(self) -> float:  # noqa: D102
        return self.match

    def first_rows(self, accepted: int) -> int:  # noqa: D102
        return 0

    @property
    def later_rows(self) -> tuple[int, ...]:  # noqa: D102
        return ()

    def draft_pass(  # noqa: D102
        self, target: Checkpoint, machine: Machine, context: Quantity, rows: int
    ) -> PassCost:
        raise AssertionError("a search needs no pass")

    def rounds(self, target: Checkpoint, machine: Machine, context: Quantity) -> tuple[Round, ...]:
        """A round whatever the one before accepted: the mean of matched and unmatched ones."""
        matched = drafted_round([], self.verify_pass(target, machine, context), machine)
        single = forward_pass(target, machine, rows=1, context=context, sequences=self.sequences)
        unmatched = drafted_round([], single, machine)
        no_match = (1.0 - self.match) ** self.sequences
        shares = np.array([1.0 - no_match, no_match])
        return (expected_round([matched, unmatched], shares),) * (self.draft_length + 1)

    def warnings(self, target: Checkpoint) -> tuple[str, ...]:  # noqa: D102
        return self.rewind_warnings(target)
