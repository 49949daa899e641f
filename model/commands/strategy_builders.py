"""Each strategy from its settings on the command line, with its progress or what it would need."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

from model.commands import options as shared
from model.commands.progress_options import Settled, read_task, settled
from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.config.diffusion_lm import MODEL_TYPES as DIFFUSION_TYPES
from model.network.head_target import heads_of, load_head
from model.network.sublayers import Half, Sublayer, middle_block
from model.network.target import load_target
from model.prediction.need import Need
from model.progress.acceptance import Acceptance
from model.progress.diffusion import BlockProgress, from_steps, published_commits
from model.progress.published import TaskProgress
from model.strategies.base import AbstractStrategy
from model.strategies.block_diffusion import BlockDiffusion
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
    yield Answerable(strategy=Plain(sequences=SHOWN_BATCH if unset else question.batch))


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
        yield _drafted(
            question,
            kind(
                head=head,
                design=design,
                draft_length=1,
                acceptance=UNKNOWN,
                sequences=question.batch,
            ),
        )


def _layer_skip(question: Question) -> Iterator[Entry]:
    for skipped in _skipped_sets(question):
        yield _drafted(
            question,
            LayerSkip(
                skipped=skipped,
                draft_length=1,
                acceptance=UNKNOWN,
                sequences=question.batch,
            ),
        )


def _skipped_sets(question: Question) -> Iterator[frozenset[Sublayer]]:
    options, architecture = question.options, question.target.architecture
    if options.skip_attention is not None or options.skip_mlp is not None:
        if options.skip is not None:
            raise InputError(
                f"--skip {options.skip}", "is a share beside layers by number", "give either"
            )
        yield frozenset(
            Sublayer(layer=shared.whole_number(flag, index, least=0, most=4096), half=half)
            for flag, text, half in (
                ("--skip-attention", options.skip_attention, Half.MIXER),
                ("--skip-mlp", options.skip_mlp, Half.MLP),
            )
            if text is not None
            for index in text.split(",")
        )
    elif options.skip is not None:
        yield middle_block(architecture, shared.number("--skip", options.skip))
    elif options.strategy == ALL:
        for fraction in SHOWN_FRACTIONS:
            yield middle_block(architecture, fraction)
    else:
        raise InputError("skipped layers", "are not given", "add --skip 0.25")


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
    bare = question.alone or (options.strategy == ALL and isinstance(strategy, Speculative))
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
    options, architecture = question.options, question.target.architecture
    if architecture.model_type not in DIFFUSION_TYPES:
        right = f"choose a model of {', '.join(sorted(DIFFUSION_TYPES))}"
        raise InputError(architecture.name, "is no diffusion model", right)
    for flag in ("block", "answer"):
        if getattr(options, flag) is None:
            raise InputError(f"{flag} length", "is not given", f"add --{flag} 32")
    block = shared.whole_number("--block", options.block, least=1, most=1_000_000)
    progress, published = _block_progress(options, block)
    canvas = options.canvas
    yield Answerable(
        strategy=BlockDiffusion(
            progress=progress,
            answer_tokens=shared.whole_number("--answer", options.answer, least=1, most=1_000_000),
            cached=options.block_cache,
            canvas_tokens=None
            if canvas is None
            else shared.whole_number("--canvas", canvas, least=1, most=1_000_000),
        ),
        published=published,
    )


def _block_progress(
    options: argparse.Namespace, block: int
) -> tuple[BlockProgress, TaskProgress | None]:
    if options.steps is not None:
        steps = shared.whole_number("--steps", options.steps, least=1, most=1_000_000)
        return from_steps(block_length=block, denoising_steps=steps), None
    if options.committed is not None:
        committed = shared.number("--committed", options.committed)
        return BlockProgress(block_length=block, committed_per_pass=committed), None
    task = read_task(options)
    if task is not None:
        published = published_commits(task)
        committed = min(float(block), published.tokens_per_pass.median)
        return BlockProgress(block_length=block, committed_per_pass=committed), published
    raise InputError(
        "tokens that a pass fixes",
        "are not given",
        "add --committed 4.4, --steps 8 or --task code",
    )


def _instead(question: Question) -> Iterator[Entry]:
    asked = question.options.instead
    if not asked and question.options.strategy != ALL:
        raise InputError("other network", "is not named", "add --instead MODEL[@FORMAT]")
    for text in asked or _fewer_bits(question):
        model, _, format_name = text.partition("@")
        stored_as = format_name or question.options.format
        other = question.machine.as_run(load_target(model, stored_as))
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
