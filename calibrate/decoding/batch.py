"""Several sequences side by side, through mlx-lm's own batch generation."""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
from typing import Any

from mlx_lm.generate import BatchGenerator

from calibrate.decoding.start import Start
from calibrate.decoding.streams import Arrivals, Loop
from calibrate.networks import Network
from model.errors import InputError, first_line


def batch_loop(network: Network, batch: int) -> Loop:
    """One pass a round over a row of each sequence; the tokens are those of the first.

    The prompts are one prompt turned round by a token each, or where caches are kept one prompt
    that ends in different tokens: sequences that were all alike would choose the same experts.
    """

    def loop(start: Start, tokens: int) -> Arrivals:
        generator = BatchGenerator(
            network.model,
            max_tokens=tokens + 1,
            completion_batch_size=batch,
            prefill_batch_size=batch,
        )
        with contextlib.closing(generator):
            prompts, caches = _prompts(start, network, batch)
            try:
                first = generator.insert(prompts, caches=caches)[0]
                while True:
                    yield _token_of(generator.next_generated(), first), False
            except (ValueError, AttributeError) as error:
                wrong = f"cannot be decoded in a batch ({first_line(error)})"
                right = "batch a network with full attention"
                raise InputError(network.name, wrong, right) from error

    return loop


def _prompts(start: Start, network: Network, batch: int) -> tuple[list[list[int]], Any]:
    if not start.holds(network):
        turns = [turn % start.context for turn in range(batch)]
        return [[*start.tokens[turn:], *start.tokens[:turn]] for turn in turns], None
    last = start.tokens[-1]
    prompts = [[(last + turn) % network.vocab_size] for turn in range(batch)]
    return prompts, [start.caches(network) for _ in range(batch)]


def _token_of(responses: list[Any], uid: int) -> int:
    return next(int(response.token) for response in responses if response.uid == uid)
