"""The options of `run`: which strategy each belongs to, and the settings that they become."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from calibrate.commands import mlx_vlm_options
from calibrate.commands.run_numbers import probability, read_seed, whole_numbers
from calibrate.open_network import WEIGHTS
from calibrate.run_settings import (
    DRAFTED,
    MOST_CANVAS,
    MOST_NGRAM,
    STRATEGIES,
    Settings,
)
from calibrate.run_settings import layer_skip as skipping
from calibrate.skip_selection import MIDDLE, SELECTIONS
from model.commands import options as shared
from model.commands.skip_options import share_of_layers, skipped_sets
from model.errors import InputError, unknown_name
from model.network.checkpoint import Checkpoint
from model.network.sublayers import Sublayer
from model.progress.acceptance import MAX_DRAFT_LENGTH
from model.strategies.plain import MAX_BATCH

Skipped: TypeAlias = frozenset[Sublayer]

DEFAULT_TOKENS = 64
DEFAULT_CONTEXT = 64
DEFAULT_DRAFT_LENGTH = "2"
DEFAULT_NGRAM = "3"
SAME = "same"

OWN: Mapping[str, tuple[str, ...]] = {
    "draft": ("speculative",),
    "draft_format": ("speculative",),
    "head": ("draft-head",),
    "head_format": ("draft-head",),
    "draft_length": DRAFTED,
    "force_acceptance": DRAFTED,
    "seed": (*DRAFTED, "diffusion"),
    "skip": ("layer-skip",),
    "skip_attention": ("layer-skip",),
    "skip_mlp": ("layer-skip",),
    "select": ("layer-skip",),
    "factors_output": ("layer-skip",),
    "ngram": ("prompt-lookup",),
    "batch": ("batch",),
    "canvas": ("canvas",),
    "block": ("diffusion",),
    "answer": ("diffusion",),
    "steps": ("diffusion",),
    "committed": ("diffusion",),
    "threshold": ("diffusion",),
    "tokens": tuple(name for name in STRATEGIES if name != "diffusion"),
}
"""The strategies of each option; it would change nothing for others."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is decoded, by which strategy, and with which settings."""
    shared.add_pair(parser, draft_required=False, context=DEFAULT_CONTEXT)
    parser.add_argument(
        "--draft-length",
        metavar="K[,K...]",
        help=f"draft tokens per round (default: {DEFAULT_DRAFT_LENGTH})",
    )
    parser.add_argument(
        "--force-acceptance",
        metavar="A[,A...]",
        help="accept draft tokens with this probability, whatever the target says",
    )
    parser.add_argument("--seed", metavar="N", help="of the coin that decides (default: 0)")
    parser.add_argument("--skip", metavar="F[,F...]", help="layer-skip: share of the layers")
    parser.add_argument("--skip-attention", metavar="I[,I...]", help="layer-skip: attention of I")
    parser.add_argument("--skip-mlp", metavar="I[,I...]", help="layer-skip: the MLP of layers I")
    parser.add_argument(
        "--select",
        metavar="HOW[,HOW...]",
        help="layer-skip: what the share of --skip stands for, the middle layers (default) or by "
        "similarity the sublayers that save as much and change the hidden state least",
    )
    parser.add_argument(
        "--factors-output",
        metavar="FILE",
        help="layer-skip: write the measured similarities, for `tokroof plan sublayers --factors`",
    )
    parser.add_argument(
        "--ngram",
        metavar="N",
        help=f"prompt-lookup: longest match that is searched (default: {DEFAULT_NGRAM})",
    )
    parser.add_argument("--batch", metavar="B[,B...]", help="batch: sequences side by side")
    parser.add_argument("--canvas", metavar="R[,R...]", help="canvas: rows of a diffusion pass")
    mlx_vlm_options.add_arguments(parser)
    parser.add_argument("--tokens", help=f"tokens to decode (default: {DEFAULT_TOKENS})")
    parser.add_argument("--prompt", help="text to continue, with real weights")
    parser.add_argument(
        "--weights", default="auto", help="random, real, or auto: real where there are any"
    )
    parser.add_argument("--output", metavar="RUNS", help="append the runs to this file")
    parser.add_argument(
        "--stop-after", metavar="SECONDS", help="grid: begin no further run after this time"
    )
    shared.add_machine(parser)


def check(options: argparse.Namespace) -> None:
    """Refuse an unknown strategy, and settings of other strategies.

    Raises:
        InputError: one of them was given.
    """
    strategy = options.strategy
    if strategy not in STRATEGIES:
        raise unknown_name("strategy", strategy, STRATEGIES)
    if options.weights not in WEIGHTS:
        right = f"one of {', '.join(WEIGHTS)}"
        raise InputError(f"--weights {options.weights}", "is unknown", right)
    if options.stop_after is not None:
        flag = f"--stop-after {options.stop_after}"
        raise InputError(flag, "is for a plan of runs", "run grid PLAN")
    for name, owners in OWN.items():
        text = getattr(options, name)
        if text is not None and strategy not in owners:
            flag = shared.given(f"--{name.replace('_', '-')}", text)
            right = "give --answer" if name == "tokens" else f"run {' or '.join(owners)}"
            raise InputError(flag, f"is no setting of {strategy}", right)
    if strategy == "speculative" and options.draft is None:
        raise InputError("run speculative", "needs a draft", "add --draft MODEL")
    if strategy == "draft-head" and options.head is None:
        raise InputError("run draft-head", "needs a head", "add --head HEAD")
    for name in ("batch", "canvas"):
        if strategy == name and getattr(options, name) is None:
            raise InputError(f"run {name}", "needs a size", f"add --{name} 4")
    for name in ("block", "answer"):
        if strategy == "diffusion" and getattr(options, name) is None:
            raise InputError("run diffusion", f"needs a length of the {name}", f"add --{name} 32")


def skip_sets(
    options: argparse.Namespace, target: Checkpoint, by_similarity: Callable[[float], Skipped]
) -> list[Skipped]:
    """The sets that the options name: by number, or each share by each way to select it.

    Raises:
        InputError: no layers, a share that skips none, or an unknown way.
    """
    selections = (options.select or MIDDLE).split(",")
    for name in selections:
        if name not in SELECTIONS:
            raise unknown_name("selection", name, SELECTIONS)
    if options.skip is None or options.skip_attention or options.skip_mlp:
        return list(skipped_sets(options, target.architecture, ()))
    sets: list[Skipped] = []
    for text in options.skip.split(","):
        middle = share_of_layers("--skip", text, target.architecture)
        share = shared.number("--skip", text)
        sets += [middle if name == MIDDLE else by_similarity(share) for name in selections]
    return sets


def settings_of(options: argparse.Namespace, sets: Sequence[Skipped]) -> Iterator[Settings]:
    """One record of settings for each combination that the options name.

    A draft model's name is not known before it is opened: it is the option's own text here.

    Raises:
        InputError: an option out of range.
    """
    if options.strategy == "batch":
        for batch in whole_numbers("--batch", options.batch, MAX_BATCH, least=2):
            yield Settings(strategy="batch", batch=batch)
    elif options.strategy == "canvas":
        for canvas in whole_numbers("--canvas", options.canvas, MOST_CANVAS):
            yield Settings(strategy="canvas", canvas=canvas)
    elif options.strategy == "diffusion":
        yield mlx_vlm_options.denoising(options)
    elif options.strategy in DRAFTED:
        yield from drafted(options, sets)
    else:
        yield Settings(strategy=options.strategy)


def drafted(options: argparse.Namespace, sets: Sequence[Skipped]) -> Iterator[Settings]:
    """Every acceptance with every draft length, of every set of skipped sublayers."""
    seed = read_seed(options)
    texts: list[str | None] = [None]
    if options.force_acceptance is not None:
        texts = options.force_acceptance.split(",")
    lengths = options.draft_length or DEFAULT_DRAFT_LENGTH
    for forced in map(forced_acceptance, texts):
        for length in whole_numbers("--draft-length", lengths, MAX_DRAFT_LENGTH):
            if options.strategy == "layer-skip":
                yield from (skipping(skipped, length, forced, seed) for skipped in sets)
                continue
            lookup = options.strategy == "prompt-lookup"
            draft = options.head if options.strategy == "draft-head" else options.draft
            ngram = shared.whole_number(
                "--ngram", options.ngram or DEFAULT_NGRAM, least=1, most=MOST_NGRAM
            )
            yield Settings(
                strategy=options.strategy,
                draft="" if lookup else draft,
                draft_length=length,
                ngram=ngram if lookup else 0,
                forced_acceptance=forced,
                seed=seed,
            )


def forced_acceptance(text: str | None) -> float | None:
    """A probability, or None where the target itself decides."""
    if text is None:
        return None
    return probability("--force-acceptance", text)
