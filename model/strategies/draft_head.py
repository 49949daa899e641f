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

Of a tree (:mod:`model.strategies.token_tree`) the later passes have a row for each beam; the hook
takes in one path, and its last row starts all of them. ReDrafter has no hook: each of its k passes
runs all W beams, which begin alike; its verify pass holds the last token once for each beam; and
its loop waits twice, for the number of accepted tokens and for the next one.

Sources: mlx-vlm 0.7.10, `speculative/drafters` (`accept_verified_tokens`, `draft_block`);
apple/ml-recurrent-drafter, `recurrent_drafting/mlx` (`beam_search_candidates`,
`tree_attention.pack`, `_update_kv_cache_and_input_ids`), whose beam length counts the last token:
k is one less. Rounds, speedup and further assumptions are those of :mod:`model.strategies.drafted`.

Where it stops holding: the hook makes logits of its last row alone, all of its rows are priced
here, which is too much where a pass is not bound by memory. The search among W times the
vocabulary in each pass of a tree is not priced; in ReDrafter's timings on M2 it does not show. A
head in bf16 took far longer on M1 Ultra and M5 Max than its bytes explain (8 ms for 0.83 GB,
lablup/mlxcel `mtp-drafter-step-profile-*-2026-08-17.md`); why is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.cost.cache_growth import growth_s
from model.cost.forward import PassCost, forward_pass
from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.draft_head import DraftHead, HeadKind
from model.strategies.base import Settings
from model.strategies.drafted import AbstractDrafted
from model.strategies.token_tree import CHAIN, TokenTree
from model.units import Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedHead(AbstractDrafted):
    """A head that proposes `draft_length` tokens a round, one in each of its passes.

    `head` is its checkpoint bound to the target, `design` what its config says
    (:func:`model.network.head_target.load_head` gives both). With a `tree` of several beams each
    of them has `draft_length` tokens, and `acceptance` is of the best of them.

    Raises:
        InputError: a draft length or batch no round can have, rows that the tree cannot have, or
            a head that drafts blocks.
    """

    head: Checkpoint
    design: DraftHead
    tree: TokenTree = CHAIN

    def __post_init__(self) -> None:
        AbstractDrafted.__post_init__(self)
        if self.design.kind.drafts_blocks:
            wrong = "drafts a block in one pass"
            raise InputError(f"head {self.head.architecture.name}", wrong, "use a block drafter")
        _ = self.verified_rows  # refuses what the tree cannot have

    @property
    def name(self) -> str:  # noqa: D102
        return "draft-head"

    @property
    def settings(self) -> Settings:  # noqa: D102
        found: Settings = {
            "head": self.head.architecture.name,
            "head_format": self.head.weight_format.name,
            **self.drafted_settings,
        }
        if not self.tree.branches:
            return found
        # The rates of a tree are of its best beam: as an "acceptance" they would mislead.
        chainless = {name: value for name, value in found.items() if name != "acceptance"}
        return {**chainless, "beams": self.tree.beams, "verified_rows": self.verified_rows}

    @property
    def verified_rows(self) -> int:
        """Rows of the verify pass for each sequence: those of the tree."""
        shared = self.design.kind is not HeadKind.REDRAFTER
        return self.tree.rows(self.draft_length, shares_last_token=shared)

    @property
    def reads(self) -> int:  # noqa: D102
        return 2 if self.design.kind is HeadKind.REDRAFTER else 1

    @property
    def later_rows(self) -> tuple[int, ...]:
        """A row for each beam in every further pass."""
        return (self.tree.beams,) * (self.draft_length - 1)

    def first_rows(self, accepted: int) -> int:  # noqa: D102
        if self.design.kind is HeadKind.EAGLE:
            return accepted + 1
        if self.design.kind is HeadKind.MTP:
            return AbstractDrafted.first_rows(self, accepted)
        return self.tree.beams if self.design.kind is HeadKind.REDRAFTER else 1

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
        return self.rewind_warnings(target)
