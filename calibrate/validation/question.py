"""What a published run asks of the model: a strategy, a target, a context, and what to score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from calibrate.comparison import SPEEDUP, THROUGHPUT
from calibrate.published.beams import WholeAnswer, beam_run, whole_answer
from calibrate.published.conditions import context_of, said_of, unusual
from calibrate.published.defaults import default_draft_length
from calibrate.published.engines import engine_of
from calibrate.published.names import draft_of, target_of
from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.validation.progress import acceptance_of, drafted_length
from model.errors import InputError
from model.network.checkpoint import Checkpoint
from model.progress.acceptance import Acceptance
from model.progress.diffusion import BlockProgress
from model.strategies.base import AbstractStrategy
from model.strategies.block_diffusion import BlockDiffusion
from model.strategies.block_drafter import BlockDrafter
from model.strategies.draft_head import TrainedHead
from model.strategies.plain import Plain
from model.strategies.prompt_lookup import PromptLookup
from model.strategies.speculative import Speculative
from model.strategies.token_tree import CHAIN, TokenTree

WITHOUT_DRAFT = ("plain", "batch")
WITH_DRAFT = ("speculative", "mtp")
HAS_A_CACHE = ("commit", "block cache")
"""What a run of block diffusion says whose finished blocks are in a cache: it commits them."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: equal questions have equal answers, whatever was measured."""

    strategy: AbstractStrategy
    target: Checkpoint
    context_tokens: float
    whole_answer: WholeAnswer | None = None
    """What the run's times hold beside decoding, and its speedup with them."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The quantity that a run is scored by, and its value; None where the run has none."""

    quantity: str
    value: float | None


def measured_of(run: PublishedRun) -> Measured:
    """Throughput of a run without a draft; of others the speedup, else what throughput there is.

    A batch without a throughput has what it gains over one sequence.
    """
    rate, baseline = run.decode_tokens_per_s or None, run.baseline_tokens_per_s or None
    if run.strategy in WITHOUT_DRAFT and (rate is not None or run.batch == 1):
        return Measured(quantity=THROUGHPUT, value=rate)
    speedup = run.speedup or (rate / baseline if rate and baseline else None)
    if speedup is None and rate is not None:
        return Measured(quantity=THROUGHPUT, value=rate)
    return Measured(quantity=SPEEDUP, value=speedup)


def question_of(run: PublishedRun) -> Question | Refusal:
    """The question of a run, or the first reason not to answer it."""
    if run.trust == "low":
        return Refusal(reason=Reason.LOW_TRUST, text=run.source)
    apart = unusual(run)
    if apart is not None:
        return Refusal(reason=Reason.UNUSUAL, text=apart)
    if measured_of(run).value is None:
        return Refusal(reason=Reason.NO_MEASUREMENT, text=run.strategy)
    target = target_of(run)
    if isinstance(target, Refusal):
        return target
    try:
        strategy = strategy_of(run, target)
    except InputError as error:
        return Refusal(reason=Reason.NOT_PRICED, text=str(error))
    if isinstance(strategy, Refusal):
        return strategy
    return Question(
        strategy=strategy,
        target=target,
        context_tokens=context_of(run),
        whole_answer=whole_answer(run),
    )


def strategy_of(run: PublishedRun, target: Checkpoint) -> AbstractStrategy | Refusal:
    """The strategy of a run with its own progress.

    Raises:
        InputError: a batch or a draft length that the model has no price for.
    """
    if run.strategy in WITHOUT_DRAFT:
        return Plain(sequences=run.batch)
    if run.strategy == "ngram":
        return _looked_up(run)
    if run.strategy in WITH_DRAFT:
        return _drafted(run, target)
    if run.strategy == "diffusion":
        return _denoised(run)
    text = f"{run.strategy}: its settings are not among the columns"
    return Refusal(reason=Reason.NOT_PRICED, text=text)


def _denoised(run: PublishedRun) -> AbstractStrategy | Refusal:
    """Block diffusion of one block of k tokens at the run's tokens per pass."""
    if run.draft_length is None:
        return Refusal(reason=Reason.NO_DRAFT_LENGTH, text="the block of a diffusion model")
    if run.tokens_per_pass is None:
        return Refusal(reason=Reason.NO_PROGRESS, text=run.strategy)
    if not any(word in said_of(run) for word in HAS_A_CACHE):
        text = "diffusion: whether its passes have a cache is not stated"
        return Refusal(reason=Reason.NOT_PRICED, text=text)
    progress = BlockProgress(block_length=run.draft_length, committed_per_pass=run.tokens_per_pass)
    return BlockDiffusion(progress=progress, answer_tokens=run.draft_length, cached=True)


def _looked_up(run: PublishedRun) -> AbstractStrategy | Refusal:
    """Prompt lookup; how often a search finds something is not published, and taken as always."""
    acceptance = acceptance_of(run)
    if isinstance(acceptance, Refusal):
        return acceptance
    return PromptLookup(
        draft_length=drafted_length(run) or 1, acceptance=acceptance, sequences=run.batch
    )


def _drafted(run: PublishedRun, target: Checkpoint) -> AbstractStrategy | Refusal:
    draft = draft_of(run, target)
    if isinstance(draft, Refusal):
        return draft
    default_length = default_draft_length(run, draft)
    acceptance: Acceptance | Refusal = acceptance_of(run, default_length)
    if isinstance(acceptance, Refusal):
        return acceptance
    k, sequences = drafted_length(run, default_length) or 1, run.batch
    if draft.head is None:
        return Speculative(
            draft=draft.checkpoint, draft_length=k, acceptance=acceptance, sequences=sequences
        )
    beams = beam_run(run)
    tree = CHAIN if beams is None else TokenTree(beams=beams.beams)
    if draft.head.kind.drafts_blocks and tree != CHAIN:
        return Refusal(reason=Reason.TREE_DRAFT, text=run.draft)
    if draft.head.kind.drafts_blocks:
        return BlockDrafter(
            head=draft.checkpoint,
            design=draft.head,
            draft_length=k,
            acceptance=acceptance,
            sequences=sequences,
            block_rows=draft.head.block_length if engine_of(run).fills_block else None,
        )
    return TrainedHead(
        head=draft.checkpoint,
        design=draft.head,
        draft_length=k,
        acceptance=acceptance,
        sequences=sequences,
        tree=tree,
    )
