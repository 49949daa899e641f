"""`tokroof run`: really decode, record it, and show the prediction beside it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

from calibrate.commands import run_by_mlx_vlm, run_grid
from calibrate.commands.run_options import SAME, check, settings_of, skip_sets
from calibrate.commands.run_options import add_arguments as add_options
from calibrate.commands.run_output import kept, summary
from calibrate.commands.run_request import Request, checked
from calibrate.commands.validation_output import comparisons_text
from calibrate.comparison import compare_runs
from calibrate.decode import Pace, decode
from calibrate.decoding.loops import arm
from calibrate.decoding.lossless import compared, divergence
from calibrate.decoding.similarity import similarities
from calibrate.decoding.start import Start
from calibrate.environment import free_bytes
from calibrate.networks import Network
from calibrate.open_network import checkpoint_of, open_network
from calibrate.progress import token_bar
from calibrate.prompts import prompt_tokens
from calibrate.run_memory import check_memory, needed_bytes
from calibrate.run_record import Run
from calibrate.run_settings import BY_MLX_VLM, STRATEGIES, Settings
from calibrate.skip_selection import least_changing, write_factors
from model.errors import InputError, first_line
from model.machine.profile import Profile
from model.machine.profile_store import choose_profile
from model.network.checkpoint import Checkpoint
from model.network.sublayers import Sublayer, middle_block

GRID = "grid"
SIMILARITY_TOKENS = 64
"""Length of the prompt on which similarities are measured."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `run`."""
    names = ", ".join(STRATEGIES)
    parser.add_argument("strategy", metavar="STRATEGY", help=f"{names}; or {GRID}, with a plan")
    add_options(parser)
    parser.epilog = (
        f"--draft {SAME} lets the target draft for itself: every guess is right. "
        f"{' and '.join(BY_MLX_VLM)} need mlx-vlm (the extra `diffusion`). "
        f"`run {GRID} PLAN` runs all of a plan, a file or one of {run_grid.shipped_names()}, and "
        "goes on where it was interrupted."
    )


def execute(options: argparse.Namespace) -> int:
    """Run plain decoding, then the strategy, and compare."""
    if options.strategy == GRID:
        return run_grid.execute(options)
    check(options)
    request = checked(options)
    choice = choose_profile(options.machine)
    try:
        target, runs = made(options, request, choice.profile)
    except RuntimeError as error:
        if not str(error).startswith("["):  # MLX names its operation so
            raise
        wrong = f"cannot be decoded on this device: {first_line(error)}"
        raise InputError(f"target {options.target}", wrong, "choose another --format") from error
    if options.json:
        print(json.dumps([asdict(run) for run in runs], indent=2))
        return 0
    if choice.note:
        print(choice.note, file=sys.stderr)
    print(comparisons_text(compare_runs(runs, choice.profile)))
    for run in runs:
        print(summary(run, target.tokenizer))
    return 0


def made(
    options: argparse.Namespace, request: Request, profile: Profile
) -> tuple[Network, list[Run]]:
    """The target, and all runs, each kept as soon as it was over.

    Raises:
        InputError: settings that cannot be, or more than the device has left.
        RuntimeError: MLX has no kernel for it.
    """
    if options.strategy in BY_MLX_VLM:
        return run_by_mlx_vlm.execute(options, request)
    check_fits(options, request)
    target = open_network(options.target, options.format, options.weights)
    return target, list(decoded(options, request, target, profile))


def check_fits(options: argparse.Namespace, request: Request) -> None:
    """Refuse what would not fit, before any of it is allocated.

    A target whose parts the model does not know is left to the check of its weights.

    Raises:
        InputError: settings that cannot be, or more than the device has left.
    """
    try:
        target = checkpoint_of(options.target, options.format, options.weights)
    except InputError:
        if options.strategy == "layer-skip":
            raise
        for _ in settings_of(options, ()):
            pass
        return
    draft = None
    if options.draft is not None:
        spec = options.target if options.draft == SAME else options.draft
        draft = checkpoint_of(spec, options.draft_format or options.format, options.weights)
    sets = (
        skip_sets(options, target, lambda share: middle_block(target.architecture, share))
        if options.strategy == "layer-skip"
        else []
    )
    needed = max(
        needed_bytes(
            settings,
            target,
            draft,
            positions=request.context + request.tokens,
            shared=options.draft == SAME,
        )
        for settings in settings_of(options, sets)
    )
    name = f"{options.target} {target.weight_format.name}"
    check_memory(f"{options.strategy} of {name}", needed, free_bytes())


def decoded(
    options: argparse.Namespace, request: Request, target: Network, profile: Profile
) -> Iterator[Run]:
    """The plain run, and the runs of the strategy, each kept as soon as it is over.

    All that could be refused is refused before the first.
    """
    start = Start(prompt_tokens(target, request.context, options.prompt))
    draft = None if options.draft is None else open_draft(options, target)
    sets = network_skip_sets(options, request, target, profile)
    arms = [arm(target, Settings(strategy="plain"))]
    for settings in settings_of(options, sets):
        if settings.strategy == "plain":
            continue
        if draft is not None:
            settings = replace(settings, draft=draft.name, draft_format=draft.format_name)
        arms.append(arm(target, settings, draft))
    for each in arms:
        each.check(start.context, request.tokens)
    plain: Run | None = None
    for each in arms:
        with token_bar() as bar:
            run = decode(each, start, request.tokens, Pace(progress=bar))
        if plain is None:
            plain = run
        else:
            run = compared(run, plain)
            if said := divergence(run, plain, target, start.tokens):
                print(said, file=sys.stderr, flush=True)
        yield kept(run, request.output)


def open_draft(options: argparse.Namespace, target: Network) -> Network:
    """The draft; `same` is the target itself, which agrees with itself on every token."""
    if options.draft == SAME:
        return target
    draft_format = options.format if options.draft_format is None else options.draft_format
    return open_network(options.draft, draft_format, options.weights)


def network_skip_sets(
    options: argparse.Namespace, request: Request, target: Network, profile: Profile
) -> list[frozenset[Sublayer]]:
    """The sublayers to skip; those by similarity are measured on the network, once."""
    if options.strategy != "layer-skip":
        return []
    checkpoint = checkpoint_of(options.target, options.format, options.weights)
    machine = profile.machine

    @cache
    def measured() -> dict[Sublayer, float]:
        return similarities(target, prompt_tokens(target, SIMILARITY_TOKENS, options.prompt))

    def by_similarity(share: float) -> frozenset[Sublayer]:
        as_run: Checkpoint = machine.as_run(checkpoint)
        return least_changing(
            as_run, machine, measured(), fraction=share, context=float(request.context)
        )

    if options.factors_output is not None:
        write_factors(Path(options.factors_output), measured())
    return skip_sets(options, checkpoint, by_similarity)
