r"""Block drafters (DFlash, DSpark): one pass of a small network proposes every token of a round.

.. math::

   T(n) = \bigl\{ t_{states}(n + 1) + t_{block}(b) + k\, t_{correction},\;
          t_{target}(k + 1) \bigr\}_{pipeline} + t_{sync}

* :math:`t_{states}`: the states that the target left of the n accepted tokens and its own go
  through `fc`, and every layer makes keys and values of them; this is the accept hook, and its
  keys and values are all that stays in the cache.
* :math:`t_{block}`: the layers over b rows, the last token and masks: b = k + 1 for DFlash, b = k
  for DSpark, which drafts from the last token's own row. DFlash makes logits of every mask, DSpark
  of the rows that it drafts from. The matrices of keys and values are read a second time. Weights
  are read once whatever k is.
* :math:`t_{correction}`: DSpark corrects the logits of a token by the token before it, with one
  product of the vocabulary's width for each draft token, one after the other.

Source: mlx-vlm 0.7.10, `speculative/drafters/qwen3_dflash/dflash.py`, `dspark/dspark.py`,
`dflash2/dflash2.py` and `speculative/dflash.py`. There the block is as long as the round asks for;
for a runtime that fills the block of its training and verifies the first k, state `block_rows`.
Rounds, speedup and further assumptions are those of :mod:`model.strategies.drafted`.

Where it stops holding: mlx-vlm shortens the block of some heads while acceptance is low, and drafts
the sequences of a batch one after the other, where one pass for all is priced. Of DFlash 2 the
look-ups of token pairs are left out. Nothing here was measured as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from model.cost.cache_growth import growth_s
from model.cost.forward import PassCost, forward_pass, total
from model.cost.weight_cost import siblings_time
from model.errors import InputError
from model.machine.machine import Machine
from model.machine.row_law import ProductTime
from model.network.checkpoint import Checkpoint, Formats
from model.network.draft_head import DraftHead, HeadKind
from model.network.layer import Layer
from model.network.matrix import Siblings
from model.strategies.base import Settings
from model.strategies.drafted import AbstractDrafted
from model.units import Quantity

KEYS_AND_VALUES = ("self_attn.k_proj", "self_attn.v_proj")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDrafter(AbstractDrafted):
    """A head that proposes `draft_length` tokens a round in one pass.

    `head` is its checkpoint bound to the target, `design` what its config says
    (:func:`model.network.head_target.load_head` gives both). `block_rows` are the rows of the
    pass where the runtime does not fit them to the draft length.

    Raises:
        InputError: a draft length or batch no round can have, a draft longer than the block, or a
            head that does not draft blocks.
    """

    head: Checkpoint
    design: DraftHead
    block_rows: int | None = None

    def __post_init__(self) -> None:
        AbstractDrafted.__post_init__(self)
        head, longest = f"head {self.head.architecture.name}", self.design.longest_draft
        if not self.design.kind.drafts_blocks:
            raise InputError(head, "drafts token by token", "use a draft head")
        if longest is not None and self.draft_length > longest:
            wrong = f"is more than the {longest} tokens that {head} drafts in a block"
            right = f"give a whole number from 1 to {longest}"
            raise InputError(f"draft length {self.draft_length}", wrong, right)
        if self.block_rows is not None and self.block_rows < self.fitted_rows:
            wrong = f"are too few for a draft of {self.draft_length} tokens"
            raise InputError(
                f"block rows {self.block_rows}", wrong, f"give {self.fitted_rows} or more"
            )

    @property
    def name(self) -> str:  # noqa: D102
        return "block-drafter"

    @property
    def settings(self) -> Settings:  # noqa: D102
        rows = {} if self.block_rows is None else {"block_rows": self.block_rows}
        return {
            "head": self.head.architecture.name,
            "head_format": self.head.weight_format.name,
            **rows,
            **self.drafted_settings,
        }

    @property
    def fitted_rows(self) -> int:
        """Rows of the shortest block that proposes the draft."""
        return self.draft_length + (self.design.kind is not HeadKind.DSPARK)

    @property
    def head_rows(self) -> int:
        """Rows of the block that logits are made of."""
        if self.design.kind is HeadKind.DSPARK:
            return self.draft_length
        return (self.block_rows or self.fitted_rows) - 1

    def first_rows(self, accepted: int) -> int:
        """States of the target that a round takes in: one more than were accepted."""
        return accepted + 1

    @property
    def later_rows(self) -> tuple[int, ...]:
        """None: the block is drafted in the pass that takes the states in."""
        return ()

    def draft_pass(
        self, target: Checkpoint, machine: Machine, context: Quantity, rows: int
    ) -> PassCost:
        """The states of `rows` tokens taken in, the block, and the corrections of its logits.

        Raises:
            InputError: the head is of another target.
        """
        self.design.check_target(target.architecture)
        block = forward_pass(
            self.design.past_fusion(self.head),
            machine,
            rows=self.block_rows or self.fitted_rows,
            context=context,
            sequences=self.sequences,
            head_rows=self.head_rows,
        )
        with_states = self._with_states(block, machine, rows * self.sequences)
        return self._with_corrections(with_states, machine)

    def _with_states(self, cost: PassCost, machine: Machine, rows: int) -> PassCost:
        if self.design.fusion is not None:
            formats = self.head.entry_formats
            cost = with_products(cost, machine, self.design.fusion, formats, rows=rows)
        for layer, repeats, formats in self.head.layer_kinds:
            siblings = keys_and_values(layer)
            cost = with_products(cost, machine, siblings, formats, rows=rows, count=repeats)
        return cost

    def _with_corrections(self, cost: PassCost, machine: Machine) -> PassCost:
        matrix, rows = self.design.correction, self.sequences
        if matrix is None:
            return cost
        architecture = self.head.architecture
        stored_as = self.head.matrix_format(architecture.outer_path(matrix), matrix)
        siblings = Siblings(name="correction", matrices=(matrix,))
        formats = {matrix.name: stored_as}
        count = self.draft_length
        cost = with_products(cost, machine, siblings, formats, rows=rows, count=count)
        # The corrected logits are added up and searched once more.
        sampled_s = count * rows * matrix.columns * machine.device.logit_s
        return replace(
            cost,
            arithmetic_s=cost.arithmetic_s + sampled_s,
            lower_s=cost.lower_s + sampled_s,
            upper_s=cost.upper_s + sampled_s,
        )

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
        if self.design.block_length is not None:
            return rewind
        return (*rewind, f"{self.head.architecture.name} does not state how long its blocks are")


def keys_and_values(layer: Layer) -> Siblings:
    """What a layer makes of the target's states: keys, and values where they are not the keys."""
    found = tuple(
        matrix
        for siblings in layer.mixer_siblings
        for matrix in siblings.matrices
        if matrix.name in KEYS_AND_VALUES
    )
    return Siblings(name="kv", matrices=found)


def with_products(
    cost: PassCost,
    machine: Machine,
    siblings: Siblings,
    formats: Formats,
    *,
    rows: int,
    count: int = 1,
) -> PassCost:
    """A pass that also multiplies `rows` with siblings, `count` times.

    Its commits stay: a few products are a small share of the kernels of a pass.
    """
    times: list[tuple[int, ProductTime]] = [
        (count, siblings_time(machine, siblings, formats, rows))
    ]
    kernel_s = count * machine.device.kernel_s
    memory_s = total(times, lambda time: time.memory_s)
    submitted_s: Quantity = 0.0
    for matrix in siblings.matrices:
        submitted_s = submitted_s + count * machine.submission(formats[matrix.name]).at(rows)
    lower_s = total(times, lambda time: np.maximum(time.memory_s, time.arithmetic_s))
    upper_s = total(times, lambda time: time.memory_s + time.arithmetic_s)
    return replace(
        cost,
        weights_s=cost.weights_s + memory_s,
        arithmetic_s=cost.arithmetic_s + total(times, lambda time: time.total_s) - memory_s,
        dispatch_s=cost.dispatch_s + kernel_s,
        lower_s=cost.lower_s + kernel_s + lower_s,
        upper_s=cost.upper_s + kernel_s + upper_s,
        submit_s=cost.submit_s + submitted_s,
    )
