r"""Trained heads that draft token by token: one pass of the head for each draft token.

The last pass of a round left the target's states; a round of k draft tokens is

.. math::

   T(n) = \bigl\{ t_{head}(r_n),\; (k - 1)\, t_{head}(1),\; t_{target}(k + 1)
          \bigr\}_{pipeline} + t_{sync}

The first pass is the *accept hook*: it feeds the head what the target made of the n tokens that
the round before accepted, and drafts the first token. Its rows :math:`r_n` depend on what the head
keeps of the tokens it drafted:

* EAGLE-3 throws its own states away and takes the target's: n + 1 rows, through `fc`, which later
  passes do not read;
* an MTP head keeps the tokens that were accepted, and lacks only its last one after a full accept:
  1 row, or 2 if n = k;
* Gemma's assistants read the target's caches, and ReDrafter starts anew from the target's last
  state: always 1 row.

Every pass reads the head's own matrices, its attention cache and the matrix of the logits, which
mostly is the target's, in the target's format.

Source: mlx-vlm 0.7.10, `speculative/drafters` (`accept_verified_tokens`, `draft_block`). Rounds,
speedup and further assumptions are those of :mod:`model.strategies.drafted`.

Where it stops holding: the hook makes logits of its last row alone, all of its rows are priced
here, which is too much where a pass is not bound by memory. ReDrafter is priced with a beam of
one; a wider beam has as many rows in each draft pass, and verifies more. A head in bf16 took far
longer on M1 Ultra and M5 Max than its bytes explain (8 ms for 0.83 GB, lablup/mlxcel
`mtp-drafter-step-profile-*-2026-08-17.md`); why is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.cost.cache_cost import growth_s
from model.cost.forward import PassCost, forward_pass
from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.draft_head import DraftHead, HeadKind
from model.strategies.base import Settings
from model.strategies.drafted import AbstractDrafted
from model.units import Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedHead(AbstractDrafted):
    """A head that proposes `draft_length` tokens a round, one in each of its passes.

    `head` is its checkpoint bound to the target, `design` what its config says
    (:func:`model.network.head_target.load_head` gives both).

    Raises:
        InputError: a draft length or batch no round can have, or a head that drafts blocks.
    """

    head: Checkpoint
    design: DraftHead

    def __post_init__(self) -> None:
        AbstractDrafted.__post_init__(self)
        if self.design.kind.drafts_blocks:
            wrong = "drafts a block in one pass"
            raise InputError(f"head {self.head.architecture.name}", wrong, "use a block drafter")

    @property
    def name(self) -> str:  # noqa: D102
        return "draft-head"

    @property
    def settings(self) -> Settings:  # noqa: D102
        return {
            "head": self.head.architecture.name,
            "head_format": self.head.weight_format.name,
            **self.drafted_settings,
        }

    def first_rows(self, accepted: int) -> int:  # noqa: D102
        if self.design.kind is HeadKind.EAGLE:
            return accepted + 1
        if self.design.kind is HeadKind.MTP:
            return AbstractDrafted.first_rows(self, accepted)
        return 1

    def draft_pass(
        self, target: Checkpoint, machine: Machine, context: Quantity, rows: int
    ) -> PassCost:
        """The accept hook: a pass over states of the target.

        Raises:
            InputError: the head is of another target.
        """
        self.design.check_target(target.architecture)
        return forward_pass(
            self.head, machine, rows=rows, context=context, sequences=self.sequences
        )

    def later_pass(
        self, target: Checkpoint, machine: Machine, context: Quantity, rows: int
    ) -> PassCost:
        """A pass over the head's own last state, which skips what only the target's go through."""
        del target
        own = self.design.past_fusion(self.head)
        return forward_pass(own, machine, rows=rows, context=context, sequences=self.sequences)

    def draft_growth_s(  # noqa: D102
        self, target: Checkpoint, machine: Machine, context: Quantity
    ) -> Quantity:
        del target
        return growth_s(self.head, machine, context=context, sequences=self.sequences)

    def residents(self, target: Checkpoint) -> tuple[tuple[Checkpoint, int], ...]:
        """The target, and what the head itself stores: a borrowed table counts with the target."""
        return ((target, self.sequences), (self.head, self.sequences))

    def warnings(self, target: Checkpoint) -> tuple[str, ...]:  # noqa: D102
        rewind = self.rewind_warnings(target)
        if self.design.kind is not HeadKind.REDRAFTER:
            return rewind
        return (*rewind, "ReDrafter is priced with a beam of one; wider beams cost more rows")
