"""Block diffusion on the command line: its block, its answer, and the tokens that a pass fixes."""

from __future__ import annotations

import argparse

from model.commands import options as shared
from model.commands.progress_options import read_task
from model.errors import InputError
from model.network.checkpoint import Checkpoint
from model.network.config.diffusion_lm import MODEL_TYPES
from model.progress.diffusion import BlockProgress, from_steps, published_commits
from model.progress.published import TaskProgress
from model.strategies.block_diffusion import BlockDiffusion

EXAMPLES = ("llada-8b", "diffusiongemma-26b-a4b")


def block_diffusion(
    options: argparse.Namespace, target: Checkpoint, *, context: float
) -> tuple[BlockDiffusion, TaskProgress | None]:
    """The strategy that the options describe, and the published rows that gave its progress.

    Raises:
        InputError: no diffusion model, a length or progress that is missing or cannot be, or an
            answer that the target cannot hold behind the context.
    """
    check_diffusion(target)
    for flag in ("block", "answer"):
        if getattr(options, flag) is None:
            raise InputError(f"{flag} length", "is not given", f"add --{flag} 32")
    block = shared.whole_number("--block", options.block, least=1, most=1_000_000)
    progress, published = _block_progress(options, block)
    answer = shared.whole_number("--answer", options.answer, least=1, most=1_000_000)
    check_answer("--answer", answer, target, context=context)
    strategy = BlockDiffusion(
        progress=progress,
        answer_tokens=answer,
        cached=options.block_cache,
        canvas_tokens=read_canvas(options),
    )
    return strategy, published


def check_diffusion(target: Checkpoint) -> None:
    """Refuse a network that was not trained to denoise.

    Raises:
        InputError: it was not.
    """
    architecture = target.architecture
    if architecture.model_type not in MODEL_TYPES:
        right = f"choose one that is, e.g. {' or '.join(EXAMPLES)}"
        raise InputError(architecture.name, "is no diffusion model", right)


def check_answer(flag: str, tokens: int, target: Checkpoint, *, context: float) -> None:
    """Refuse an answer that does not fit behind the context.

    Raises:
        InputError: it does not.
    """
    limit = target.architecture.context_limit
    if limit is not None and context + tokens > limit:
        wrong = (
            f"is, behind {context:g} tokens of context, beyond the {limit} tokens of "
            f"{target.architecture.name}"
        )
        raise InputError(f"{flag} {tokens}", wrong, "give fewer tokens")


def read_canvas(options: argparse.Namespace) -> int | None:
    """Rows of every pass without a cache; None where they are the blocks so far.

    Raises:
        InputError: not a whole number, or beside a cache, with which a pass has a block's rows.
    """
    if options.canvas is None:
        return None
    canvas = shared.whole_number("--canvas", options.canvas, least=1, most=1_000_000)
    if options.block_cache:
        wrong = "changes nothing with --block-cache, where a pass has the rows of a block"
        raise InputError(f"--canvas {canvas}", wrong, "give either")
    return canvas


def _block_progress(
    options: argparse.Namespace, block: int
) -> tuple[BlockProgress, TaskProgress | None]:
    if options.steps is not None and options.committed is not None:
        wrong = f"says what --committed {options.committed} says too"
        raise InputError(f"--steps {options.steps}", wrong, "give either")
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
