"""mlx-lm's own loop, one token a pass: pipelined, or with every pass awaited."""

# MLX's stub leaves the arguments of `eval` untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import contextlib
from collections.abc import Callable

import mlx.core as mx
from mlx_lm.generate import generate_step

from calibrate.decoding.start import Start
from calibrate.decoding.streams import Arrivals, Loop
from calibrate.networks import Network


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
    def loop(start: Start, tokens: int) -> Arrivals:
        held = start.holds(network)
        stream = generate_step(
            start.last if held else start.prompt,
            network.model,
            max_tokens=tokens,
            sampler=sampler,
            prompt_cache=start.caches(network) if held else None,
        )
        with contextlib.closing(stream):
            for token, _ in stream:
                yield int(token), False

    return loop
