"""The pass of block diffusion: all rows of a block over a context, and nothing is kept.

The block is denoised again and again, so its keys and values leave the cache after each pass, and
each pass is awaited, because the next depends on which tokens were fixed. What is fixed here is
the best token of the first row: random weights cannot say which they are sure of, and only the
time is asked for. mlx-lm's networks mask the block causally where a diffusion model does not;
the kernels and their shapes are those that MLX uses for the causal mask.
"""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import mlx.core as mx
from mlx_lm.generate import generation_stream
from mlx_lm.models.cache import trim_prompt_cache

from calibrate.decoding.start import Start
from calibrate.decoding.streams import Arrivals, Loop
from calibrate.networks import Network


def canvas_loop(network: Network, canvas: int) -> Loop:
    """A pass of `canvas` rows after another, each a round of one token."""

    def loop(start: Start, tokens: int) -> Arrivals:
        with mx.stream(generation_stream):
            caches = start.caches(network)
            network.model(start.last[None], cache=caches)
            rows = mx.arange(canvas).astype(mx.uint32) % network.vocab_size
            for _ in range(tokens):
                logits = network.model(rows[None], cache=caches)[0]
                best = mx.argmax(logits - mx.logsumexp(logits, axis=-1, keepdims=True), axis=-1)
                verdict: Any = best.tolist()  # one element of it would be a pass of its own
                rows = best.astype(mx.uint32)
                trim_prompt_cache(caches, canvas)
                yield verdict[0], False

    return loop
