"""Each strategy from its settings on the command line, with its progress or what it would need."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias, final

from model.commands import diffusion_options, network_options, tree_options
from model.commands import options as shared
from model.commands.progress_options import Settled, settled
from model.commands.skip_options import skipped_sets
from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.head_target import heads_of, load_head
from model.network.target import load_target
from model.prediction.need import Need
from model.progress.acceptance import Acceptance
from model.progress.published import TaskProgress
from model.strategies.base import AbstractStrategy
from model.strategies.block_drafter import BlockDrafter
from model.strategies.draft_head import TrainedHead
from model.strategies.drafted import AbstractDrafted
from model.strategies.layer_skip import LayerSkip
from model.strategies.plain import Plain
from model.strategies.prompt_lookup import PromptLookup
from model.strategies.replacement import Replacement
from model.strategies.speculative import Speculative

ALL = "all"
SHOWN_BATCH = 4
SHOWN_FRACTIONS = (0.25, 0.5)
UNKNOWN = Acceptance(by_position=(0.0,))
"""Stands in a strategy until its acceptance is known; rounds do not depend on it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the strategies are asked about, and the options that describe them."""

    options: argparse.Namespace
    target: Checkpoint
    draft: Checkpoint | None
    machine: Machine
    context: float
    alone: bool
    """Whether one drafted strategy is asked for, which then owns a bare `--acceptance`."""

    @property
    def batch(self) -> int:
        """Sequences side by side."""
        if self.options.batch is None:
            return 1
        return shared.whole_number("--batch", self.options.batch, least=1, most=1024)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answerable:
    """A strategy to predict, and the published rows that gave its progress, if any did."""

    strategy: AbstractStrategy
    published: TaskProgress | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A strategy that the target, the machine or the settings do not allow, and why."""

    strategy: str
    reason: str


Entry: TypeAlias = Answerable | Need | Refused


def _plain(question: Question) -> Iterator[Entry]:
    yield Answerable(strategy=Plain())


def _batch(question: Question) -> Iterator[Entry]:
    unset = question.options.batch is None
    if unset and question.options.strategy != ALL:
        raise InputError("batch size", "is not given", "add --batch 4")
    sequences = SHOWN_BATCH if unset else question.batch
    if sequences == 1:
        raise InputError("--batch 1", "is plain decoding", "give 2 or more sequences")
    yield Answerable(strategy=Plain(sequences=sequences))


def _speculative(question: Question) -> Iterator[Entry]:
    draft = question.draft
    if draft is None:
        raise InputError("draft model", "is not named", "add --draft MODEL")
    yield _drafted(
        question,
        Speculative(draft=draft, draft_length=1, acceptance=UNKNOWN, sequences=question.batch),
    )


def _head(question: Question) -> Iterator[Entry]:
    """The head that is named, or among all strategies every shipped head of the target."""
    options = question.options
    names = (options.head,)
    if options.head is None:
        names = heads_of(question.target.architecture.name)
        if options.strategy != ALL:
            shown = f"one of {', '.join(names)}" if names else "a folder with its config.json"
            raise InputError("draft head", "is not named", f"add --head: {shown}")
    for name in names:
        head, design = load_head(name, options.head_format, question.target)
        head = question.machine.as_run(head)
        kind = BlockDrafter if design.kind.drafts_blocks else TrainedHead
        strategy = kind(
            head=head,
            design=design,
            draft_length=1,
            acceptance=UNKNOWN,
            sequences=question.batch,
        )
        tree = tree_options.read_tree(options)
        if tree is None:
            yield _drafted(question, strategy)
        else:
            grown = tree_options.grown(strategy, tree, options, takes_bare=question.alone)
            yield Answerable(strategy=grown)


def head_strategies(question: Question) -> set[str]:
    """The words for the heads that are asked for: token by token, a block at once, or both."""
    options = question.options
    names = (options.head,)
    if options.head is None:
        if options.strategy != ALL:
            return {"draft-head"}
        names = heads_of(question.target.architecture.name)
        if not names:
            return set()
    found: set[str] = set()
    for name in names:
        with suppress(InputError):  # what is wrong with a head is said where it is built
            _, design = load_head(name, options.head_format, question.target)
            found.add("block-drafter" if design.kind.drafts_blocks else "draft-head")
    return found or {"draft-head"}


def _layer_skip(question: Question) -> Iterator[Entry]:
    shown = SHOWN_FRACTIONS if question.options.strategy == ALL else ()
    for skipped in skipped_sets(question.options, question.target.architecture, shown):
        yield _drafted(
            question,
            LayerSkip(
                skipped=skipped,
                draft_length=1,
                acceptance=UNKNOWN,
                sequences=question.batch,
            ),
        )


def _prompt_lookup(question: Question) -> Iterator[Entry]:
    match = question.options.match
    yield _drafted(
        question,
        PromptLookup(
            draft_length=1,
            acceptance=UNKNOWN,
            sequences=question.batch,
            match=1.0 if match is None else shared.number("--match", match),
        ),
    )


def _drafted(question: Question, strategy: AbstractDrafted) -> Entry:
    options = question.options
    bare = question.alone or isinstance(strategy, Speculative)
    found = settled(
        strategy,
        options,
        question.target,
        question.machine,
        context=question.context,
        takes_bare_acceptance=bare,
    )
    if isinstance(found, Settled):
        return Answerable(strategy=found.strategy, published=found.published)
    return found


def _diffusion(question: Question) -> Iterator[Entry]:
    options, target = question.options, question.target
    strategy, published = diffusion_options.block_diffusion(
        options, target, context=question.context
    )
    yield Answerable(strategy=strategy, published=published)


def _instead(question: Question) -> Iterator[Entry]:
    asked = question.options.instead
    if not asked and question.options.strategy != ALL:
        raise InputError("other network", "is not named", "add --instead MODEL[@FORMAT]")
    for text in asked or _fewer_bits(question):
        model, _, format_name = text.partition("@")
        stored_as = format_name or question.options.format
        other = question.machine.as_run(load_target(model, stored_as))
        if question.target.cache_format is not None:
            other = network_options.with_cache(question.options.kv_format, other)
        yield Answerable(strategy=Replacement(other=other))


def _fewer_bits(question: Question) -> list[str]:
    """The target in the other common formats that the machine has laws for."""
    own = question.target.weight_format.name.removesuffix("-s32")
    measured = {key for key, _ in question.machine.laws}
    return [
        f"{question.options.target}@{name}"
        for name, key in (("4bit", "affine"), ("8bit", "affine"), ("bf16", "float"))
        if name != own and measured & {name, key}
    ]


BUILDERS: Mapping[str, Callable[[Question], Iterator[Entry]]] = {
    "plain": _plain,
    "speculative": _speculative,
    "draft-head": _head,
    "layer-skip": _layer_skip,
    "prompt-lookup": _prompt_lookup,
    "diffusion": _diffusion,
    "batch": _batch,
    "instead": _instead,
}
"""What builds each strategy's entries, in the order in which they are shown."""
