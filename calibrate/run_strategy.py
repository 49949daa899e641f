"""The question that a real run answers: its strategy, its target and its context."""

from __future__ import annotations

import math
from statistics import fmean

from calibrate.run_record import Run
from calibrate.run_settings import STRATEGIES
from calibrate.shared_choice import as_chosen
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.head_target import load_head
from model.network.target import load_target
from model.progress.acceptance import Acceptance
from model.progress.diffusion import BlockProgress
from model.strategies.base import AbstractStrategy
from model.strategies.block_diffusion import BlockDiffusion
from model.strategies.block_drafter import BlockDrafter
from model.strategies.draft_head import TrainedHead
from model.strategies.layer_skip import LayerSkip
from model.strategies.plain import Plain
from model.strategies.prompt_lookup import PromptLookup
from model.strategies.speculative import Speculative

PREDICTED = tuple(name for name in STRATEGIES if name != "awaited")
"""Strategies of runs that the model prices; an awaited run is not one."""


def strategy_of(run: Run, machine: Machine) -> tuple[AbstractStrategy, Checkpoint, float]:
    """Strategy, target and mean context of a predicted run; its progress is taken, not its times.

    Raises:
        InputError: the target or draft is not known.
    """
    target = as_chosen(machine.as_run(load_target(run.target, run.target_format)), run)
    if run.strategy == "canvas":
        # Nothing stays in the cache, so that every pass meets the same context.
        return bare_passes(run.canvas), target, float(run.context_tokens)
    if run.strategy == "diffusion":
        return diffusion(run), target, float(run.context_tokens)
    # Half of the output is in the cache on average.
    half = run.context_tokens + run.tokens / 2.0
    if run.strategy == "draft-head":
        return trained_head(run, target, machine), target, half
    return drafted_or_plain(run, machine), target, half


def diffusion(run: Run) -> BlockDiffusion:
    """The blocks of a run with as many passes as it had, those that write the cache included.

    On CUDA with as many new shapes as it met: its warm-up and the runs before it met some.
    """
    whole = math.ceil(run.tokens / run.block) * run.block
    committed = min(float(run.block), whole / len(run.round_s))
    progress = BlockProgress(block_length=run.block, committed_per_pass=committed)
    return BlockDiffusion(
        progress=progress,
        answer_tokens=run.tokens,
        cached=True,
        new_share=fmean(run.new_shapes) if run.new_shapes else None,
    )


def bare_passes(canvas: int) -> BlockDiffusion:
    """Passes over a block beside its cache that commit one token each, as the run counts them."""
    progress = BlockProgress(block_length=canvas, committed_per_pass=1.0)
    return BlockDiffusion(progress=progress, answer_tokens=canvas, cached=True)


def trained_head(run: Run, target: Checkpoint, machine: Machine) -> AbstractStrategy:
    """The head of a run, with the acceptance that it had."""
    head, design = load_head(run.draft, run.draft_format, target)
    kind = BlockDrafter if design.kind.drafts_blocks else TrainedHead
    return kind(
        head=machine.as_run(head),
        design=design,
        draft_length=run.draft_length,
        acceptance=acceptance_of(run),
    )


def acceptance_of(run: Run) -> Acceptance:
    """The acceptance that a run had."""
    return Acceptance(by_position=run.acceptance_by_position or (0.0,))


def drafted_or_plain(run: Run, machine: Machine) -> AbstractStrategy:
    """The strategy of a run that writes token by token, with the acceptance that it had."""
    acceptance, length = acceptance_of(run), run.draft_length
    if run.strategy == "speculative":
        draft = machine.as_run(load_target(run.draft, run.draft_format))
        return Speculative(draft=draft, draft_length=length, acceptance=acceptance)
    if run.strategy == "layer-skip":
        skipped = run.settings.skipped
        return LayerSkip(skipped=skipped, draft_length=length, acceptance=acceptance)
    if run.strategy == "prompt-lookup":
        return PromptLookup(draft_length=length, acceptance=acceptance, match=run.match)
    return Plain(sequences=run.batch)
