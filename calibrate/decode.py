"""Decoding for real, through mlx-lm's own loops, timed from outside.

mlx-lm reports its own speed, but its clock starts after the first token: in speculation the
prefill then pays for the first round, whose tokens are free. Here its generators are driven
directly. The tokens of one round arrive together, and a round is the time from one last token to
the next, so that the rounds add up to the time a person waits.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias, final

import mlx.core as mx
from mlx_lm.generate import generation_stream

from calibrate.environment import read_environment
from calibrate.kernels import resident
from calibrate.loops import (
    Arrivals,
    Loop,
    awaited_loop,
    check_pair,
    plain_loop,
    speculative_loop,
)
from calibrate.networks import Network
from calibrate.run_record import Run
from calibrate.timing import Clock
from model.errors import InputError

Progress: TypeAlias = Callable[[int, int], None]

WARM_PROMPT_TOKENS = 8
WARM_ROUNDS = 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What to time, and the loops that run each of its shapes once before."""

    strategy: str
    loop: Loop
    warm_loops: tuple[Loop, ...]
    target: Network
    draft: Network | None = None
    draft_length: int = 0


def decode_plain(
    network: Network,
    prompt_tokens: Sequence[int],
    tokens: int,
    *,
    clock: Clock = time.perf_counter,
    progress: Progress | None = None,
    warm_up: bool = True,
) -> Run:
    """Decode one token a pass; mlx-lm builds the next pass while this one runs.

    Args:
        network: What to decode with.
        prompt_tokens: The context, one token at least.
        tokens: How many to decode, 2 at least.
        clock: Seconds from any start.
        progress: Called after each round with the tokens decoded and wanted; what it costs is
            part of the next round, so let it be little.
        warm_up: Whether every shape of pass is run before the clock starts. Leave it out only if
            the same decode was just run.

    Raises:
        InputError: The prompt or the number of tokens cannot be used.
    """
    loop = plain_loop(network)
    plan = _Plan(strategy="plain", loop=loop, warm_loops=(loop,), target=network)
    return _decode(plan, prompt_tokens, tokens, clock, progress, warm_up)


def decode_awaited(
    network: Network,
    prompt_tokens: Sequence[int],
    tokens: int,
    *,
    clock: Clock = time.perf_counter,
    progress: Progress | None = None,
    warm_up: bool = True,
) -> Run:
    """The same loop as `decode_plain`, but each pass is awaited before the next is built.

    A strategy that must look at its tokens before it goes on pays this; the difference to plain
    decoding is what the pipeline hides. The arguments are those of `decode_plain`.
    """
    loop = awaited_loop(network)
    plan = _Plan(strategy="awaited", loop=loop, warm_loops=(loop,), target=network)
    return _decode(plan, prompt_tokens, tokens, clock, progress, warm_up)


def decode_speculative(
    target: Network,
    draft: Network,
    prompt_tokens: Sequence[int],
    tokens: int,
    draft_length: int,
    *,
    clock: Clock = time.perf_counter,
    progress: Progress | None = None,
    warm_up: bool = True,
) -> Run:
    """Draft `draft_length` tokens, verify them in one pass of the target, keep the equal ones.

    The other arguments are those of `decode_plain`; `tokens` is at least `draft_length` + 2.

    Raises:
        InputError: Also if the two do not share a vocabulary, or a cache cannot be rolled back.
    """
    if draft_length < 1:
        raise InputError(f"draft length {draft_length}", "drafts nothing", "give 1 or more")
    check_pair(target, draft, len(prompt_tokens) + tokens + 2 * draft_length + 1)
    loop = speculative_loop(target, draft, draft_length)
    # After full acceptance the draft runs over two rows. A bad draft may not get there in the
    # warm-up, but any draft agrees with itself.
    plan = _Plan(
        strategy="speculative",
        loop=loop,
        warm_loops=(speculative_loop(draft, draft, 1), loop),
        target=target,
        draft=draft,
        draft_length=draft_length,
    )
    return _decode(plan, prompt_tokens, tokens, clock, progress, warm_up)


def compare_tokens(plain: Run, speculative: Run) -> int | None:
    """Where two outputs first differ; None if one is the beginning of the other.

    Greedy speculation is lossless in exact arithmetic only. Passes of one row and of several use
    kernels that add in another order, and in 16 bits the two best logits can tie.
    """
    pairs = enumerate(zip(plain.output, speculative.output, strict=False))
    return next((i for i, (one, other) in pairs if one != other), None)


def _decode(
    plan: _Plan,
    prompt_tokens: Sequence[int],
    tokens: int,
    clock: Clock,
    progress: Progress | None,
    warm_up: bool,
) -> Run:
    _check_request(plan, prompt_tokens, tokens)
    prompt = mx.array(list(prompt_tokens), mx.uint32)
    date = datetime.now(UTC)
    with resident():
        for loop in plan.warm_loops if warm_up else ():
            _warm(loop, prompt[-WARM_PROMPT_TOKENS:], WARM_ROUNDS * (plan.draft_length + 1))
        mx.synchronize(generation_stream)
        mx.reset_peak_memory()
        with contextlib.closing(plan.loop(prompt, tokens)) as arrivals:
            round_s, accepted, output = time_rounds(arrivals, tokens, clock, progress)
        mx.synchronize(generation_stream)  # plain decoding has one more pass under way
    draft = plan.draft
    return Run(
        id=f"{date:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        date=date.isoformat(timespec="seconds"),
        strategy=plan.strategy,
        target=plan.target.name,
        target_format=plan.target.format_name,
        target_weights=plan.target.weights,
        draft=draft.name if draft else "",
        draft_format=draft.format_name if draft else "",
        draft_length=plan.draft_length,
        context_tokens=len(prompt_tokens),
        tokens=tokens,
        round_s=tuple(round_s),
        accepted=tuple(accepted),
        output=tuple(output[:tokens]),
        matches_plain=None,
        peak_memory_bytes=mx.get_peak_memory(),
        environment=read_environment(),
    )


def _warm(loop: Loop, prompt: mx.array, tokens: int) -> None:
    """Run each shape of pass: the first of its kind compiles kernels and allocates."""
    with contextlib.closing(loop(prompt, tokens)) as arrivals:
        for _ in zip(range(tokens), arrivals, strict=False):
            pass


def time_rounds(
    arrivals: Arrivals, tokens: int, clock: Clock, progress: Progress | None
) -> tuple[list[float], list[int], list[int]]:
    """Times and accepted counts of the steady rounds, and all tokens.

    A token of the target ends a round. The first round began before the prefill, so its end only
    starts the clock. The round that reaches `tokens` is followed to its end and listed: left
    out, long rounds would be missing more often than short ones.
    """
    round_s: list[float] = []
    accepted: list[int] = []
    output: list[int] = []
    started: float | None = None
    count = 0
    for token, from_draft in arrivals:
        output.append(token)
        if from_draft:
            count += 1
            continue
        ended = clock()
        if started is not None:
            round_s.append(ended - started)
            accepted.append(count)
        if progress is not None:
            progress(min(len(output), tokens), tokens)
        if len(output) >= tokens:
            break
        started, count = ended, 0
    return round_s, accepted, output


def _check_request(plan: _Plan, prompt_tokens: Sequence[int], tokens: int) -> None:
    if not prompt_tokens:
        raise InputError("prompt", "has no tokens", "give one at least")
    last = plan.target.vocab_size - 1
    strange = next((token for token in prompt_tokens if not 0 <= token <= last), None)
    if strange is not None:
        right = f"{plan.target.name} has tokens 0 to {last}"
        raise InputError(f"prompt token {strange}", "is not in the vocabulary", right)
    if tokens < plan.draft_length + 2:
        right = f"give {plan.draft_length + 2} at least"
        raise InputError(f"{tokens} tokens", "may all come in the first round", right)
