"""`tokroof run diffusion` and `tokroof run draft-head`: what mlx-vlm's loops decode.

A denoised answer has no plain run beside it, for a diffusion model cannot decode plainly. A head
has one: its target's, by the same library.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from calibrate.commands.mlx_vlm_options import answers, denoising
from calibrate.commands.run_options import settings_of
from calibrate.commands.run_output import kept
from calibrate.commands.run_request import Request
from calibrate.decode import Pace, decode
from calibrate.decoding.lossless import compared
from calibrate.decoding.start import Start
from calibrate.environment import free_bytes
from calibrate.networks import Network
from calibrate.open_network import checkpoint_of
from calibrate.progress import token_bar
from calibrate.prompts import prompt_tokens
from calibrate.run_memory import check_memory, needed_by_mlx_vlm
from calibrate.run_record import Run
from calibrate.run_settings import Settings
from calibrate.vlm.diffusion import open_diffusion, run_diffusion
from calibrate.vlm.heads import Head, check_target, open_head
from calibrate.vlm.library import require
from calibrate.vlm.networks import open_network
from calibrate.vlm.rounds import head_arm, plain_arm
from model.commands.diffusion_options import check_answer, check_diffusion
from model.network.head_target import load_head


def execute(options: argparse.Namespace, request: Request) -> tuple[Network, list[Run]]:
    """The target, and the runs of a strategy that mlx-vlm runs, each kept as soon as it is over.

    Raises:
        InputError: mlx-vlm is not installed, or what it is asked for cannot be.
    """
    if options.strategy == "diffusion":
        lengths, settings = answers(options), denoising(options)
        check_answers(options, request, lengths, settings)
        require("run diffusion")
        target = open_diffusion(options.target, options.format, options.weights)
        return target, list(denoised(options, request, target, lengths, settings))
    settings_list = list(settings_of(options, ()))
    check_head(options, request, settings_list)
    require("run draft-head")
    head = open_head(options.head, options.head_format, options.weights, options.target)
    check_target(options.target, head)
    target = open_network(options.target, options.format, options.weights)
    return target, list(drafted(options, request, target, head, settings_list))


def check_answers(
    options: argparse.Namespace, request: Request, lengths: list[int], settings: Settings
) -> None:
    """Refuse a network that does not denoise, and answers that it or the memory cannot hold."""
    target = checkpoint_of(options.target, options.format, options.weights)
    check_diffusion(target)
    for answer in lengths:
        check_answer("--answer", answer, target, context=request.context)
    needed = needed_by_mlx_vlm(settings, target, None, context=request.context, tokens=max(lengths))
    name = f"{options.target} {target.weight_format.name}"
    check_memory(f"diffusion of {name}", needed, free_bytes())


def denoised(
    options: argparse.Namespace,
    request: Request,
    target: Network,
    lengths: list[int],
    settings: Settings,
) -> Iterator[Run]:
    """An answer of each length."""
    prompt = prompt_tokens(target, request.context, options.prompt)
    for answer in lengths:
        with token_bar() as bar:
            run = run_diffusion(target, prompt, answer, settings, progress=bar)
        yield kept(run, request.output)


def check_head(options: argparse.Namespace, request: Request, settings: list[Settings]) -> None:
    """Refuse a head of another target, and what the target or the memory cannot hold."""
    target = checkpoint_of(options.target, options.format, options.weights)
    head, _ = load_head(options.head, options.head_format, target)
    longest = max(each.draft_length for each in settings)
    positions = request.context + request.tokens + 2 * longest + 1
    target.check_context(float(positions))
    needed = max(
        needed_by_mlx_vlm(each, target, head, context=request.context, tokens=request.tokens)
        for each in settings
    )
    check_memory(f"draft-head of {options.target}", needed, free_bytes())


def drafted(
    options: argparse.Namespace,
    request: Request,
    target: Network,
    head: Head,
    settings: list[Settings],
) -> Iterator[Run]:
    """The plain run of the target, and those with the head."""
    start = Start(prompt_tokens(target, request.context, options.prompt))
    arms = [
        head_arm(target, head, replace(each, draft_format=head.network.format_name))
        for each in settings
    ]
    with token_bar() as bar:
        plain = decode(plain_arm(target), start, request.tokens, Pace(progress=bar))
    yield kept(plain, request.output)
    for arm in arms:
        with token_bar() as bar:
            run = decode(arm, start, request.tokens, Pace(progress=bar))
        yield kept(compared(run, plain), request.output)
