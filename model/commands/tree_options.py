"""Several beams of draft tokens on the command line, and the progress that they have."""

from __future__ import annotations

import argparse

from model.commands import options as shared
from model.errors import InputError
from model.strategies.block_drafter import BlockDrafter
from model.strategies.draft_head import TrainedHead
from model.strategies.token_tree import MAX_BEAMS, TokenTree

OF_ONE_CHAIN = ("acceptance", "accepted_fraction", "task", "collision")
"""Progress that counts one chain of tokens; what W beams make of it depends on the text."""


def read_tree(options: argparse.Namespace) -> TokenTree | None:
    """The tree that is asked for; None where none is.

    Raises:
        InputError: a number that cannot be, one beam, rows without beams, or no head that is named.
    """
    if options.beams is None:
        if options.tree_rows is not None:
            flag = shared.given("--tree-rows", options.tree_rows)
            raise InputError(flag, "changes nothing without several beams", "add --beams W")
        return None
    flag = shared.given("--beams", options.beams)
    beams = shared.whole_number("--beams", options.beams, least=1, most=MAX_BEAMS)
    if beams == 1:
        raise InputError(flag, "is a chain, as it is without", "give 2 or more beams")
    if options.head is None:
        raise InputError(flag, "is of one head, and none is named", "add --head HEAD")
    rows = None
    if options.tree_rows is not None:
        most = shared.MAX_DRAFT_LENGTH * MAX_BEAMS
        rows = shared.whole_number("--tree-rows", options.tree_rows, least=1, most=most)
    return TokenTree(beams=beams, stated_rows=rows)


def grown(
    strategy: TrainedHead | BlockDrafter,
    tree: TokenTree,
    options: argparse.Namespace,
    *,
    takes_bare: bool,
) -> TrainedHead:
    """The head with the tree and its tokens per pass, at the draft length that is given.

    `takes_bare` says that progress without a name means this strategy.

    Raises:
        InputError: a head that drafts blocks, progress of one chain, none at all, no draft length,
            or numbers that contradict each other.
    """
    flag = shared.given("--beams", options.beams)
    if isinstance(strategy, BlockDrafter):
        wrong = f"is of heads that draft token by token; {strategy.head.architecture.name} does not"
        raise InputError(flag, wrong, "leave it out")
    _refuse_progress_of_a_chain(options, strategy.name)
    length = shared.read_draft_length(options)
    if not takes_bare:
        raise InputError(flag, "needs tokens per pass of its own", "ask for draft-head alone")
    missing = ["--draft-length K"] if length is None else []
    stated = options.tokens_per_pass is not None or options.draft_share is not None
    missing += [] if stated else ["--tokens-per-pass X"]
    acceptance = None if missing else shared.read_acceptance(options, length)
    if length is None or acceptance is None:
        wrong = "has neither a best length nor a break-even that an acceptance would tell"
        raise InputError(flag, wrong, f"add {' '.join(missing)}")
    return TrainedHead(
        head=strategy.head,
        design=strategy.design,
        draft_length=length,
        acceptance=acceptance,
        sequences=strategy.sequences,
        tree=tree,
    )


def _refuse_progress_of_a_chain(options: argparse.Namespace, name: str) -> None:
    right = "give --tokens-per-pass of the beams"
    for option in OF_ONE_CHAIN:
        text = getattr(options, option)
        if text is not None:
            flag = shared.given(f"--{option.replace('_', '-')}", text)
            raise InputError(flag, "is of one draft, not of several beams", right)
    for text in options.acceptance_of:
        if text.startswith(f"{name}="):
            wrong = "is of one draft, not of several beams"
            raise InputError(f"--acceptance-of {text}", wrong, right)
