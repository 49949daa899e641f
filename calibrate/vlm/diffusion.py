"""Block diffusion for real: an answer denoised by mlx-vlm's own loop, and its record.

Every pass of the answer is listed, those that only write a finished block to the cache included.
Only those are waited for whose outcome the loop itself waits for, save one: see
:mod:`calibrate.vlm.diffusion_gemma`.
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

import mlx.core as mx

from calibrate.decode import COUNTED_PROMPT_TOKENS, identity
from calibrate.decoding.checks import check_prompt
from calibrate.decoding.expert_choice import distinct_experts, noted_choices, switches
from calibrate.host_witness import MOST_WAIT_S, HostWitness, host_work_s
from calibrate.mlx_device import resident
from calibrate.networks import Network
from calibrate.run_record import Run
from calibrate.run_settings import Settings
from calibrate.timing import Clock
from calibrate.vlm import diffusion_gemma, llada
from calibrate.vlm.library import library_name
from calibrate.vlm.networks import open_network
from calibrate.vlm.passes import Denoised, Progress
from model.errors import InputError
from model.network.target import load_config

Loop: TypeAlias = Callable[
    [Network, Sequence[int], int, Settings, Clock, Progress | None], Denoised
]
FAMILIES: Mapping[str, Loop] = {
    "diffusion_gemma": diffusion_gemma.denoise,
    "llada2_moe": llada.denoise,
}
"""The loop of each model type that mlx-vlm denoises."""
WARM_STEPS = 2


def open_diffusion(spec: str, format_name: str | None, weights: str) -> Network:
    """A diffusion model as mlx-vlm has it; local weights where there are any, else random ones.

    Raises:
        InputError: no such target, not one that mlx-vlm denoises, or no weights although asked
            for.
    """
    kind = load_config(spec).config.get("model_type")
    if kind not in FAMILIES:
        right = f"give one of {' or '.join(FAMILIES)}, e.g. llada2.0-mini"
        wrong = f"is of type {kind}, whose diffusion mlx-vlm does not run"
        raise InputError(spec, wrong, right)
    return open_network(spec, format_name, weights)


def run_diffusion(
    network: Network,
    prompt: Sequence[int],
    answer: int,
    settings: Settings,
    *,
    clock: Clock = time.perf_counter,
    progress: Progress | None = None,
    host: HostWitness | None = None,
) -> Run:
    """Denoise an answer of so many tokens behind a prompt, and record every pass.

    It is not begun until the host is quiet, if there is one to ask, at most for `MOST_WAIT_S`.

    Raises:
        InputError: the prompt or the block cannot be used.
    """
    check_prompt(network, tuple(prompt))
    denoise = FAMILIES[network.model.config.model_type]
    date = datetime.now(UTC)
    with resident():
        # Two blocks in two passes each: every shape of the first ones, and one that is written.
        schedule = replace(
            settings, steps=min(WARM_STEPS, settings.block), committed=None, threshold=None
        )
        short = min(answer, 2 * settings.block)
        denoise(network, prompt, short, schedule, clock, None)
        distinct = counted_experts(network, prompt[-COUNTED_PROMPT_TOKENS:], short, settings)
        mx.reset_peak_memory()
        if host is not None:
            host.await_quiet(MOST_WAIT_S)
        before_s = host_work_s()
        seen = denoise(network, prompt, answer, settings, clock, progress)
        after_s = host_work_s()
    return Run(
        **identity(network, settings, date),
        context_tokens=len(prompt),
        tokens=answer,
        round_s=seen.round_s,
        accepted=(0,) * len(seen.round_s),
        commits=seen.commits,
        new_shapes=seen.new_shapes,
        output=seen.output,
        matches_plain=None,
        library=library_name(),
        host_work_s=(before_s, after_s),
        distinct_experts=distinct,
    )


def counted_experts(
    network: Network, prompt: Sequence[int], answer: int, settings: Settings
) -> float:
    """The experts that the passes of an answer read, untimed; those of the prompt do not count."""
    places = switches(network.model)
    if not places:
        return 0.0
    denoise = FAMILIES[network.model.config.model_type]
    with noted_choices(places) as choices:
        seen = denoise(network, prompt, answer, settings, time.perf_counter, None)
    return distinct_experts(choices[-len(places) * len(seen.commits) :], settings.block)
