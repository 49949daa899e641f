"""A trained draft head: a small network that proposes the next tokens of one target.

A *token drafter* runs one pass for each draft token, a *block drafter* one pass for all of them.
Either reads hidden states of its target, and most borrow the target's tables: its embedding to
look tokens up, its LM head for the logits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import final

from model.errors import InputError
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint
from model.network.matrix import Matrix, Siblings


class HeadKind(StrEnum):
    """Families of heads, by how a round uses them."""

    MTP = "mtp"
    """A layer of the target's own kind behind its last (multi-token prediction)."""
    EAGLE = "eagle3"
    """A layer fed with the states of three layers of the target (EAGLE-3, arXiv 2503.01840)."""
    ASSISTANT = "assistant"
    """Layers that read the target's caches and have none of their own (Gemma 4)."""
    REDRAFTER = "redrafter"
    """A recurrent cell and residual blocks (ReDrafter, arXiv 2403.09919)."""
    DFLASH = "dflash"
    """Layers that fill a block of masks in one pass (DFlash)."""
    DFLASH2 = "dflash2"
    """DFlash with convolutions, and a choice among the likeliest tokens of each position."""
    DSPARK = "dspark"
    """DFlash whose logits are corrected token by token (a Markov head)."""

    @property
    def drafts_blocks(self) -> bool:
        """Whether one pass proposes all tokens of a round."""
        return self in (HeadKind.DFLASH, HeadKind.DFLASH2, HeadKind.DSPARK)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DraftHead:
    """What a head's config says beside its architecture.

    `target` names the model it was trained for, None where the config does not;
    `target_hidden_size` is the width of the states it reads. `block_length` is the config's
    `block_size`: for DFlash the last token and its drafts, for DSpark the drafts alone; None for a
    token drafter or where it is not stated. `fusion` is the one of the architecture's entry that
    only states of the target go through (the rest of the entry is read at every pass),
    `correction` the matrix that is multiplied once for each draft token after the block.
    """

    architecture: Architecture
    kind: HeadKind
    target: str | None
    target_hidden_size: int
    block_length: int | None = None
    fusion: Siblings | None = None
    correction: Matrix | None = None

    @property
    def longest_draft(self) -> int | None:
        """The most tokens that one block proposes; None where nothing limits them."""
        if self.block_length is None:
            return None
        return self.block_length - (self.kind is not HeadKind.DSPARK)

    def check_target(self, target: Architecture) -> None:
        """Refuse a target that the head was not trained for, by sizes alone.

        Raises:
            InputError: the target's states or its vocabulary are not of the head's size.
        """
        sizes = (
            ("reads states of", self.target_hidden_size, target.hidden_size, "numbers"),
            ("has a vocabulary of", self.architecture.vocab_size, target.vocab_size, "tokens"),
        )
        for verb, ours, theirs, unit in sizes:
            if ours != theirs:
                right = f"choose a head of {target.name}"
                raise InputError(
                    f"head {self.architecture.name}",
                    f"{verb} {ours} {unit}, {target.name} has {theirs}",
                    right if self.target is None else f"{right}, or {self.target} as the target",
                )

    def past_fusion(self, head: Checkpoint) -> Checkpoint:
        """The head's checkpoint without its fusion: what a pass over its own states reads."""
        return head if self.fusion is None else _without(head, self.fusion)


@lru_cache(maxsize=64)
def _without(head: Checkpoint, fusion: Siblings) -> Checkpoint:
    entry = tuple(each for each in head.architecture.entry if each != fusion)
    return replace(head, architecture=replace(head.architecture, entry=entry))
