"""mlx-lm's generation loops, as streams of (token, whether the draft proposed it).

All are greedy, and an end-of-sequence token does not end them.
"""

# MLX's stub leaves the arguments of `eval` untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import mlx.core as mx
from mlx_lm.generate import generate_step, speculative_generate_step
from mlx_lm.models.cache import make_prompt_cache

from calibrate.networks import Network
from model.errors import InputError

Arrivals: TypeAlias = Generator[tuple[int, bool], None, None]
Loop: TypeAlias = Callable[[mx.array, int], Arrivals]
"""From a prompt and a number of tokens to at least as many arrivals, the last round whole."""


def plain_loop(network: Network) -> Loop:
    """One token a pass; the next pass is built while this one runs."""
    return _single_token_loop(network, None)


def awaited_loop(network: Network) -> Loop:
    """The same loop, but its sampler waits, so that nothing is built while a pass runs."""

    def sampler(logprobs: mx.array) -> mx.array:
        token = mx.argmax(logprobs, axis=-1)
        mx.eval(token)
        return token

    return _single_token_loop(network, sampler)


def _single_token_loop(network: Network, sampler: Callable[[mx.array], mx.array] | None) -> Loop:
    def loop(prompt: mx.array, tokens: int) -> Arrivals:
        stream = generate_step(prompt, network.model, max_tokens=tokens, sampler=sampler)
        with contextlib.closing(stream):
            for token, _ in stream:
                yield int(token), False

    return loop


def speculative_loop(target: Network, draft: Network, draft_length: int) -> Loop:
    """Rounds of `draft_length` draft passes and one pass of the target over one row more."""

    def loop(prompt: mx.array, tokens: int) -> Arrivals:
        # Asked for just `tokens`, mlx-lm would draft fewer in the last rounds and cut the last.
        stream = speculative_generate_step(
            prompt,
            target.model,
            draft.model,
            num_draft_tokens=draft_length,
            max_tokens=tokens + draft_length + 1,
        )
        with contextlib.closing(stream):
            for token, _, from_draft in stream:
                yield int(token), bool(from_draft)

    return loop


def check_pair(target: Network, draft: Network, positions: int) -> None:
    """Refuse two networks that cannot speculate together up to so many positions.

    mlx-lm looks at the target's cache alone, and only at the start.

    Raises:
        InputError: They do not share a vocabulary, or a cache cannot be rolled back.
    """
    # Real networks may pad a shared vocabulary differently; random ones reach all of it.
    sizes = [network.vocab_size for network in (target, draft)]
    if target.tokenizer is not None and draft.tokenizer is not None:
        sizes = [target.tokenizer.vocab_size, draft.tokenizer.vocab_size]
    if sizes[0] != sizes[1]:
        wrong = f"has {sizes[1]} tokens and {target.name} has {sizes[0]}"
        raise InputError(f"draft {draft.name}", wrong, "give a draft of the same vocabulary")
    _check_rollback(target, positions)
    _check_rollback(draft, positions)


def _check_rollback(network: Network, positions: int) -> None:
    """A recurrent state cannot go back at all, and a sliding window not once it is full.

    The window does not say so: it keeps every rejected token, and the output is wrong.
    """
    cache: list[Any] = make_prompt_cache(network.model)
    if not all(layer.is_trimmable() for layer in cache):
        wrong = "has a state that cannot be rolled back after a rejected token"
        raise InputError(network.name, wrong, "speculate with full-attention models")
    windows = [size for layer in cache if (size := getattr(layer, "max_size", None))]
    if windows and positions >= min(windows):
        wrong = f"cannot be rolled back once its window of {min(windows)} tokens is full"
        raise InputError(network.name, wrong, f"keep context and tokens below {min(windows)}")
